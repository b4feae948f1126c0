"""A run in a folder: stopped in any way, it goes on as if it had not been, bit for bit.

What is not its own, settings, data, checkpoints, is refused with words.
"""

import json
import os
import random
import shutil
import signal
from itertools import count
from math import inf, nan
from pathlib import Path

import pandas
import pytest
import torch
from filelock import FileLock

from grpo_course.files import json_lines
from grpo_course.text import runs
from grpo_course.text.cli import train
from grpo_course.text.environment import fingerprint
from grpo_course.text.evaluation import sampled_scores
from grpo_course.text.report import (
    draw,
    find_runs,
    group_by_settings,
    half_width,
    mean_and_band,
    measured_ends,
)
from grpo_course.text.runs import (
    CONFIG,
    LOCK,
    METRICS,
    SAMPLES,
    STATE,
    Run,
    as_json,
    begin,
    checkpoint_path,
    from_json,
    on_interrupt,
    read_lines,
    saved_epochs,
)
from grpo_course.text.stories import make_problems
from grpo_course.text.tasks import Problem
from grpo_course.text.training import from_values

KILLS = int(os.environ.get("KILLS", "3"))  # a hundred takes minutes
MOVING = {"kl_penalty": 0.5, "compute_ref_model_period": 3, "save_every": 2}
CONFIGURATIONS = {
    "copied reference": MOVING,
    "mixed reference": MOVING | {"ref_mixture": 0.5},
    "no reference": {"kl_penalty": 0.0},
    "minibatches": {
        "num_steps_per_epoch": 2,
        "minibatch_size": 8,
        "old_log_probs_from": "policy",
        "kl_target": 0.01,
        "compute_ref_model_period": 4,
        "temperature": 0.8,
        "top_k": 20,
        "top_p": 0.95,
    },
}


@pytest.fixture
def copied(alone, tmp_path):
    """A finished run that may be changed."""
    return shutil.copytree(alone, tmp_path / "run")


def back_to(out, epoch):
    """Forget the checkpoints after an epoch."""
    for later in saved_epochs(out):
        if later > epoch:
            shutil.rmtree(checkpoint_path(out, later))


# Stopped and gone on with


def result(out):
    """All that a finished run leaves, but for the checkpoints before the last."""
    last = checkpoint_path(out, saved_epochs(out)[-1])
    paths = out / METRICS, out / SAMPLES, last / "model.safetensors"
    state = torch.load(last / STATE, weights_only=True)
    return [*(path.read_bytes() for path in paths), flat(state)]


def flat(state):
    """The numbers of a nest of tensors, dicts and lists, tensors as bytes."""
    if isinstance(state, torch.Tensor):
        return [state.numpy().tobytes()]
    if isinstance(state, dict):
        state = [part for pair in state.items() for part in pair]
    if isinstance(state, list | tuple):
        return [number for part in state for number in flat(part)]
    return [state]


class Killed(BaseException):
    """The end of a process: nothing catches it, and nothing is tidied up."""


# Places to die at, each with the latest of its calls to choose.
PLACES = (
    *((os, "fsync", 40), (Path, "rename", 4), (torch, "save", 4)),
    *((shutil, "rmtree", 6), (os, "truncate", 2), (runs, "append", 17)),
)


def dying(owner, name, call):
    """The function of that name, of which one call is the last thing that is done."""
    original, calls = getattr(owner, name), count(1)

    def called(*args, **kwargs):
        if next(calls) < call:
            return original(*args, **kwargs)
        if name == "append":  # half a line
            with args[0].open("a") as file:
                file.write(json_lines(args[1])[:-20])
        raise Killed

    return called


