"""What a run writes down: whole, once, and readable by pandas."""

import pandas
import pytest

from grpo_course.evaluation import sampled_scores
from grpo_course.runs import stopwatch
from grpo_course.runs.journal import METRICS, SAMPLES, TIMES, Journal
from grpo_course.runs.resumable import Run

EVERY = 3  # epochs between two looks, in the small run


@pytest.fixture(scope="module")
def frames(alone):
    """Each file as pandas reads it."""
    names = (METRICS, SAMPLES, TIMES)
    return {name: pandas.read_json(alone / name, lines=True) for name in names}


def test_every_epoch_has_its_line(frames):
    done = frames[METRICS].dropna(subset="mean_reward")
    assert done["epoch"].tolist() == list(range(8))
    assert frames[TIMES]["epoch"].tolist() == list(range(8))
    assert frames[SAMPLES].groupby("epoch").size().tolist() == [4] * 8


def test_a_response_stands_beside_what_it_earned(frames, alone):
    rows, weights = frames[SAMPLES], {"accuracy": 1.0, "format": 0.2}
    weighed = sum(weight * rows[name] for name, weight in weights.items())
    assert rows["reward"].tolist() == pytest.approx(weighed.tolist())
    assert rows["completion"].str.len().max() > 0
    questions = {p.question: str(p.answer) for p in Run(alone, show=False).problems}
    answers = rows.drop_duplicates("question").set_index("question")["answer"]
    assert {q: str(a) for q, a in answers.items()}.items() <= questions.items()


def test_held_out_problems_are_looked_at_before_and_after(frames, alone):
    looks = frames[METRICS].dropna(subset="held_out").set_index("epoch")["held_out"]
    assert looks.index.tolist() == [0, EVERY, 2 * EVERY, 8]
    run = Run(alone, show=False)
    again = sampled_scores(run.policy, run.probe.environment, 1)
    assert looks[8] == pytest.approx(again.accuracy.mean().item())


def test_the_parts_of_an_epoch_add_up(frames):
    parts = frames[TIMES].drop(columns="epoch")
    assert set(parts) == {*stopwatch.PARTS, stopwatch.OTHER}
    assert (parts >= 0).all(axis=None)
    assert (parts[["sampling", "update", "scoring"]] > 0).all(axis=None)
    looked = frames[TIMES].set_index("epoch")["evaluation"]
    assert looked[[0, 3, 6]].min() > looked.drop([0, 3, 6]).max()


def test_time_goes_to_the_innermost_part(monkeypatch):
    clock = iter([0, 1, 3, 7, 15, 31, 63])
    monkeypatch.setattr(stopwatch, "now", lambda: next(clock))
    watch = stopwatch.Stopwatch()
    inner = watch.timed("sampling", lambda: "said")
    outer = watch.timed("scoring", lambda: inner())
    assert outer() == "said"
    lap = watch.lap()
    seconds = {part: value for part, value in lap.items() if value}
    assert seconds == {"other": 1 + 16, "scoring": 2 + 8, "sampling": 4}


@pytest.fixture
def kept(tmp_path):
    """A journal of two epochs, what a checkpoint noted of it, and one epoch more."""
    journal = Journal(tmp_path)
    for epoch in range(2):
        journal.add({"epoch": epoch}, [{"reward": 1.0}], {"update": 0.5})
    marks = journal.marks()
    journal.add({"epoch": 2}, [{"reward": 0.0}], {"update": 0.25})
    return journal, marks, tmp_path


def test_what_came_after_a_checkpoint_is_forgotten(kept):
    journal, marks, _ = kept
    assert journal.marks() != marks
    journal.cut_back(marks)
    assert journal.marks() == marks
    assert [record["epoch"] for record in journal.history().records] == [0, 1]


@pytest.mark.parametrize("name", [METRICS, SAMPLES, TIMES])
def test_nothing_is_cut_where_one_file_was_changed(kept, name):
    journal, marks, folder = kept
    path = folder / name
    path.write_bytes(path.read_bytes().replace(b'"epoch": 1', b'"epoch": 7'))
    before = journal.marks()
    with pytest.raises(ValueError, match=rf"{name} is not what was written.*--out"):
        journal.cut_back(marks)
    assert journal.marks() == before


def test_only_the_metrics_must_be_there(kept):
    journal, marks, folder = kept
    (folder / SAMPLES).unlink()
    (folder / TIMES).unlink()
    journal.cut_back(marks)
    (folder / METRICS).unlink()
    with pytest.raises(ValueError, match="has 0 bytes, but had"):
        journal.cut_back(marks)
