"""`torture`: it counts what its programs tried and lost, and fails if anything was.

The programs themselves, which take minutes, are no tests.
"""

import json
import tempfile

import pytest

from grpo_course.__main__ import ROOT
from grpo_course.workshop import torture

KEPT = {"tried": ["digest 3", "append 7"], "wrong": []}
LOST = {"tried": ["0.2 s"], "wrong": ["metrics"]}
NOTHING_TRIED = {"tried": [], "wrong": []}


@pytest.fixture
def tortured(tmp_path, capsys, monkeypatch):
    """Run the command on a program that prints these trials and ends so."""

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    def run(*trials, status=0, attempts=3):
        folder = tmp_path / "tests" / "torture"
        folder.mkdir(parents=True)
        lines = "\n".join(map(json.dumps, trials))
        program = f"import sys\nprint({lines!r})\nsys.exit({status})\n"
        (folder / "kills.py").write_text(program)
        returned = torture.main(["kills", "--attempts", str(attempts)], tmp_path)
        printed = capsys.readouterr().out
        row = next(x for x in printed.splitlines() if x.startswith("kills  "))
        return returned, [int(word) for word in row.split()[1:4]], printed

    return run


def test_nothing_is_lost(tortured):
    status, counts, printed = tortured(KEPT, NOTHING_TRIED, KEPT)
    assert (status, counts) == (0, [4, 4, 0])
    head = printed.splitlines()[0]
    assert head.split() == ["trial", "attempts", "survived", "lost", "seconds"]


@pytest.mark.parametrize("lost", [LOST, LOST | {"tried": []}])
def test_a_loss_is_counted_named_and_fails(tortured, lost):
    status, counts, printed = tortured(KEPT, lost, KEPT)
    assert (status, counts) == (1, [5, 4, 1])
    assert f"kills lost: {lost['tried']}: ['metrics']" in printed
    assert "can be looked at in" in printed


@pytest.mark.parametrize("status", [0, 9])
def test_what_a_program_never_came_to_is_lost(tortured, status):
    assert tortured(KEPT, status=status)[:2] == (1, [3, 2, 1])


def test_a_program_that_fails_at_its_end_is_lost_too(tortured):
    status, counts, printed = tortured(KEPT, KEPT, status=7)
    assert (status, counts) == (1, [5, 4, 1])
    assert "ended with status 7" in printed


def test_an_unknown_part_lists_the_known(tmp_path, capsys):
    with pytest.raises(SystemExit):
        torture.main(["kils"], tmp_path)
    told = capsys.readouterr().err
    assert all(name in told for name in torture.PROGRAMS)


def test_its_programs_are_there():
    found = {path.stem for path in (ROOT / "tests" / "torture").glob("*.py")}
    assert found == {*torture.PROGRAMS, "forked", "test_torture"}