@pytest.mark.slow
def test_killed_at_any_moment(start, tmp_path, monkeypatch):
    """In what writes: a sync, a rename, the saving of the state, half a line."""
    start(tmp_path / "alone", **CONFIGURATIONS["minibatches"]).go()
    alone, rng, kills = result(tmp_path / "alone"), random.Random(0), 0
    for trial in count():
        if kills >= KILLS:
            break
        out, told = tmp_path / f"trial{trial}", []
        start(out, **CONFIGURATIONS["minibatches"])
        for _ in range(rng.randint(1, 3)):
            owner, name, latest = rng.choice(PLACES)
            place = owner, name, rng.randint(1, latest)
            with monkeypatch.context() as patch:
                patch.setattr(owner, name, dying(*place))
                try:
                    Run(out, show=False).go()
                except Killed:
                    told.append(place)
        Run(out, show=False).go()
        assert result(out) == alone, f"differs after {told}"
        kills += len(told)


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_stopped_at_a_fixed_place_it_goes_on_bit_for_bit(start, tmp_path, name):
    """Every part of the last state, too: the order of minibatches is one."""
    out = tmp_path / "run"
    history = start(out, **CONFIGURATIONS[name]).go()
    whole = result(out)
    back_to(out, 6)
    assert saved_epochs(out)[-1] == 6
    again = Run(out, show=False).go()
    assert result(out) == whole
    for column in ("accuracy", "held_out"):
        assert torch.equal(again.epochs(column), history.epochs(column))


def after_each_line(patch, happens):
    """Call something with the number of an epoch once its line was written."""
    write_down = Run.write_down

    def noted(self, history):
        line = write_down(self, history)
        happens(line["epoch"])
        return line

    patch.setattr(Run, "write_down", noted)


@pytest.mark.slow
@pytest.mark.parametrize(("by", "times", "newest"), [("TERM", 1, 5), ("INT", 2, 3)])
def test_a_signal_saves_and_a_second_one_stops_at_once(
    alone, start, outcome, tmp_path, monkeypatch, call, by, times, newest
):
    out, number = tmp_path / "my run", getattr(signal, f"SIG{by}")
    start(out)
    if signal.getsignal(number) is signal.SIG_IGN:  # these tests were started by nohup
        signal.signal(number, signal.SIG_DFL)

    def stop(epoch):
        for _ in range(times if epoch == 4 else 0):
            signal.raise_signal(number)

    with monkeypatch.context() as patch:
        after_each_line(patch, stop)
        status, printed, error = call(train, "--resume", "--out", out)
    assert status == 130 and "Stopping after this epoch" in printed
    assert f"--resume --out '{out}'" in error
    assert saved_epochs(out)[-1] == newest
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    assert call(train, "--resume", "--out", out)[0] == 0
    assert outcome(out) == outcome(alone)


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such signal")
def test_a_signal_that_nohup_ignores_stays_ignored():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    noted = []
    try:
        with on_interrupt(lambda *_: noted.append(1)):
            signal.raise_signal(signal.SIGHUP)
            assert not noted
            signal.raise_signal(signal.SIGTERM)
            assert noted
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


def edited(copied, setting, other, **state):
    """The run at epoch 6, as if it had been made with another setting and state."""
    back_to(copied, 6)
    checkpoint = checkpoint_path(copied, 6)
    for folder in (copied, checkpoint):
        text = (folder / CONFIG).read_text().replace(setting, other)
        (folder / CONFIG).write_text(text)
    saved = torch.load(checkpoint / STATE, weights_only=True)
    torch.save(saved | state, checkpoint / STATE)
    return saved


def test_a_run_that_began_on_a_gpu_goes_on_without_one(copied, call):
    """With new random numbers: those of a CPU and of a GPU have other sizes."""
    edited(copied, '"cpu"', '"cuda:7"', generator=torch.zeros(16, dtype=torch.uint8))
    status, _, told = call(train, "--resume", "--out", copied)
    assert status == 1 and "cannot be used on this machine" in told
    status, said, told = call(train, "--resume", "--out", copied, "--device", "cpu")
    assert status == 0 and "is of another device" in said + told, told
    assert Run(copied, show=False).config.device == "cpu"


def test_a_run_goes_on_with_the_threads_that_it_began_with(copied, monkeypatch, call):
    """Sums are rounded as they were, unless other threads are asked for."""
    state = edited(copied, 'threads": 1', 'threads": null', threads=3)
    assert state["threads"] == 1
    for cores, threads in ((4, 3), (2, 2)):
        monkeypatch.setattr(runs, "num_cores", lambda cores=cores: cores)
        Run(copied, show=False)
        assert torch.get_num_threads() == threads
    status, _, told = call(train, "--resume", "--out", copied, "--num-threads", 1)
    assert status == 0, told
    assert Run(copied, show=False).config.num_threads == 1
    assert torch.get_num_threads() == 1


