"""A real TRL run, replayed through our loop, ends in the same weights."""

import copy
from dataclasses import replace

import pytest
import torch
from datasets import Dataset
from tokenizers import Regex, Tokenizer, models, pre_tokenizers
from transformers import AutoModelForCausalLM, PreTrainedTokenizerFast

from grpo_course.formulas import compute_deltas
from grpo_course.loop import Rollout, TrainConfig, train
from grpo_course.sampling import Sampler
from grpo_course.text.lm import CausalPolicy
from grpo_course.text.tiny import make_tiny_model
from grpo_course.text.trl import to_trl_config

trl = pytest.importorskip("trl", reason="TRL is the optional extra `scale`")

PAD, EOS, SYMBOLS = "<pad>", "<eos>", list("0123456789+=")
PROMPTS = ["1+2=", "34+5=", "9+8+76="]  # three lengths: two are padded on the left
GROUP, LENGTH, TEMPERATURE, LEARNING_RATE = 4, 12, 0.8, 1e-3
# Adam divides by the size of a gradient. Where that is all rounding, a small epsilon
# makes whole steps of it, in either program.
ADAM_EPSILON = 1e-6
CONFIG = TrainConfig(
    num_epochs=3,
    num_steps_per_epoch=2,
    num_responses=GROUP,
    max_length=LENGTH,
    epsilon_high=0.28,
    kl_penalty=0.05,
    kl_estimator="corrected_k3",
    compute_ref_model_period=100,
    max_gradient_norm=1.0,
)
# Every loss of TRL's is compared by its own tensors in test_trl_loss.
RUNS = {
    "GRPO": {"kl_estimator": "k3"},
    "DAPO": {"aggregation": "token_mean"},
    "Dr. GRPO": {"aggregation": "constant", "deltas_mode": "centered_rewards"},
    "GSPO": {"ratio_level": "sequence", "epsilon": 0.003, "epsilon_high": 0.004}
    | {"kl_estimator": "k3"},  # as in both programs
}


@pytest.fixture(scope="module")
def tokenizer():
    words = {token: i for i, token in enumerate([PAD, EOS, *SYMBOLS])}
    plain = Tokenizer(models.WordLevel(words, unk_token=PAD))
    plain.pre_tokenizer = pre_tokenizers.Split(Regex("."), "isolated")
    names = {"pad_token": PAD, "eos_token": EOS, "padding_side": "left"}
    return PreTrainedTokenizerFast(tokenizer_object=plain, **names)


@pytest.fixture(scope="module")
def folder(tokenizer, tmp_path_factory):
    """A tiny model on disk: TRL loads its reference from there."""
    path = tmp_path_factory.mktemp("model")
    sizes = {"hidden_size": 32, "num_heads": 2, "context_length": 64}
    make_tiny_model(tokenizer, **sizes).save_pretrained(path)
    return path


def ones(completions, **_):
    """Reward: how many of the symbols are ones, plus the length in a small coin."""
    return [text.count("1") + 0.01 * len(text) for text in completions]


class Recorder(trl.GRPOTrainer):
    """TRL's trainer; it keeps what it sampled and what it made of the rewards."""

    def _generate_and_score_completions(self, inputs):
        made = super()._generate_and_score_completions(inputs)
        self.recorded = [*getattr(self, "recorded", []), dict(made)]
        return made

    def _calculate_rewards(self, *given):
        rewards = super()._calculate_rewards(*given)
        self.rewards = [*getattr(self, "rewards", []), rewards.flatten()]
        return rewards


def run_trl(config, folder, tokenizer):
    """Train with TRL. Its model, what it recorded, and its log."""
    args = to_trl_config(
        config,
        output_dir=str(folder / "out"),
        use_cpu=True,
        bf16=False,
        report_to="none",
        save_strategy="no",
        disable_tqdm=True,
        logging_steps=1,
        gradient_checkpointing=False,
        optim="adamw_torch",
        learning_rate=LEARNING_RATE,
        adam_epsilon=ADAM_EPSILON,
        lr_scheduler_type="constant",
        per_device_train_batch_size=len(PROMPTS) * GROUP,
        temperature=TEMPERATURE,
        seed=1,
    )
    trainer = Recorder(
        model=AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32),
        reward_funcs=ones,
        args=args,
        train_dataset=Dataset.from_list([{"prompt": text} for text in PROMPTS]),
        processing_class=tokenizer,
    )
    trainer.train()
    return trainer


class Replay:
    """A policy that writes what TRL wrote, and scores it itself."""

    def __init__(self, policy, recorded):
        self.policy, self.rollouts = policy, iter(recorded)

    def __deepcopy__(self, memo):
        return Replay(copy.deepcopy(self.policy, memo), [])

    def sample(self, prompts, num_responses):
        made = next(self.rollouts)
        groups = (-1, num_responses, made["completion_ids"].shape[-1])
        return Rollout(
            made["prompt_ids"][::num_responses],
            made["completion_ids"].reshape(groups),
            made["completion_mask"].bool().reshape(groups),
        )

    def log_probs(self, rollout):
        return self.policy.log_probs(rollout)


def run_ours(config, folder, tokenizer, recorded):
    """Train with the course's loop on what TRL recorded."""
    eos, pad = tokenizer.eos_token_id, tokenizer.pad_token_id
    sampler = Sampler(LENGTH, eos, pad, TEMPERATURE)
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    policy = Replay(CausalPolicy(model, sampler), recorded)
    advantages = iter([made["advantages"].reshape(-1, GROUP) for made in recorded])
    knobs = {"lr": LEARNING_RATE, "eps": ADAM_EPSILON, "weight_decay": 0.0}
    optimizer = torch.optim.AdamW(model.parameters(), **knobs)
    prompts = torch.zeros(len(PROMPTS), 1)  # the replay knows its own
    history = train(
        policy,
        prompts,
        lambda _: next(advantages),
        optimizer,
        replace(config, deltas_mode="rewards"),
    )
    return model, history


def distance(one, other):
    """The largest difference between two models' weights."""
    pairs = zip(one.parameters(), other.parameters(), strict=True)
    return max((a - b).abs().max().item() for a, b in pairs)


@pytest.mark.slow
@pytest.mark.parametrize("name", RUNS)
def test_replay(name, folder, tokenizer):
    config = replace(CONFIG, **RUNS[name])
    trainer = run_trl(config, folder, tokenizer)
    recorded = trainer.recorded
    assert len(recorded) == config.num_epochs
    masks = torch.cat([made["completion_mask"].sum(-1) for made in recorded])
    assert masks.min() < masks.max()  # ragged
    assert any((made["prompt_mask"] == 0).any() for made in recorded)  # left-padded
    for rewards, made in zip(trainer.rewards, recorded, strict=True):
        deltas = compute_deltas(rewards.reshape(-1, GROUP), config.deltas_mode)
        torch.testing.assert_close(deltas.flatten(), made["advantages"])
    model, history = run_ours(config, folder, tokenizer, recorded)
    start = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    assert distance(model, trainer.model) < 1e-5
    assert distance(start, model) > 3e-3
    compare_logs(trainer.state.log_history, history, config)


def compare_logs(log, history, config):
    """TRL's printed loss is ours; so is its KL, which is always a mean over tokens."""
    log = [line for line in log if "loss" in line]
    names = ["loss", "kl"] if config.aggregation == "token_mean" else ["loss"]
    for name in names:
        theirs = torch.tensor([line[name] for line in log])
        torch.testing.assert_close(history.curve(name), theirs, rtol=1e-4, atol=2e-6)
