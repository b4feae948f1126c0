"""Record what the larger model does on GSM8K's rows, for notebook 18.

.venv/bin/python -m tools.rows --model models/qwen
.venv/bin/python -m tools.rows --model models/smollm2 --smaller
.venv/bin/python -m tools.rows --run runs/qwen --name "form unpaid"
.venv/bin/python -m tools.rows --run runs/planned --name "form unpaid" --planned
.venv/bin/python -m tools.rows --model models/qwen --sample
.venv/bin/python -m tools.rows --run runs/planned --sample
.venv/bin/python -m tools.rows --model models/qwen --supervise
.venv/bin/python -m tools.rows --model models/qwen --test --name before --dtype float32
.venv/bin/python -m grpo_course train --task tools.rows:Coin --out runs/coin

The first answers 64 rows that are held back from training greedily, with 0, 2, 4 and 8
worked examples and with two marks for the answer. What is recorded is not done again.
The second asks the model of notebook 12 the same, with the prompt of the runs. The
third reads a folder of `train --task qwen`: what it noted of each update, a few
responses, and what the model at its end makes of the same 64 rows. The fourth does so
for a run that was planned as a test of the others: it asks 256 rows, before and after.
(Those that are kept note the form by row only before training, of the last 192.)
The fifth samples eight answers of the model before training to 96 of the new rows. (In
those that are kept, the opening that all prompts share was read once for all rows, by
a script: 64 greedy answers came out as here.) The next samples as many of the same rows
after a run; `--temperature 0.7` samples them cooler. Then the rival: the same model
imitates solutions of GSM8K, with the prompt of the run. `--test` asks a model, or a run
at its end, the first 256 of GSM8K's own test rows; the imitation is one that
tools/moved.py kept. (There, too, a script read the opening once.) The last trains for
a coin, and the third reads it. Written to grpo_course/lessons/rows.json. The first
three take some minutes each on two cores, the others half an hour or more.
"""

import argparse
import json
import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar
from zlib import crc32

import torch

from grpo_course.checks import settings
from grpo_course.files import write_atomically
from grpo_course.lessons.finale import FIRST_ROWS, ROWS, kinds_of_rows, read_rows
from grpo_course.text import qwen, smollm2
from grpo_course.text.config import GRPOConfig
from grpo_course.text.environment import Environment
from grpo_course.text.evaluation import greedy_scores, sampled_scores
from grpo_course.text.lm import CausalPolicy
from grpo_course.text.models import load_model, load_tokenizer
from grpo_course.text.responses import Completion, completion_texts
from grpo_course.text.runs import (
    METRICS,
    SAMPLES,
    checkpoint_path,
    read_lines,
    saved_config,
    saved_epochs,
)
from grpo_course.text.training import (
    load_problems,
    load_trained,
    make_environment,
    make_policy,
    presets_of,
    run_warm_start,
)

CONFIG = presets_of("qwen")["qwen"]
COUNTS, PLANNED, SHOWN = (0, 2, 4, 8), 256, 4
GROUP = CONFIG.num_responses  # a run keeps whole groups; the first of each is shown
STEPS, SOLUTIONS, RATE = 32, 4, 1e-5  # of the imitation
NOTED = ("accuracy", "form", "mean_length", "tied_groups", "truncated")
MORE = (
    (
        "A pair of shoes costs $80 and is sold at 25% off. How much does it cost now?",
        "80 * 25 / 100 = 20 dollars off.\n80 - 20 = 60 dollars.\n#### 60",
    ),
    (
        "Tim reads 12 pages a day. His book has 180 pages, and he has read 36. In how "
        "many days is he done?",
        "180 - 36 = 144 pages are left.\n144 / 12 = 12 days.\n#### 12",
    ),
    (
        "Lena is 4 years younger than Max. In 3 years Max will be 20. How old is Lena "
        "now?",
        "20 - 3 = 17, so Max is 17 now.\n17 - 4 = 13, so Lena is 13.\n#### 13",
    ),
    (
        "A farmer has 40 sheep and a fifth as many goats. He sells half of his goats. "
        "How many animals has he now?",
        "40 / 5 = 8 goats.\n8 / 2 = 4 goats are left.\n40 + 4 = 44 animals.\n#### 44",
    ),
    (
        "Three friends share a bill of $54 equally, and each adds a tip of $2. What "
        "does each pay?",
        "54 / 3 = 18 dollars each.\n18 + 2 = 20 dollars with the tip.\n#### 20",
    ),
    (
        "A tank of 90 liters loses 2 liters a minute, and 8 liters are left in it. For "
        "how many minutes has it run?",
        "90 - 8 = 82 liters are gone.\n82 / 2 = 41 minutes.\n#### 41",
    ),
)