# Disks


def torn(*args, **kwargs):
    """What torch raises when its file cannot grow."""
    raise RuntimeError("PytorchStreamWriter failed writing file data.pkl")


@pytest.mark.slow
def test_a_full_disk_keeps_the_last_checkpoint(
    alone, start, outcome, tmp_path, monkeypatch, call
):
    out = tmp_path / "run"
    start(out)
    with monkeypatch.context() as patch:

        def fill_up(epoch):
            if epoch == 5:
                patch.setattr(torch, "save", torn)

        after_each_line(patch, fill_up)
        status, _, told = call(train, "--resume", "--out", out)
    assert status == 1 and "000006 could not be written" in told
    assert "before it are kept" in told and "--resume" in told
    there = sorted(path.name for path in (out / "checkpoints").iterdir())
    assert there == ["000000", "000003"]
    Run(out, show=False).go()
    assert outcome(out) == outcome(alone)


def test_few_checkpoints_are_kept_and_other_things_passed_by(start, outcome, tmp_path):
    out = tmp_path / "run"
    run, folder = start(out, save_every=1, num_epochs=4), out / "checkpoints"
    (folder / "000050").write_text("mine")
    for name in ("best", "000099", "0000008", "٠٠٠٠٠٩"):
        (folder / name).mkdir()
    shutil.copy(checkpoint_path(out, 0) / STATE, folder / "0000008")
    run.go()
    assert saved_epochs(out) == [0, 3, 4]
    assert (folder / "000050").read_text() == "mine" and (folder / "best").is_dir()


# One process at a time


def test_two_processes_do_not_train_in_one_folder(alone, small_run, tmp_path, call):
    """Not even where the first has saved nothing yet."""
    out, file = tmp_path / "busy", tmp_path / "small.json"
    file.write_text(json.dumps(small_run))
    out.mkdir()
    with FileLock(out / LOCK):  # as another process holds it
        status, _, error = call(train, "--config", file, "--out", out)
        assert status == 1 and f"Another process is training in {out}" in error
        assert not (out / CONFIG).exists()
        shutil.copytree(alone, out, dirs_exist_ok=True)
        with pytest.raises(OSError, match="Another process is training in"):
            Run(out, show=False)
    assert Run(out, show=False).trainer.epoch == 8


def test_records_are_json_and_null_is_no_number():
    line = as_json({"epoch": 1, "step": 0, "kl": torch.tensor(nan), "one": -inf})
    assert line == {"epoch": 1, "step": 0, "kl": None, "one": None}
    back = from_json(line)
    assert back["epoch"] == 1 and back["kl"].isnan() and back["one"].isnan()
    with pytest.raises(ValueError, match="JSON"):
        json_lines([{"kl": nan}])


# What is not its own


def test_other_settings_are_refused(small_run, copied, call, tmp_path):
    file, before = tmp_path / "other.json", sorted(copied.rglob("*"))
    file.write_text(json.dumps(small_run | {"learning_rate": 0.5}))
    options = ["--resume", "--out", copied, "--config", file]
    status, _, told = call(train, *options, "--num-epochs", 9)
    assert status == 1 and "learning_rate 0.003 -> 0.5" in told
    assert "num_epochs 8 -> 9" in told
    assert f"--config {copied / CONFIG} --model {copied} --out DIR" in told
    assert sorted(copied.rglob("*")) == before
    file.write_text(json.dumps(small_run))
    assert call(train, *options)[0] == 0


@pytest.mark.parametrize("name", ["seed", "hidden_size"])
def test_edited_settings_and_foreign_checkpoints_are_refused(copied, call, name):
    changed = json.loads((copied / CONFIG).read_text()) | {name: 32}
    (copied / CONFIG).write_text(json.dumps(changed))
    before = (copied / METRICS).read_bytes()
    status, _, told = call(train, "--resume", "--out", copied)
    assert status == 1 and "is the checkpoint of another run, or" in told
    assert f"{name} " in told and "-> 32" in told and "holds a copy" in told
    assert (copied / METRICS).read_bytes() == before
    shutil.copy(checkpoint_path(copied, 8) / CONFIG, copied / CONFIG)  # the cure
    assert call(train, "--resume", "--out", copied)[0] == 0


