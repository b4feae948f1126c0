"""The pretraining: what it reads, and that a stopped one goes on bit for bit."""

import json
import shutil
import signal

import pytest
import torch

from grpo_course.files import read_json_lines
from grpo_course.gsm8k.prompts import demonstration
from grpo_course.language_model.pretrained import load_model
from grpo_course.runs import pretrain, pretrained
from grpo_course.runs.checkpoint import DIGESTS, STATE, CheckpointError, digest
from grpo_course.stories import pretraining
from grpo_course.stories.batches import CHUNK, draw_chunk, encode, pad
from grpo_course.stories.card import CARD, FIGURES, card_text
from grpo_course.stories.pretraining import PretrainConfig, begin_pretraining
from grpo_course.stories.problems import make_stories

TOY = {
    "num_steps": 11,
    "batch_size": 3,
    "vocab_size": 400,
    "hidden_size": 16,
    "num_layers": 1,
    "num_heads": 2,
    "context_length": 512,
    "save_every": 4,
}
FLAGS = [f"--{name.replace('_', '-')}={value}" for name, value in TOY.items()]


@pytest.fixture(scope="module", autouse=True)
def small_tokenizer():
    """Few stories make a poor tokenizer, in no time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pretraining, "TOKENIZER_STORIES", 60)
        yield


@pytest.fixture(scope="module")
def toy(small_tokenizer):
    return begin_pretraining(PretrainConfig(**TOY))


def begin(out, **changes):
    pretrained.begin(PretrainConfig(**(TOY | changes)), out)
    return out


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("seed", 10**30),
        ("seed", -1),
        ("vocab_size", 3),
        ("hidden_size", 0),
        ("hidden_size", 30),
        ("num_layers", 0),
        ("num_heads", 0),
        ("context_length", 0),
    ],
)
def test_settings_that_make_no_sense_are_refused(setting, value):
    with pytest.raises(ValueError, match=f"{setting}={value}"):
        PretrainConfig(**{setting: value})


def outcome(out):
    """All that a run leaves: the bytes of the last weights and of the losses."""
    files = sorted((out / "checkpoints" / "000011").glob("*.safetensors"))
    assert files
    return [path.read_bytes() for path in files], (out / "metrics.jsonl").read_bytes()


@pytest.fixture(scope="module")
def whole(small_tokenizer, tmp_path_factory):
    """A run that nobody stopped."""
    out = begin(tmp_path_factory.mktemp("whole") / "run")
    pretrained.PretrainRun(out, show=False).go()
    return out


def test_batches_hold_prompts_and_responses_weighed(toy):
    tokenizer = toy.tokenizer
    stories = make_stories("train", 2, 0)
    rows = [encode(tokenizer, story) for story in stories]
    batch = pad(rows, tokenizer.pad_token_id, 0.25)
    for i, story in enumerate(stories):
        kept = batch.tokens[i][batch.responses[i]]
        text = tokenizer.decode(kept, skip_special_tokens=True)
        assert text == demonstration(story)
        assert kept[-1] == tokenizer.eos_token_id
        prompt = tokenizer.decode(batch.tokens[i][batch.weights[i] == 0.25])
        assert story.question in prompt and prompt.endswith("assistant\n")
    assert set(batch.weights.unique().tolist()) <= {0.0, 0.25, 1.0}
    padding = batch.weights == 0
    assert (batch.tokens[padding] == tokenizer.pad_token_id).all()


def test_chunks_never_repeat_and_a_share_is_bare_sums(toy):
    made = {"seed": 0, "sums": 0.25, "prompt_weight": 0.1}
    chunks = [draw_chunk(toy.tokenizer, i, 4, **made) for i in (0, 1, 1)]
    first, second, again = (
        [toy.tokenizer.decode(row) for batch in chunk for row in batch.tokens]
        for chunk in chunks
    )
    assert len(chunks[0]) == CHUNK and len(first) == 4 * CHUNK
    assert sum(text.count("=") == 1 and "What is" in text for text in first) >= CHUNK
    assert second == again and not set(first) & set(second)


def test_the_loss_falls(whole):
    losses = [
        line["loss"] for line in read_json_lines(whole / "metrics.jsonl", dict, "")
    ]
    assert len(losses) == 11 and losses[-1] < losses[0]


@pytest.mark.parametrize("step", [3, 8])
def test_killed_and_resumed_bit_for_bit(whole, tmp_path, monkeypatch, step):
    """It dies before a step, with lines in the metrics that no checkpoint knows."""
    out = begin(tmp_path / "run")
    run = pretrained.PretrainRun(out, show=False)
    learn = run.pretraining.learn

    def die():
        if run.pretraining.step == step:
            raise SystemExit
        return learn()

    monkeypatch.setattr(run.pretraining, "learn", die)
    with pytest.raises(SystemExit):
        run.go()
    resumed = pretrained.PretrainRun(out, show=False)
    assert resumed.pretraining.step <= step
    resumed.go()
    assert outcome(out) == outcome(whole)


def test_stopped_by_ctrl_c_it_saves_and_goes_on(whole, tmp_path, monkeypatch):
    out = begin(tmp_path / "run")
    run = pretrained.PretrainRun(out, show=False)
    learn = run.pretraining.learn

    def press():
        if run.pretraining.step == 2:
            signal.raise_signal(signal.SIGINT)
        return learn()

    monkeypatch.setattr(run.pretraining, "learn", press)
    with pytest.raises(KeyboardInterrupt):
        run.go()
    resumed = pretrained.PretrainRun(out, show=False)
    assert resumed.pretraining.step == 3
    resumed.go()
    assert outcome(out) == outcome(whole)


@pytest.fixture
def copied(whole, tmp_path):
    """A finished run that may be changed."""
    return shutil.copytree(whole, tmp_path / "copied")


def last(out):
    """The last checkpoint of a finished run."""
    return out / "checkpoints" / "000011"


def resume(out):
    return pretrained.PretrainRun(out, show=False)


def test_a_changed_loss_is_named_by_its_line_and_nothing_is_cut(copied):
    path = copied / "metrics.jsonl"
    lines = path.read_text().splitlines(keepends=True)
    for was, now, place in (('"loss"', '"lost"', ""), ("{", "[", ", line 4")):
        fourth = lines[3].replace(was, now, 1)
        path.write_text("".join([*lines[:3], fourth, *lines[4:]]))
        before = path.read_bytes()
        with pytest.raises(ValueError, match=rf"metrics.jsonl{place} is not what was"):
            resume(copied)
        assert path.read_bytes() == before


def test_losses_without_checkpoints_are_not_written_over(copied):
    shutil.rmtree(copied / "checkpoints")
    before = (copied / "metrics.jsonl").read_bytes()
    for go_on in (resume, begin):
        with pytest.raises(FileExistsError, match="has no checkpoint any more"):
            go_on(copied)
    assert (copied / "metrics.jsonl").read_bytes() == before


def put(path, **state):
    """Write a state into a checkpoint whose digests hold."""
    torch.save(state, path / STATE)
    listed = json.loads((path / DIGESTS).read_text()) | {STATE: digest(path / STATE)}
    (path / DIGESTS).write_text(json.dumps(listed))


def test_a_state_of_another_program_is_not_loaded(copied):
    path = last(copied)
    for state in ({"step": print}, {"step": 11}):
        put(path, **state)
        with pytest.raises(CheckpointError, match=f"Remove {path}") as told:
            resume(copied)
        assert "weights_only" not in str(told.value)
    shutil.rmtree(path)  # as it says
    assert resume(copied).pretraining.step == 10


def test_a_renamed_checkpoint_is_refused(copied):
    last(copied).rename(copied / "checkpoints" / "000012")
    with pytest.raises(CheckpointError, match="the checkpoint of step 11: it was"):
        resume(copied)


def test_edited_settings_are_refused_with_the_cure(copied):
    config, copy = (folder / pretrained.CONFIG for folder in (copied, last(copied)))
    config.write_text(config.read_text().replace('"seed": 0', '"seed": 1'))
    with pytest.raises(CheckpointError, match="has other settings than"):
        resume(copied)
    shutil.copy(copy, config)  # the cure
    assert resume(copied).pretraining.step == 11
    config.write_text("{")
    with pytest.raises(ValueError, match=r"pretrain_config.json.*Put the file back"):
        resume(copied)


def test_a_course_that_tells_other_stories_does_not_go_on(copied, monkeypatch):
    """A frame added since would make a model of two languages."""
    monkeypatch.setattr(pretrained, "make_stories", other_stories)
    with pytest.raises(CheckpointError, match="was taught other stories"):
        resume(copied)


def other_stories(split, count, seed):
    return make_stories(split, count, f"another {seed}")


def test_the_stages_are_kept(whole):
    kept = {int(path.name) for path in (whole / "checkpoints").iterdir()}
    assert PretrainConfig(**TOY).stages() | {11} <= kept


def test_another_seed_gives_another_model(whole, tmp_path):
    out = begin(tmp_path / "run", seed=1)
    pretrained.PretrainRun(out, show=False).go()
    assert outcome(out)[0] != outcome(whole)[0]


@pytest.mark.slow
def test_the_command_trains_measures_and_writes_the_card(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(pretrain, "KNOWN", 50)
    out = tmp_path / "run"
    asked = ["--out", str(out), "--problems", "2"]
    assert pretrain.main([*asked, *FLAGS], tmp_path) == 0
    figures = json.loads((out / "model" / FIGURES).read_text())
    card = (out / "model" / CARD).read_text()
    assert card == card_text(figures) and card in capsys.readouterr().out
    assert figures["config"]["hidden_size"] == 16 and figures["commit"] == "unknown"
    model = load_model(out / "model")
    last = load_model(out / "checkpoints" / "000011")
    for ours, theirs in zip(model.parameters(), last.parameters(), strict=True):
        assert torch.equal(ours, theirs.half().float())
    assert pretrain.main([*asked, *FLAGS], tmp_path) == 1
    assert "holds a pretraining already" in capsys.readouterr().err
    assert pretrain.main([*asked, "--resume", "--seed", "3"], tmp_path) == 1
    assert "has other settings" in capsys.readouterr().err
    nothing = ["--out", str(tmp_path / "none"), "--resume"]
    assert pretrain.main(nothing, tmp_path) == 1
    assert "There is no pretraining" in capsys.readouterr().err