@settings()
class Tried(qwen.Rows):
    """The rows with other examples, and with one of two marks."""

    count: int = 2
    mark: str = qwen.MARK

    presets: ClassVar = {}

    @property
    def examples(self) -> Sequence[tuple[str, str]]:  # type: ignore[override]
        every = (*qwen.Rows.examples, *MORE)[: self.count]
        return [(asked, text.replace(qwen.MARK, self.mark)) for asked, text in every]


def coin(completions: list[Completion], **kwargs: object) -> list[float]:
    """1.0 for a text in ten, by its checksum: as often as a right answer was paid."""
    texts = completion_texts(completions)
    return [float(crc32(text.encode()) % 10 == 0) for text in texts]


@settings()
class Coin(qwen.Rows):
    """The same rows and the same run, with a coin in the place of the answer."""

    rewards: ClassVar = {
        "coin": (coin, 1.0),
        **{name: (reward, 0.0) for name, (reward, _) in qwen.Rows.rewards.items()},
    }


def measure(model, tokenizer, data: str, count: int, mark: str) -> dict:
    """One prompt: how many of the rows come out right, and what was written."""
    config = replace(
        CONFIG,
        task="tools.rows:Tried",
        task_settings={"data": data, "count": count, "mark": mark},
        system_prompt=str(CONFIG.system_prompt).replace(qwen.MARK, mark),
    )
    problems = load_problems(config, "validation", FIRST_ROWS)
    policy = make_policy(config, model, tokenizer)
    environment = make_environment(config, problems, tokenizer)
    found, written = answers(policy, environment, mark)
    start = {"examples": count, "mark": mark, **found}
    return {"start": start, "written": written[:SHOWN]}


def answers(
    policy: CausalPolicy, environment: Environment, mark: str
) -> tuple[dict[str, Any], list[dict[str, str]]]:
    """What greedy answers to the problems come to, and each of them."""
    problems = environment.problems
    scores = greedy_scores(policy, environment)
    pairs = [
        (texts[0], p.answer) for texts, p in zip(scores.texts, problems, strict=True)
    ]
    ends = [environment.tokenizer(texts[0])["input_ids"] for texts in scores.texts]
    most = policy.sampler.max_new_tokens
    right = [smollm2.is_right(*pair, mark) for pair in pairs]
    formed = [smollm2.stated(text, mark) is not None for text, _ in pairs]
    found = {
        "problems": len(problems),
        "right": sum(right),
        "rows": "".join(str(int(each)) for each in right),  # 1 where right
        "formed": "".join(str(int(each)) for each in formed),  # 1 in the form
        "form": sum(formed),
        "lenient": int(scores.earned["lenient_accuracy"].sum()),
        "cut_off": sum(len(ids) >= most for ids in ends),
    }
    written = [
        {"question": problem.question, "answer": problem.answer, "text": texts[0]}
        for problem, texts in zip(problems, scores.texts, strict=True)
    ]
    return found, written


def before_and_after(folder: Path, name: str, rows: int) -> dict[str, Any]:
    """What so many rows held back come to before and after a finished run."""
    config = replace(saved_config(folder), eval_problems=rows)
    newest = checkpoint_path(folder, saved_epochs(folder)[-1])
    found: dict[str, Any] = {
        "name": name,
        "seed": config.seed,
        "learning_rate": config.learning_rate,
        "num_prompts": config.num_prompts,
    }
    for when, path in (("begun", str(config.model)), ("end", newest)):
        tried = load_trained(config, path, "validation")
        found[when], written = answers(*tried, qwen.MARK)
        found["written"] = written[:SHOWN]
    return found


def of_run(folder: Path, name: str, rows: int = FIRST_ROWS) -> dict:
    """A finished run: update by update, two responses of each, its start and end."""
    lines = read_lines(folder / METRICS)  # the last may be a look at held-out rows
    updates = [{key: line[key] for key in NOTED} for line in lines if NOTED[0] in line]
    responses = [
        {key: one[key] for key in ("epoch", "question", "answer", "completion")}
        for one in read_lines(folder / SAMPLES)[::GROUP]
    ]
    return {
        **before_and_after(folder, name, rows),
        "form_weight": saved_config(folder).reward_weights["form"],
        "updates": updates,
        "responses": responses,
    }


def supervised(model_path: str, data: str, seed: int, dtype: str) -> dict:
    """The model after it has imitated GSM8K's solutions, and each step's loss."""
    config = replace(
        CONFIG,
        model=model_path,
        task_settings={"data": data},
        seed=seed,
        dtype=dtype,  # type: ignore[arg-type]
        warm_start_steps=STEPS,
        warm_start_batch_size=SOLUTIONS,
        warm_start_learning_rate=RATE,
    )
    torch.manual_seed(seed)
    model, tokenizer = load_model(model_path), load_tokenizer(model_path)
    losses = run_warm_start(
        config, model, tokenizer, load_problems(config), lambda seen: print(seen[-1])
    )
    policy = make_policy(config, model, tokenizer)
    held_back = load_problems(config, "validation", FIRST_ROWS)
    environment = make_environment(config, held_back, tokenizer)
    found, written = answers(policy, environment, qwen.MARK)
    return {
        "name": "supervised on the solutions",
        "seed": seed,
        "learning_rate": RATE,
        "solutions": STEPS * SOLUTIONS,
        "losses": losses,
        "end": found,
        "written": written[:SHOWN],
    }