def damaged(path):
    (path / STATE).write_bytes((path / STATE).read_bytes()[:-9])


def with_code(path):
    torch.save({"epoch": print}, path / STATE)


@pytest.mark.parametrize("harm", [damaged, with_code])
def test_a_state_that_this_run_did_not_save_is_not_loaded(copied, call, harm):
    harm(checkpoint_path(copied, 8))
    newest = checkpoint_path(copied, saved_epochs(copied)[-1])
    status, _, told = call(train, "--resume", "--out", copied)
    assert status == 1 and f"Remove {newest}" in told and "weights_only" not in told
    shutil.rmtree(newest)
    assert call(train, "--resume", "--out", copied)[0] == 0


@pytest.mark.parametrize("kind", ["training", "held-out"])
def test_other_data_are_refused(start, tmp_path, kind):
    rows = [
        {"question": p.question, "answer": p.solution}
        for p in make_problems("train", 30, seed=3)
    ]
    file, few = tmp_path / "train.jsonl", 27  # the last tenth is held out
    file.write_text(json_lines(rows))
    start(tmp_path / "run", task_settings={"data": str(tmp_path)}, num_epochs=1)
    keep = few if kind == "held-out" else 0
    end = len(rows) if kind == "held-out" else few
    other = [*rows[:keep], *rows[keep:end][::-1], *rows[end:]]
    file.write_text(json_lines(other))
    with pytest.raises(ValueError, match=f"made with other {kind} problems"):
        Run(tmp_path / "run", show=False)


def test_a_fingerprint_sees_order_and_answers_of_any_type():
    one, other = Problem("a?", 1), Problem("b?", print)
    prints = [[one, other], [other, one], [one], [Problem("a?", 2)]]
    prints.append([Problem("c?", {(1, 2): "3", 4: {5}})])
    assert len({*map(fingerprint, prints)}) == 5


def test_journals_that_were_changed_or_lost_are_refused(copied, call):
    before = (copied / SAMPLES).read_bytes()
    for changed in (before[:-9], before.replace(b"\n", b"\r\n")):  # by an editor
        (copied / SAMPLES).write_bytes(changed)
        status, _, told = call(train, "--resume", "--out", copied)
        assert status == 1 and f"{copied / SAMPLES} was changed" in told
        assert (copied / SAMPLES).read_bytes() == changed
    shutil.rmtree(copied / "checkpoints")
    status, _, told = call(train, "--out", copied)
    assert status == 1 and "holds a run" in told


def test_a_folder_that_holds_a_run_or_none_is_no_place_for_another(
    alone, small_run, tmp_path
):
    with pytest.raises(FileExistsError, match=r"holds a run already.*--resume"):
        begin(from_values(small_run), alone)
    with pytest.raises(FileNotFoundError, match="There is no run in"):
        Run(tmp_path / "nothing")
    assert not (tmp_path / "nothing").exists()


# What a run writes down


def test_the_journals_hold_every_epoch_and_what_a_response_earned(alone):
    metrics, samples = (
        pandas.read_json(alone / name, lines=True) for name in (METRICS, SAMPLES)
    )
    done = metrics.dropna(subset="mean_reward")
    assert done["epoch"].tolist() == list(range(8))
    rates = done["learning_rate"][:3].tolist()
    assert rates == pytest.approx([1.5e-3, 3e-3, 3e-3 * 6 / 7])
    assert samples.groupby("epoch").size().tolist() == [4] * 8
    weights = {"accuracy": 1.0, "format": 0.2}
    earned = sum(weight * samples[name] for name, weight in weights.items())
    assert samples["reward"].tolist() == pytest.approx(earned.tolist())
    looks = metrics.dropna(subset="held_out").set_index("epoch")["held_out"]
    assert looks.index.tolist() == [0, 3, 6, 8]
    run = Run(alone, show=False)
    again = sampled_scores(run.policy, run.probe.environment, 1)
    assert looks[8] == pytest.approx(again.accuracy.mean().item())
    questions = {problem.question for problem in run.problems}
    assert set(samples["question"]) <= questions


