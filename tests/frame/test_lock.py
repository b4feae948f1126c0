"""Two commands do not make `.venv` at the same time."""

import subprocess
import sys
import threading

import pytest

from grpo_course.workshop import environment
from grpo_course.workshop.environment import one_at_a_time

HOLD = """
import sys, time
from pathlib import Path
from grpo_course.workshop.environment import one_at_a_time
with one_at_a_time(Path(sys.argv[1]), "waiting"):
    print("held", flush=True)
    time.sleep(600)
"""


@pytest.fixture
def holder(tmp_path):
    """Another process that holds the lock, and the lock."""
    path = tmp_path / ".venv.lock"
    command = [sys.executable, "-c", HOLD, str(path)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "held\n"
    yield process, path
    process.kill()
    process.wait()


def test_the_second_waits_and_a_dead_holder_holds_nothing(holder, capsys):
    process, path = holder
    inside = threading.Event()

    def enter():
        with one_at_a_time(path, "Another command is at it"):
            inside.set()

    thread = threading.Thread(target=enter, daemon=True)
    thread.start()
    assert not inside.wait(1.0)
    assert capsys.readouterr().out == "Another command is at it\n"
    process.kill()
    assert inside.wait(30)
    thread.join()


def test_what_the_first_built_is_not_built_again(tmp_path, monkeypatch):
    built = []
    stamped = iter([False, True])  # as each of two finds it, once it holds the lock
    monkeypatch.setattr(environment, "is_stamped", lambda *_: next(stamped))
    monkeypatch.setattr(environment, "build", lambda *given: built.append(given))
    environment.build_once(tmp_path / ".venv", tmp_path, ())
    environment.build_once(tmp_path / ".venv", tmp_path, ())
    assert len(built) == 1


def test_a_folder_that_cannot_be_written_is_left_to_the_builder(tmp_path, monkeypatch):
    built = []
    monkeypatch.setattr(environment, "is_stamped", lambda *_: False)
    monkeypatch.setattr(environment, "build", lambda *given: built.append(given))
    environment.build_once(tmp_path / "missing" / ".venv", tmp_path, ())
    assert len(built) == 1
