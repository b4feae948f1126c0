"""Record what GRPO makes of SmolLM2.

.venv/bin/python -m tools.record GRPO --seeds 0 1 2

Each arm of ARMS is trained once a seed, half an hour on one core or some minutes on a
GPU, and measured as it goes. What is recorded is not done again, and a run that was
stopped begins anew. Written to grpo_course/lessons/smollm2.json.
"""

import argparse
import json
import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import torch

from grpo_course.checks import settings
from grpo_course.files import write_atomically
from grpo_course.lessons.finale import (
    CALLS,
    FIRST,
    HELD,
    PATH,
    SAME,
    read_record,
)
from grpo_course.text.environment import Environment
from grpo_course.text.evaluation import Scores, greedy_scores, sampled_scores
from grpo_course.text.gsm8k import load_gsm8k
from grpo_course.text.lm import CausalPolicy
from grpo_course.text.models import find_device, load_model, load_tokenizer
from grpo_course.text.smollm2 import ShortAnswers, stated
from grpo_course.text.stories import WordProblem
from grpo_course.text.training import (
    GRPOConfig,
    imitate_right,
    load_problems,
    make_environment,
    make_policy,
    presets_of,
    run_warm_start,
    train_policy,
)

PAGE = Path("INSTRUCTORS.md")  # ordinary English
CONFIG = presets_of("smollm2")["smollm2"]
WITH_TOOL = presets_of("calculator")["smollm2"]
STOPS = (0, 4, 8, 16, 32)  # updates
# What else an arm is asked, before and after: settings of the task, and its split.
Tests = dict[str, tuple[dict[str, Any], str]]
ANY: Tests = {
    "new wordings": ({}, "unseen_phrasings"),
    "two steps": ({"steps": (2,)}, "unseen_problems"),
}
OTHERS: dict[str, Tests] = {
    FIRST: ANY
    | {
        "larger numbers": ({"operands": (13, 40)}, "unseen_problems"),
        "times": ({"operations": "*", "operands": (2, 9)}, "unseen_problems"),
    },
    CALLS: ANY | {"larger numbers": ({"operands": (100, 999)}, "unseen_problems")},
}
GREEDY, DEEP, MANY, FEW = 64, 32, 8, 4  # problems; problems that get samples; samples
COOLED = 0.3  # a temperature
LONGEST = 40  # tokens, where two steps fit
LARGER = "GRPO, numbers up to 40"
TOLD = "You solve word problems in one short line. End with Answer: and the number."


@settings()
class NoExample(ShortAnswers):
    examples: ClassVar[Sequence[tuple[str, str]]] = ()


@settings()
class FourExamples(ShortAnswers):
    examples: ClassVar[Sequence[tuple[str, str]]] = (
        *ShortAnswers.examples,
        (
            "Tom has 9 coins and finds 3 more. How many does he have in all?",
            "9 + 3 = 12. Answer: 12",
        ),
        (
            "There are 11 birds in a tree and 4 fly away. How many stay?",
            "11 - 4 = 7. Answer: 7",
        ),
    )


@settings()
class WithTwenties(ShortAnswers):
    """Every tenth training problem is an addition that makes 20 or 21.

    With numbers up to 12 alone none does: all such additions happen to be held out. So
    these have one number above 12.
    """

    def problems(self, split: str, count: int | None, seed: int) -> list[WordProblem]:
        problems = super().problems(split, count, seed)
        if split != "train":
            return problems
        larger = replace(self, operands=(1, 20), operations="+")
        many = super(WithTwenties, larger).problems(split, 20 * len(problems), seed)
        wanted = [each for each in many if each.answer in ("20", "21")]
        tenth = range(0, len(problems), 10)
        for place, problem in zip(tenth, wanted, strict=False):
            problems[place] = problem
        return problems