@pytest.mark.slow
def test_a_run_whose_responses_are_all_cut_off_writes_json_and_goes_on(start, tmp_path):
    """Nothing is learned, and the log says why: null is no number of JSON's own."""
    knobs = {"mask_truncated": True, "max_new_tokens": 2, "num_epochs": 2}
    start(tmp_path, **knobs, kl_target=0.1).go()
    lines = (tmp_path / METRICS).read_text().splitlines()
    for line in [json.loads(x, parse_constant=pytest.fail) for x in lines[:2]]:
        assert line["truncated"] == 1 and line["mean_length"] == 2
        assert line["sampled_entropy"] > 0 and line["gradient_norm"] == 0
        assert line["kl"] is line["ratio_min"] is line["clip_fraction_high"] is None
    again = Run(tmp_path, show=False).trainer.history
    assert again.curve("kl").isnan().all() and (again.curve("truncated") == 1).all()
    metrics = pandas.DataFrame(read_lines(tmp_path / METRICS))
    ends = measured_ends([metrics])
    assert ends["kl"] == "-" and ends["truncated"] == "1 → 1"
    assert draw({"cut off": [metrics]}).startswith(b"\x89PNG")


def test_seeds_are_a_mean_with_the_interval_of_students_t():
    """Student 1908: three draws, and t of two degrees of freedom, 4.303."""
    epochs = range(20)
    runs = [
        pandas.DataFrame({"epoch": epochs, "mean_reward": [start] * 10 + [end] * 10})
        for start, end in ((0.1, 0.5), (0.2, 0.7), (0.3, 0.9))
    ]
    assert measured_ends(runs)["mean_reward"] == "0.2 → 0.7 ± 0.5"
    assert half_width(pandas.Series([0.5, 0.7, 0.9])) == pytest.approx(0.4968, abs=1e-3)
    long = half_width(pandas.Series([*range(31)]))
    assert long == pytest.approx(2.0423 * 9.0921 / 31**0.5, rel=2e-3)
    curve = mean_and_band(runs, "mean_reward", smooth=True)
    assert curve["mean"].iloc[[0, 9, 19]].tolist() == pytest.approx([0.2, 0.2, 0.7])
    assert curve["mean"].iloc[14] == pytest.approx(0.45)  # five old ones, five new
    longer = pandas.DataFrame({"epoch": range(25), "mean_reward": 1.0})
    assert len(mean_and_band([*runs, longer], "mean_reward", smooth=True)) == 20
    assert mean_and_band(runs[:1], "mean_reward", smooth=False)["mean"].iloc[10] == 0.5
    assert draw({"a": runs, "b": runs[:1]}).startswith(b"\x89PNG")


def test_runs_are_seeds_of_one_where_nothing_else_differs(small_run, tmp_path):
    settings = {"b": {"seed": 1}, "a": {"seed": 0}, "c": {"seed": 0, "temperature": 2}}
    settings["again"] = {"seed": 1}  # no further seed
    for name, changes in settings.items():
        begin(from_values(small_run | changes), tmp_path / name)
    runs = [str(tmp_path / name) for name in settings]
    names = [[Path(run).name for run in group] for group in group_by_settings(runs)]
    assert names == [["a", "b"], ["c"], ["again"]]
    assert find_runs([str(tmp_path)]) == sorted(runs)


def test_a_loss_that_is_no_number_stops_with_its_step(start, tmp_path):
    """The last good checkpoint stays, and no line is written for the bad epoch."""
    run = start(tmp_path, save_every=1)
    reward = run.trainer.reward_fn

    def broken(rollout):
        if run.trainer.epoch == 2:
            with torch.no_grad():
                reference = run.trainer.ref_policy.model
                reference.get_input_embeddings().weight.fill_(torch.nan)
        return reward(rollout)

    run.trainer.reward_fn = broken
    with pytest.raises(ValueError, match="epoch 2, step 0"):
        run.go()
    rows = [json.loads(x) for x in (tmp_path / METRICS).read_text().splitlines()]
    assert [row["epoch"] for row in rows] == [0, 1]
    assert Run(tmp_path, show=False).trainer.epoch == 2
