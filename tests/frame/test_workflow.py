"""The file that runs the course's commands on GitHub."""

import os
import re
import subprocess
from pathlib import Path

import pytest
import yaml

from grpo_course import install
from grpo_course.__main__ import COMMANDS
from grpo_course.workshop import anywhere

ROOT = Path(__file__).parents[2]
JOBS = yaml.safe_load((ROOT / ".github/workflows/course.yml").read_text())["jobs"]


def test_the_tests_run_on_three_systems_and_all_pythons_before_all_else():
    matrix = JOBS["elsewhere"]["strategy"]["matrix"]["include"]
    systems = {each["system"].split("-")[0] for each in matrix}
    assert systems == {"ubuntu", "macos", "windows"}
    ends = (install.OLDEST_PYTHON, install.NEWEST_PYTHON)
    named = {f"{major}.{minor}" for major, minor in ends}
    assert named < {each["python"] for each in matrix}
    for name in ("site", "binder", "release"):
        assert {"test", "elsewhere"} <= {*JOBS[name]["needs"]}
    assert "browser" in JOBS["site"]["needs"]
    (quick,) = [s["run"] for s in JOBS["elsewhere"]["steps"] if "run" in s]
    named = re.findall(r"notebooks/\w+\.ipynb", quick)
    assert len(named) == 3 and all((ROOT / name).exists() for name in named)


def test_without_pages_the_first_push_is_green():
    steps = {step.get("id", step.get("uses")): step for step in JOBS["site"]["steps"]}
    assert "/pages" in steps["pages"]["run"] and "else" in steps["pages"]["run"]
    for name in ("actions/upload-pages-artifact@v5", "published"):
        assert steps[name]["if"] == "steps.pages.outputs.on"


@pytest.mark.skipif(os.name == "nt", reason="the job runs on Linux")
@pytest.mark.parametrize("phase, status", [("ready", 0), ("built", 0), ("failed", 1)])
def test_a_binder_image_that_failed_is_seen(tmp_path, phase, status):
    (step,) = JOBS["binder"]["steps"]
    ends = step["run"].splitlines()[-1]
    told = f'data: {{"phase": "building"}}\n\ndata: {{"phase": "{phase}"}}\n'
    (tmp_path / "build.log").write_text(told, encoding="utf-8")
    assert subprocess.run(["bash", "-ec", ends], cwd=tmp_path).returncode == status


def test_who_checks_out_may_read_and_a_request_follows_the_redirect():
    """A job that names permissions has no others; mybinder.org answers with a 307."""
    for name, job in JOBS.items():
        uses = [step.get("uses", "") for step in job["steps"]]
        given = job.get("permissions", {"contents": "read"})
        if any(each.startswith("actions/checkout@") for each in uses):
            assert given.get("contents") in ("read", "write"), name
    (asks,) = (step["run"] for step in JOBS["binder"]["steps"])
    assert asks.startswith("curl --location ")


def test_it_calls_commands_that_there_are():
    calls = [s["run"] for job in JOBS.values() for s in job["steps"] if "run" in s]
    names = re.findall(r"python -m grpo_course ([\w-]+)", "\n".join(calls))
    used = {"test", "test-browser", "site"}
    assert set(names) == used <= set(COMMANDS)


def test_what_the_site_command_builds_is_what_is_published():
    (step,) = [s for s in JOBS["site"]["steps"] if "upload" in s.get("uses", "")]
    assert step["with"]["path"] == "_site"
    assert f'"{step["with"]["path"]}"' in (
        ROOT / "grpo_course" / "workshop" / "site.py"
    ).read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("remote", "place"),
    [
        ("https://github.com/ada/grpo.git", "ada/grpo"),
        ("git@github.com:ada/grpo-course.git", "ada/grpo-course"),
        ("https://github.com/ada/grpo/", "ada/grpo"),
        ("/srv/grpo.git", "OWNER/course"),  # not on GitHub
        (None, "OWNER/course"),
    ],
)
def test_a_fork_opens_the_fork(tmp_path, remote, place):
    address = '[project.urls]\nRepository = "https://github.com/OWNER/course"\n'
    (tmp_path / "pyproject.toml").write_text(address, encoding="utf-8")
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    if remote:
        add = ["git", "remote", "add", "origin", remote]
        subprocess.run(add, cwd=tmp_path, check=True)
    link = "github/{}/blob/main/notebooks/01.ipynb"
    text = anywhere.at_home(link.format("OWNER/course"), tmp_path)
    assert text == link.format(place)
    page = anywhere.at_home(anywhere.pages("OWNER/course"), tmp_path)
    assert page == anywhere.pages(place)
