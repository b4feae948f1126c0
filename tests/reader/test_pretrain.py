"""The pretraining: it learns, and a stopped one goes on bit for bit."""

import json

import pytest
import torch

from grpo_course.lm import load_model
from tools.reader import card, pretrain
from tools.reader.card import CARD, FIGURES, card_text
from tools.reader.pretrain import PretrainConfig, Pretraining

TOY = PretrainConfig(
    num_steps=11,
    batch_size=3,
    vocab_size=400,
    hidden_size=16,
    num_layers=1,
    num_heads=2,
    context_length=512,
    save_every=4,
)


@pytest.fixture(scope="module", autouse=True)
def small():
    """Few stories make a poor tokenizer, in no time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pretrain, "TOKENIZER_STORIES", 60)
        patch.setattr(card, "KNOWN", 50)
        yield


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A run that nobody stopped, and its folder."""
    out = tmp_path_factory.mktemp("whole")
    return pretrain.pretrain(TOY, out, problems=2), out


@pytest.mark.slow
def test_it_learns_and_writes_the_model_with_its_card(whole):
    made, out = whole
    assert made.step == 11 and made.losses[-1] < made.losses[0]
    figures = json.loads((out / "model" / FIGURES).read_text())
    assert (out / "model" / CARD).read_text() == card_text(figures)
    assert figures["config"]["hidden_size"] == 16 and figures["steps"] == 11
    stored = load_model(out / "model")
    for ours, theirs in zip(stored.parameters(), made.model.parameters(), strict=True):
        assert torch.equal(ours, theirs.float())
    assert (out / "half" / "config.json").is_file()


@pytest.mark.slow
def test_killed_and_resumed_bit_for_bit(whole, tmp_path, monkeypatch):
    """It dies after a step that no checkpoint knows."""
    learn = Pretraining.learn

    def die(self):
        if self.step == 7:
            raise SystemExit
        return learn(self)

    monkeypatch.setattr(Pretraining, "learn", die)
    with pytest.raises(SystemExit):
        pretrain.pretrain(TOY, tmp_path)
    monkeypatch.setattr(Pretraining, "learn", learn)
    resumed = pretrain.pretrain(TOY, tmp_path, problems=2)
    assert resumed.losses == whole[0].losses
    weights = (made.model.state_dict() for made in (resumed, whole[0]))
    for ours, theirs in zip(*(each.values() for each in weights), strict=True):
        assert torch.equal(ours, theirs)
    with pytest.raises(ValueError, match=r"checkpoint.pt is a checkpoint of other"):
        pretrain.pretrain(PretrainConfig(seed=1), tmp_path)
