"""Each setting of a text run reaches what it sets: change one, and that changes.

A row says the changed value, what to look at, and what must be true of it without and
with the change. A field without a row fails the test. The knobs of the loop have their
table in test_settings_reach.py; here the loop must be given the config as it is.
"""

import json
import random
from functools import cached_property
from math import isclose

import pytest
import torch
from transformers import GPT2LMHeadModel, Qwen2ForCausalLM

from grpo_course.files import json_lines
from grpo_course.loop import TrainConfig
from grpo_course.text import training
from grpo_course.text.cli import evaluate
from grpo_course.text.countdown import Countdown
from grpo_course.text.grader import is_correct
from grpo_course.text.gsm8k import GSM8K
from grpo_course.text.models import save_model
from grpo_course.text.prompts import as_rollout
from grpo_course.text.reverse import Reverse
from grpo_course.text.runs import Run, begin, saved_epochs
from grpo_course.text.scoring import recomputes
from grpo_course.text.stories import make_problems
from grpo_course.text.tiny import make_tiny_model
from grpo_course.text.training import GRPOConfig, warm_start
from tests import conftest
from tests.test_settings_reach import Row, names

OWN = ["base", "learning_rate", "save_every", "held_out_every", "eval_samples"]
SMALL = {k: v for k, v in conftest.SMALL.items() if k not in OWN}
SMALL |= {"num_epochs": 4, "max_new_tokens": 6, "warm_start_steps": 2}


class Bench:
    """What comes of a config, each part made when it is looked at."""

    def __init__(self, config, folder):
        self.config, self.folder = config, folder

    @cached_property
    def task(self):
        return training.make_task(self.config)

    @cached_property
    def problems(self):
        return training.load_problems(self.config)

    @cached_property
    def parts(self):
        return training.make_model(self.config, self.problems)

    @cached_property
    def environment(self):
        return training.make_environment(self.config, self.problems, self.parts[1])

    @cached_property
    def policy(self):
        return training.make_policy(self.config, *self.parts)

    @cached_property
    def run(self):
        begin(self.config, self.folder)
        return Run(self.folder, show=False)


# What to look at


def shape(name):
    return lambda bench: getattr(bench.parts[0].config, name)


def sampler(name):
    return lambda bench: getattr(bench.policy.sampler, name)


def adam(name):
    return lambda bench: bench.run.trainer.optimizer.param_groups[0][name]


def rates(bench):
    """The learning rate of each epoch."""
    optimizer, schedule, found = bench.run.trainer.optimizer, bench.run.schedule, []
    for _ in range(bench.config.num_epochs):
        found += schedule.get_last_lr()
        optimizer.step()
        schedule.step()
    return [rate / bench.config.learning_rate for rate in found]


def prompts(bench):
    """What is asked, in the training and in the warm start."""
    tokenizer, policy, seen = bench.parts[1], bench.policy, []
    score = policy.log_probs
    policy.log_probs = lambda rollout: (seen.append(rollout), score(rollout))[1]
    demonstrate = bench.task.demonstration
    warm_start(policy, tokenizer, bench.problems, demonstrate, bench.config)
    return tokenizer.batch_decode(
        [*bench.environment.tokens[:1], *seen[0].prompts[:1]], skip_special_tokens=True
    )


def random_parts(bench):
    """All that a seed decides: problems, their order, weights, samples."""
    weights = [weight.sum().item() for weight in bench.parts[0].parameters()]
    chosen, samples = bench.environment.chosen(0), bench.policy.generator
    questions = [problem.question for problem in bench.problems]
    return questions, chosen, weights, samples.initial_seed(), shown(bench)


def shown(bench):
    """What the warm start demonstrates."""
    told, plain = [], bench.task.demonstration

    def demonstrate(problem, rng):
        told.append(plain(problem, rng))
        return told[-1]

    warm_start(bench.policy, bench.parts[1], bench.problems, demonstrate, bench.config)
    return told


def gold_reward(bench):
    """The reward of a perfect response."""
    problem = bench.problems[0]
    gold = as_rollout(
        bench.parts[1], [problem.question], [bench.task.gold(problem)], None
    )
    return bench.environment.reward(gold).item()


def way(bench):
    """How far the warm start takes the weights."""
    model = bench.parts[0]
    before = [weight.detach().clone() for weight in model.parameters()]
    training.run_warm_start(bench.config, *bench.parts, bench.problems)
    pairs = zip(before, model.parameters(), strict=True)
    return sum((a - b).abs().sum().item() for a, b in pairs)


def device(bench):
    try:
        return bench.policy.model.device.type
    except ValueError as refused:
        return str(refused)


def needed(bench):
    """The rank of the adapter; without peft, what is said of that."""
    try:
        adapters = getattr(bench.policy.model, "peft_config", None)
    except ImportError as refused:
        return refused
    return adapters["default"].r if adapters else 0


def threads(bench):
    assert bench.run
    return torch.get_num_threads()


