"""Files that are whole or not there."""

import pytest

from grpo_course import files


def test_an_interrupted_write_leaves_what_was_there(tmp_path, monkeypatch):
    path = tmp_path / "log.jsonl"
    files.write_atomically(path, "before")

    def stop(beside, path):
        assert beside.read_bytes() == b"after"
        raise KeyboardInterrupt

    monkeypatch.setattr(files.os, "replace", stop)
    with pytest.raises(KeyboardInterrupt):
        files.write_atomically(path, "after")
    assert [each.name for each in tmp_path.iterdir()] == ["log.jsonl"]
    assert path.read_text() == "before"


def test_a_file_that_is_held_open_is_written_in_its_place(tmp_path, monkeypatch):
    def held_open(beside, path):
        raise PermissionError("Access is denied")

    path = tmp_path / "log.jsonl"
    path.write_text("before")
    monkeypatch.setattr(files.os, "replace", held_open)
    files.write_atomically(path, "after")
    assert path.read_text() == "after" and len([*tmp_path.iterdir()]) == 1
