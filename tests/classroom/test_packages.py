"""A learner's first look: one line when all is there, else what to do."""

from importlib import metadata

from grpo_course.classroom import packages


def test_what_is_missing_or_too_old_is_named_with_its_cure(monkeypatch, capsys):
    versions = {"torch": "2.13.0", "einops": "0.1"}
    lines = ["torch>=2", "einops>=0.8", "numpy", 'ruff; extra == "test"']

    def version(name):
        if name not in versions:
            raise metadata.PackageNotFoundError
        return versions[name]

    monkeypatch.setattr(packages.metadata, "requires", lambda name: lines)
    monkeypatch.setattr(packages.metadata, "version", version)
    packages.check_environment()
    old, missing = capsys.readouterr().out.splitlines()
    assert old.startswith("einops ") and "0.1" in old and "einops>=0.8" in old
    assert missing.startswith("numpy ") and "missing" in missing
    assert all(line.endswith(packages.CURE) for line in (old, missing))


def test_where_all_is_there_one_line_says_so(monkeypatch, capsys):
    monkeypatch.setattr(packages.metadata, "requires", lambda name: ["einops", "tqdm"])
    packages.check_environment()
    assert capsys.readouterr().out == "All 2 packages are ready.\n"