# As they go; the others begin as the first, and are measured at their end.
MEASURED = (
    FIRST,
    LARGER,
    "GRPO, without an example",
    "GRPO, four examples",
    CALLS,
)
ARMS = {
    FIRST: CONFIG,
    "GRPO, three times the rate": replace(CONFIG, learning_rate=3e-5),
    "GRPO, form unpaid": replace(CONFIG, reward_weights={"accuracy": 1.0, "form": 0.0}),
    "GRPO, with a KL": replace(CONFIG, kl_penalty=0.04),
    LARGER: replace(CONFIG, task_settings={"operands": (1, 40)}),
    "GRPO, without an example": replace(
        CONFIG, task="tools.record:NoExample", system_prompt=TOLD
    ),
    "GRPO, four examples": replace(CONFIG, task="tools.record:FourExamples"),
    "GRPO, also sums of 20 and 21": replace(CONFIG, task="tools.record:WithTwenties"),
    "imitation": replace(
        CONFIG, warm_start_batch_size=8, warm_start_learning_rate=1e-5
    ),
    "supervised": replace(
        CONFIG, warm_start_batch_size=8, warm_start_learning_rate=3e-5
    ),
    CALLS: WITH_TOOL,
    f"{CALLS}, three times the rate": replace(WITH_TOOL, learning_rate=3e-5),
    f"{CALLS}, a third of the rate": replace(WITH_TOOL, learning_rate=3e-6),
}


def held_out(
    config: GRPOConfig,
    tokenizer: Any,
    split: str = "unseen_problems",
    count: int | None = None,
    **settings: Any,
) -> Environment:
    """Problems of a split that are the seed's own, asked as this arm asks."""
    settings = {**config.task_settings, **settings}
    config = replace(config, task_settings=settings, seed=HELD + config.seed)
    problems = load_problems(config, split, count or GREEDY)
    return make_environment(config, problems, tokenizer)


def easy_rows(count: int) -> list[WordProblem]:
    """The first of GSM8K's training rows with at most two steps and 220 letters."""
    rows = (
        row
        for row in load_gsm8k("train")
        if row.solution.count("<<") <= 2 and len(row.question) <= 220
    )
    return [row for row, _ in zip(rows, range(count), strict=False)]


def marks(values: torch.Tensor) -> str:
    """A character for each problem: how many of its samples, 35 at most, count."""
    digits = "0123456789abcdefghijklmnopqrstuvwxyz"
    return "".join(digits[int(count)] for count in values.sum(-1))


def row(split: str, way: str, scores: Scores) -> dict[str, Any]:
    """What came back, as text: right and well-formed, problem by problem."""
    return {
        "split": split,
        "way": way,
        "samples": scores.accuracy.shape[-1],
        "right": marks(scores.accuracy),
        "form": marks(scores.earned["form"]),
    }