def sample_slices(planned: Sequence[dict[str, Any]]) -> list[list[int]]:
    """Twelve times eight of the new rows: three won, three never right, two right."""
    right, won, never = kinds_of_rows(planned).values()
    noise = random.Random(0)
    for rows in (won, never, right):
        noise.shuffle(rows)
    return [
        won[3 * i : 3 * i + 3] + never[3 * i : 3 * i + 3] + right[2 * i : 2 * i + 2]
        for i in range(12)
    ]


def sampled(config: GRPOConfig, temperature: float) -> dict[str, int]:
    """How many of eight samples are right, of each row that is asked."""
    model, tokenizer = load_model(str(config.model)), load_tokenizer(str(config.model))
    problems = load_problems(config, "validation", PLANNED)
    policy = make_policy(config, model, tokenizer)
    found: dict[str, int] = {}
    for number, rows in enumerate(sample_slices(read_rows()["planned"])):
        asked = make_environment(config, [problems[row] for row in rows], tokenizer)
        scores = sampled_scores(
            policy, asked, 8, temperature=temperature, seed=8 * number
        )
        right = scores.accuracy.sum(-1).int().tolist()
        found |= dict(zip(map(str, rows), right, strict=True))
    return found


def keep(kind: str, found: dict) -> None:
    """Write it in its place: another of its name and seed goes."""
    kept, mark = read_rows(), (found["name"], found["seed"])
    others = [one for one in kept.get(kind, []) if (one["name"], one["seed"]) != mark]
    write_rows(kept | {kind: [*others, found]})
    print(found["end"])


def write_rows(kept: dict[str, Any]) -> None:
    """The whole file, with what was found now."""
    write_atomically(ROWS, json.dumps(kept, indent=1) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default=CONFIG.model)
    parser.add_argument("--data", default="gsm8k")
    parser.add_argument("--run", type=Path, help="the folder of a finished run")
    parser.add_argument("--name", default="form unpaid", help="what it is called")
    parser.add_argument("--planned", action="store_true", help="ask it 256 rows")
    parser.add_argument("--smaller", action="store_true", help="ask it one prompt")
    parser.add_argument("--sample", action="store_true", help="ask 96 rows, sampled")
    parser.add_argument("--test", action="store_true", help="ask it 256 test rows")
    parser.add_argument("--temperature", type=float, default=1.0, help="of samples")
    parser.add_argument("--supervise", action="store_true", help="imitate solutions")
    parser.add_argument("--seed", type=int, default=0, help="of the imitation")
    parser.add_argument("--dtype", default=CONFIG.dtype, help="of its products")
    options = parser.parse_args()
    if options.run and options.planned:
        keep("planned", of_run(options.run, options.name, PLANNED))
        return
    if options.sample or options.test:
        if options.run:
            newest = checkpoint_path(options.run, saved_epochs(options.run)[-1])
            config = replace(saved_config(options.run), model=str(newest))
            name = f"seed {config.seed}"
        else:
            config = replace(CONFIG, model=options.model, dtype=options.dtype)
            config = replace(config, task_settings={"data": options.data})
            name = "before"
        if options.test:
            asked = replace(config, eval_problems=PLANNED)
            tried = load_trained(asked, str(config.model), "test")
            seed = config.seed if options.run else options.seed
            end, _ = answers(*tried, qwen.MARK)
            keep("test", {"name": options.name, "seed": seed, "end": end})
            return
        if options.temperature != 1:
            name += f", at {options.temperature:g}"
        found = {name: sampled(config, options.temperature)}
        kept = read_rows()
        write_rows(kept | {"sampled": kept.get("sampled", {}) | found})
        return
    if options.run:
        keep("runs", of_run(options.run, options.name))
        return
    if options.supervise:
        found = supervised(options.model, options.data, options.seed, options.dtype)
        keep("supervised", found)
        return
    model, tokenizer = load_model(options.model), load_tokenizer(options.model)
    if options.smaller:
        prompt = len(qwen.Rows.examples), qwen.MARK
        found = measure(model, tokenizer, options.data, *prompt)["start"]
        write_rows(read_rows() | {"smaller": found})
        print(found)
        return
    for count in COUNTS:
        for mark in (smollm2.MARK, qwen.MARK):
            kept = read_rows()
            if any((s["examples"], s["mark"]) == (count, mark) for s in kept["starts"]):
                continue
            found = measure(model, tokenizer, options.data, count, mark)
            kept["starts"].append(found["start"])
            if (count, mark) == (len(qwen.Rows.examples), qwen.MARK):
                kept["written"] = found["written"]
            write_rows(kept)
            print(found["start"], flush=True)


if __name__ == "__main__":
    main()