def kept(bench):
    bench.run.go()
    return saved_epochs(bench.run.out)


def lines_of(bench, name):
    bench.run.go()
    lines = (bench.folder / f"{name}.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


def looks(bench):
    """The epochs before which held-out problems are looked at, and the last look."""
    return [r["epoch"] for r in lines_of(bench, "metrics") if "held_out" in r]


def kept_texts(bench):
    """How many prompts an epoch have their responses kept, all four of each."""
    kept = [line["epoch"] for line in lines_of(bench, "samples")]
    return [kept.count(epoch) / 4 for epoch in range(4)]


def num_evaluated(bench):
    path = bench.run.newest()
    return len(training.load_trained(bench.config, path, "validation")[1].problems)


def measures(bench):
    """What `evaluate` reports of the run's model: the mean of each measure."""
    file = bench.folder.with_name(f"{bench.folder.name}.json")
    assert evaluate(["--model", str(bench.run.out), "--out", str(file)]) == 0
    return {row["measure"]: row["mean"] for row in json.loads(file.read_text())}


def worked(look):
    """Something about each demonstration of a task."""

    def see(bench):
        rng = random.Random(0)
        told = [bench.task.demonstration(p, rng) for p in bench.problems]
        return [look(*pair) for pair in zip(told, bench.problems, strict=True)]

    return see


def becomes(before, after):
    return lambda b, a: (b, a) == (before, after)


RUN = {
    "model": Row("a folder", shape("hidden_size"), becomes(16, 8)),
    "task": Row("countdown", lambda b: type(b.task), becomes(GSM8K, Countdown)),
    "task_settings": Row({"slips": 0.5}, lambda b: b.task.slips, becomes(0.0, 0.5)),
    "num_problems": Row(7, lambda b: len(b.problems), becomes(40, 7)),
    "system_prompt": Row(
        "Be brief.",
        prompts,
        lambda b, a: (
            not any("brief" in text for text in b)
            and all("brief" in text for text in a)
        ),
    ),
    "seed": Row(
        1,
        random_parts,
        lambda b, a: all(one != other for one, other in zip(b, a, strict=True)),
    ),
    "num_prompts": Row(5, lambda b: len(b.environment.prompts(0)), becomes(3, 5)),
    "reward_weights": Row(
        {"format": 3.0},
        gold_reward,
        lambda b, a: isclose(b, 1.2, abs_tol=1e-6) and isclose(a, 4),
    ),
    "max_new_tokens": Row(5, sampler("max_new_tokens"), becomes(6, 5)),
    "temperature": Row(0.5, sampler("temperature"), becomes(1.0, 0.5)),
    "top_k": Row(5, sampler("top_k"), becomes(None, 5)),
    "top_p": Row(0.5, sampler("top_p"), becomes(None, 0.5)),
    "learning_rate": Row(1e-3, adam("initial_lr"), becomes(2e-4, 1e-3)),
    "schedule": Row(
        "constant", rates, lambda b, a: b[3] < b[2] < b[1] == 1 == a[1] == a[2] == a[3]
    ),
    "warmup_epochs": Row(
        3, rates, lambda b, a: (b[:2], a) == ([0.5, 1], [0.25, 0.5, 0.75, 1])
    ),
    "weight_decay": Row(0.3, adam("weight_decay"), becomes(0.0, 0.3)),
    "adam_beta1": Row(0.5, adam("betas"), becomes((0.9, 0.95), (0.5, 0.95))),
    "adam_beta2": Row(0.5, adam("betas"), becomes((0.9, 0.95), (0.9, 0.5))),
    "device": Row("cuda", device, lambda b, a: b == "cpu" and "cuda" in a),
    "dtype": Row(
        "bfloat16", lambda b: b.policy.autocast, becomes(None, torch.bfloat16)
    ),
    "num_threads": Row(2, threads, becomes(1, 2), {"warm_start_steps": 0}),
    "gradient_checkpointing": Row(
        True,
        lambda b: recomputes(b.policy.model),
        becomes(False, True),
    ),
    "lora_rank": Row(4, needed, lambda b, a: b == 0 and (a == 4 or "peft" in str(a))),
    "architecture": Row(
        "gpt2", lambda b: type(b.parts[0]), becomes(Qwen2ForCausalLM, GPT2LMHeadModel)
    ),
    "hidden_size": Row(8, shape("hidden_size"), becomes(16, 8)),
    "num_layers": Row(2, shape("num_hidden_layers"), becomes(1, 2)),
    "num_heads": Row(4, shape("num_attention_heads"), becomes(2, 4)),
    "vocab_size": Row(270, lambda b: len(b.parts[1]), becomes(300, 270)),
    "context_length": Row(64, shape("max_position_embeddings"), becomes(256, 64)),
    "warm_start_steps": Row(3, lambda b: len(shown(b)), becomes(16, 24)),
    "warm_start_batch_size": Row(5, lambda b: len(shown(b)), becomes(16, 10)),
    "warm_start_learning_rate": Row(0.0, way, lambda b, a: b > 0.1 and a == 0),
    "save_every": Row(3, kept, becomes([0, 2, 4], [0, 3, 4]), {"save_every": 2}),
    "keep_checkpoints": Row(1, kept, becomes([0, 3, 4], [0, 4]), {"save_every": 1}),
    "held_out_every": Row(
        2, looks, becomes([0, 3, 4], [0, 2, 4]), {"held_out_every": 3}
    ),
    "keep_samples": Row(3, kept_texts, becomes([1] * 4, [3] * 4)),
    "eval_problems": Row(5, num_evaluated, becomes(9, 5)),
    "eval_samples": Row(
        3, measures, lambda b, a: "sampled pass@8" in b and "sampled pass@3" in a
    ),
    "eval_temperature": Row(
        1e-6,
        measures,
        lambda b, a: a["sampled format"] == a["greedy format"] != b["sampled format"],
    ),
}


def numbers(problems):
    return [number for problem in problems for number in problem.operands]


TASKS = {
    "gsm8k": {
        "data": Row("a folder", lambda b: len(b.problems), becomes(40, 18)),
        "operands": Row(
            (2, 3),
            lambda b: numbers(b.problems),
            lambda b, a: max(b) > 3 and set(a) == {2, 3},
        ),
        "operations": Row(
            "*",
            lambda b: {sign for p in b.problems for sign in p.operations},
            becomes({"+", "-"}, {"*"}),
        ),
        "steps": Row(
            (1,),
            lambda b: {len(p.operations) for p in b.problems},
            becomes({1, 2}, {1}),
        ),
        "forms": Row(
            (0, 1, 0, 0),
            worked(lambda text, _: text.count("<")),
            lambda b, a: 4 in b and set(a) == {0},  # the second is without tags
        ),
        "slips": Row(
            1.0,
            worked(lambda text, problem: is_correct(text, problem.answer)),
            lambda b, a: any(b) and not any(a),
        ),
    },
    "countdown": {
        "numbers": Row(
            4,
            lambda b: {len(p.answer["numbers"]) for p in b.problems},
            becomes({3}, {4}),
        ),
        "largest": Row(
            3,
            lambda b: max(max(p.answer["numbers"]) for p in b.problems),
            becomes(9, 3),
        ),
    },
    "reverse": {
        "longest": Row(
            4, lambda b: max(len(p.answer) for p in b.problems), becomes(6, 4)
        ),
    },
}


@pytest.fixture(scope="session")
def given(tokenizer, tmp_path_factory):
    """The folders that some values name: a model, and a data set."""
    folder = tmp_path_factory.mktemp("given")
    model = make_tiny_model(tokenizer, hidden_size=8, num_layers=1, num_heads=2)
    save_model(model, tokenizer, folder)
    rows = make_problems("train", 20, seed=3)
    lines = json_lines([{"question": p.question, "answer": p.solution} for p in rows])
    (folder / "train.jsonl").write_text(lines)
    return str(folder)


def test_every_field_has_a_row():
    assert RUN.keys() == names(GRPOConfig) - names(TrainConfig)
    assert TASKS["gsm8k"].keys() == names(GSM8K)
    assert TASKS["countdown"].keys() == names(Countdown)
    assert TASKS["reverse"].keys() == names(Reverse)


def check(row, plain, changed, folder):
    before = row.look(Bench(GRPOConfig(**SMALL | plain), folder / "before"))
    after = row.look(Bench(GRPOConfig(**SMALL | plain | changed), folder / "after"))
    assert row.is_right(before, after)
    assert not row.is_right(before, before)  # the row can fail


@pytest.mark.slow
@pytest.mark.parametrize("name", RUN)
def test_a_setting_of_a_run_reaches_what_it_sets(name, given, tmp_path):
    row = RUN[name]
    value = given if row.value == "a folder" else row.value
    check(row, row.knobs, {name: value}, tmp_path)


@pytest.mark.parametrize(
    ("task", "name"), [(task, name) for task in TASKS for name in TASKS[task]]
)
def test_a_setting_of_a_task_reaches_what_it_sets(task, name, given, tmp_path):
    row = TASKS[task][name]
    value = given if row.value == "a folder" else row.value
    check(row, {"task": task}, {"task_settings": {name: value}}, tmp_path)


def test_the_loop_is_given_the_config_as_it_is(monkeypatch, tmp_path):
    """In a folder and in memory: so each knob of the loop reaches it.

    One of them is the policy's, too: a reference scores by parts as large.
    """
    bench = Bench(GRPOConfig(**SMALL, epsilon=0.3, micro_batch_size=5), tmp_path)
    assert bench.policy.prompts_at_once == 5
    assert bench.run.trainer.config == bench.config
    monkeypatch.setattr(training.Trainer, "train", lambda trainer: trainer.config)
    _, config = training.train_policy(bench.config, *bench.parts, bench.environment)
    assert config is bench.config