def look(
    config: GRPOConfig, policy: CausalPolicy, tokenizer: Any, samples: int
) -> Iterator[dict[str, Any]]:
    """The problems of its own kind: greedily, sampled, and what it writes to four."""
    test = held_out(config, tokenizer)
    greedy = greedy_scores(policy, test)
    operations = "".join(p.operations[0] for p in test.problems)  # type: ignore
    yield row(SAME, "greedy", greedy) | {"operations": operations}
    few = held_out(config, tokenizer, count=DEEP)  # the first of them
    drawn = sampled_scores(policy, few, samples, batch_size=64 // samples)
    yield row(SAME, "sampled", drawn)
    for at, problem in enumerate(test.problems[:4]):
        told = {"question": problem.question, "answer": problem.answer}
        yield told | {"greedy": greedy.texts[at][0], "sampled": drawn.texts[at][:2]}
    if samples > FEW:
        cooled = sampled_scores(policy, few, FEW, temperature=COOLED, batch_size=16)
        yield row(SAME, "cooled", cooled)
        said = [[stated(text) for text in texts] for texts in drawn.texts]
        answers = [[n if n is None else str(n) for n in each] for each in said]
        yield {"answers": answers, "gold": [problem.answer for problem in few.problems]}


def look_around(
    arm: str, config: GRPOConfig, policy: CausalPolicy, tokenizer: Any
) -> Iterator[dict[str, Any]]:
    """Other problems, greedily; of the first arm also GSM8K's, and English."""
    for name, (values, split) in OTHERS[arm].items():
        test = held_out(config, tokenizer, split, **values)
        yield row(name, "greedy", greedy_scores(policy, test))
    if arm == FIRST:
        easy = make_environment(config, easy_rows(GREEDY), tokenizer)
        yield row("GSM8K, easy rows", "greedy", greedy_scores(policy, easy))
        yield {"nats a token of English": nats(policy, tokenizer)}


def nats(policy: CausalPolicy, tokenizer) -> float:
    """Mean negative log-probability of the tokens of PAGE."""
    text = PAGE.read_text(encoding="utf-8")
    ids = tokenizer(text, return_tensors="pt")["input_ids"][:, :1024]
    with torch.no_grad():
        scores = policy.model(ids).logits[:, :-1].log_softmax(-1)
    return -scores.gather(-1, ids[:, 1:, None]).mean().item()


def record(arm: str, seed: int, folder: str, updates: int) -> None:
    """Train and measure one arm with one seed, and keep what was seen."""
    config = replace(ARMS[arm], seed=seed, num_epochs=updates)
    if arm == "supervised":  # on solutions, of as many problems as GRPO asks
        config = replace(config, warm_start_steps=updates)
    if arm == "imitation":  # of as many samples as GRPO takes, all drawn at the start
        count = updates * config.num_prompts
        config = replace(config, num_problems=count, warm_start_steps=updates)
    longer = replace(config, max_new_tokens=LONGEST)
    model = load_model(folder, find_device(config.device))
    tokenizer = load_tokenizer(folder)
    rows: list[dict[str, Any]] = []

    def keep(update: int) -> None:
        policy = make_policy(longer, model, tokenizer)
        at_an_end = update in (0, updates)
        many = MANY if arm == FIRST and at_an_end else FEW
        seen = list(look(config, policy, tokenizer, many))
        if at_an_end and arm in OTHERS:
            seen += look_around(arm, config, policy, tokenizer)
        rows.extend({"update": update, **each} for each in seen)
        print(arm, seed, update, seen[0]["right"].count("1") / GREEDY, flush=True)

    environment = make_environment(config, load_problems(config), tokenizer)
    begun, curves = time.time(), {}
    if arm == "imitation":
        policy = make_policy(config, model, tokenizer)
        imitate_right(config, policy, environment)
    elif arm == "supervised":
        run_warm_start(config, model, tokenizer, environment.problems)
    else:
        coming = iter(range(updates))

        def observe(policy: CausalPolicy) -> dict:
            update = next(coming)
            if update in STOPS and (update or arm in MEASURED):
                keep(update)
            return {}

        parts = config, model, tokenizer, environment
        _, history = train_policy(*parts, observe=observe)
        names = ("accuracy", "form", "mean_length", "sampled_entropy", "tied_groups")
        curves = {name: rounded(history.curve(name).tolist()) for name in names}
    keep(updates)
    minutes = round((time.time() - begun) / 60, 1)
    told = {"arm": arm, "seed": seed, "updates": updates, "minutes": minutes}
    kept = [*read_record(), told | {"curves": curves, "rows": rows}]
    kept.sort(key=lambda run: (list(ARMS).index(run["arm"]), run["seed"]))
    write_atomically(PATH, json.dumps(kept, indent=1) + "\n")


def rounded(values: Sequence[float]) -> list[float | None]:
    return [None if math.isnan(value) else round(value, 4) for value in values]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("arms", nargs="+", choices=ARMS)
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--updates", type=int, default=32)
    parser.add_argument("--model", default=CONFIG.model)
    options = parser.parse_args()
    for seed in options.seeds:
        for arm in options.arms:
            if not any((r["arm"], r["seed"]) == (arm, seed) for r in read_record()):
                record(arm, seed, options.model, options.updates)


if __name__ == "__main__":
    main()
