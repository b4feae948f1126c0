"""`test-browser` finds a Chromium, installs Debian's, or says how to get one."""

import pytest

from grpo_course.workshop import browser_tests


@pytest.fixture
def machine(monkeypatch):
    """A machine with the named programs on its PATH, and the commands it was given."""

    def make(*programs, user=0):
        called = []
        monkeypatch.setattr(
            browser_tests.shutil,
            "which",
            lambda name: f"/usr/bin/{name}" if name in programs else None,
        )
        monkeypatch.setattr(browser_tests.os, "geteuid", lambda: user, raising=False)
        monkeypatch.setattr(
            browser_tests.subprocess, "run", lambda command, **_: called.append(command)
        )
        return called

    return make


def test_the_first_known_browser_is_taken_and_nothing_installed(machine):
    called = machine("google-chrome", "chromium", "apt-get")
    browser_tests.install_chromium()
    assert called == []
    assert browser_tests.find_chromium() == "/usr/bin/chromium"


def test_root_on_debian_gets_the_package(machine):
    called = machine("apt-get")
    browser_tests.install_chromium()
    assert [command[:2] for command in called] == [
        ["apt-get", "update"],
        ["apt-get", "install"],
    ]
    assert {"chromium", "fonts-liberation"} <= set(called[1])


@pytest.mark.parametrize("programs, user", [(("apt-get",), 1000), ((), 0)])
def test_who_cannot_install_is_told_how(machine, tmp_path, programs, user):
    called = machine(*programs, user=user)
    with pytest.raises(SystemExit) as stopped:
        browser_tests.main(["--quick"], tmp_path)
    assert called == []
    message = str(stopped.value)
    assert "No Chromium" in message and "sudo apt install chromium" in message
    assert all(name in message for name in browser_tests.CHROMIUM)


def test_pytest_gets_its_options_where_the_browser_tests_lie(
    machine, monkeypatch, tmp_path
):
    """In their folder a lone `-k site` means these tests, and not those of tests/."""
    machine("chromium")
    called = []
    monkeypatch.setenv(browser_tests.QUICK, "")
    monkeypatch.setattr(browser_tests.site, "main", lambda options, root: 0)
    monkeypatch.setattr(
        browser_tests.kernels, "python", lambda *given: called.append(given) or 3
    )
    assert browser_tests.main(["-k", "site", "--quick"], tmp_path) == 3
    folder = tmp_path / "tests" / "browser"
    pytest_here = ["-m", "pytest", *browser_tests.TWO_AT_ONCE]
    assert called == [([*pytest_here, "-k", "site"], folder)]
    assert browser_tests.os.environ[browser_tests.QUICK]


def test_a_site_with_warnings_is_the_last_thing_said(machine, monkeypatch, tmp_path):
    """Below 150 tests that pass, nobody saw what Sphinx had said before them."""
    machine("chromium")
    monkeypatch.setattr(browser_tests.site, "main", lambda options, root: 1)
    monkeypatch.setattr(browser_tests.kernels, "python", lambda *_: pytest.fail("ran"))
    assert browser_tests.main([], tmp_path) == 1
