"""What GRPO made of two language models, as it was recorded for notebooks 12 and 18.

`tools/record.py` recorded SmolLM2's runs, `tools/rows.py` those on GSM8K's rows.

A run is a dict: its arm and seed, how many updates it had and how many minutes they
took; `curves`, lists with a value an update; and `rows`, what was asked after how many
updates. In a row, each problem has one character, how many of its samples were right.
"""

import itertools
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import mode
from textwrap import fill, shorten
from typing import Any

import torch
from torch import Tensor

from grpo_course.lessons.baselines import tell
from grpo_course.loop import half_width
from grpo_course.text import qwen
from grpo_course.text.environment import places_of
from grpo_course.text.smollm2 import ShortAnswers

PATH = Path(__file__).parent / "smollm2.json"
FORKS, ROWS = (PATH.with_name(name) for name in ("forks.json", "rows.json"))
FIRST, CALLS = "GRPO", "GRPO with a calculator"
SAME = "same kind"
SPLITS = {SAME: "unseen_problems", "new wordings": "unseen_phrasings"}
HELD = 1000  # and the seed of a run: the seed of its held-out problems
FIRST_ROWS = 64  # held-back rows of GSM8K that every run was asked, and the prompts
Run = dict[str, Any]


def read_record() -> list[Run]:
    """All runs that were recorded."""
    return json.loads(PATH.read_text("utf-8")) if PATH.exists() else []


def runs(record: Sequence[Run], arm: str = FIRST) -> list[Run]:
    """The runs of one arm, a seed each."""
    return [run for run in record if run["arm"] == arm]


def curves(record: Sequence[Run], arm: str = FIRST, name: str = "accuracy") -> Tensor:
    """What was seen at each update. -> [update seed]"""
    each = [run["curves"][name] for run in runs(record, arm)]
    nan = float("nan")
    return torch.tensor([[nan if v is None else v for v in one] for one in each]).T


def shares(
    record: Sequence[Run],
    arm: str,
    update: int,
    split: str = SAME,
    way: str = "greedy",
    name: str = "right",
) -> Tensor:
    """The share of its samples that were right, of each problem. -> [seed problem]

    `update` 0 is the start, which an arm that did not measure it shares with the run
    of its seed in the plain arm; -1 is the end.
    """
    wanted = {"split": split, "way": way}
    found = []
    for run in runs(record, arm):
        at = run["updates"] if update == -1 else update
        if update == 0 and not any(row["update"] == 0 for row in run["rows"]):
            other = runs(record, CALLS if arm.startswith(CALLS) else FIRST)
            run = next(each for each in other if each["seed"] == run["seed"])
        row = next(r for r in run["rows"] if r | wanted | {"update": at} == r)
        found.append([int(mark, 36) / row["samples"] for mark in row[name]])
    return torch.tensor(found, dtype=torch.float64)


def additions(record: Sequence[Run], arm: str = FIRST) -> Tensor:
    """Whether a held-out problem wants an addition. -> bool [seed problem]"""
    each = [
        next(r for r in run["rows"] if "operations" in r) for run in runs(record, arm)
    ]
    return torch.tensor([[op == "+" for op in row["operations"]] for row in each])


def held_out(
    record: Sequence[Run],
    stops: Sequence[int] = (0, 4, 8, 16, 32),
    split: str = SAME,
) -> list[dict[str, Any]]:
    """What the runs of FIRST were asked at every stop, and whether it came out right.

    Of the two splits, "new wordings" tells calculations of training in other sentences.

    -> dicts of seed, operation, left, right, and came_out, 1 where the greedy answer
    was right, by stop
    """
    found = []
    for run in runs(record):
        rows = [r for r in run["rows"] if r["update"] in stops]
        rows = [r for r in rows if (r.get("split"), r.get("way")) == (split, "greedy")]
        # A run of the record asked problems of its own, made from its seed.
        count = len(rows[0]["right"])
        problems = ShortAnswers().problems(SPLITS[split], count, HELD + run["seed"])
        for place, problem in enumerate(problems):
            left, right = problem.operands
            one = {"seed": run["seed"], "operation": problem.kind}
            came_out = [int(row["right"][place]) for row in rows]
            found.append(one | {"left": left, "right": right, "came_out": came_out})
    return found


def asked(task: ShortAnswers, seed: int, updates: int = 32) -> list[Run]:
    """The problems that the updates of a run of FIRST were trained on, in their order.

    -> dicts of operation, left and right
    """
    preset = task.presets["smollm2"]
    count, many = preset["num_problems"], preset["num_prompts"]
    each = []
    for problem in task.problems("train", count, seed):
        left, right = problem.operands
        each.append({"operation": problem.kind, "left": left, "right": right})
    chosen = (places_of(count, many, seed, update) for update in range(updates))
    return [each[place] for places in chosen for place in places]


def practised(task: ShortAnswers, seeds: int = 5) -> set[tuple[str, int, int]]:
    """Operation, left and right of what the runs of these seeds may ask in training."""
    count = task.presets["smollm2"]["num_problems"]
    every = (task.problems("train", count, seed) for seed in range(seeds))
    problems = itertools.chain.from_iterable(every)
    return {(one.kind, one.operands[0], one.operands[1]) for one in problems}


def share_right(chosen: Sequence[Mapping[str, Any]]) -> Tensor:
    """The share of some held-out problems that came out right. -> [stop]"""
    return torch.tensor([one["came_out"] for one in chosen]).double().mean(0)


def at_every_stop(chosen: Sequence[Mapping[str, Any]]) -> str:
    """How many they are, and the share that came out right at each stop, as text."""
    if not chosen:
        return "   no answers"
    told = " ".join(f"{share:.2f}" for share in share_right(chosen))
    return f"{len(chosen):4d} answers  {told}"


def over_seeds(values: Tensor) -> str:
    """The mean over seeds and its 95 % interval by Student's t, as text. [seed] in."""
    return f"{values.mean():+.2f} ± {half_width(values):.2f}"


def by_seed(chosen: Sequence[Mapping[str, Any]]) -> Tensor:
    """The share of some held-out problems that came out right. -> [stop seed]"""
    apart: dict[int, list[Mapping[str, Any]]] = {}
    for one in chosen:
        apart.setdefault(one["seed"], []).append(one)
    return torch.stack([*map(share_right, apart.values())], dim=-1)


def read_forks() -> dict[str, Any]:
    """Which tokens of eight answers one step moved: see `tools/forks.py`."""
    return json.loads(FORKS.read_text("utf-8"))


def read_rows() -> dict[str, Any]:
    """What a larger model does on GSM8K's own rows: see `tools/rows.py`."""
    empty: dict[str, Any] = {"starts": [], "written": [], "runs": []}
    return json.loads(ROWS.read_text("utf-8")) if ROWS.exists() else empty


def print_worked(question: str, answer: str, text: str) -> None:
    """A problem, and line by line what was written to it."""
    print(fill(f"{question} (right: {answer})", 75))
    for line in filter(None, text.splitlines()):
        print(fill(line, 70, initial_indent="   ", subsequent_indent="      "))


def print_updates(run: Run) -> None:
    """What a run on the rows noted of each update."""
    print(f"{run['name']}, rate {run['learning_rate']:g}, seed {run['seed']}")
    print("update   samples right   in the form   tokens   groups that tie")
    for number, one in enumerate(run["updates"]):
        share = f"{one['accuracy']:16.2f}{one['form']:14.2f}"
        rest = f"{one['mean_length']:9.0f}{one['tied_groups']:18.2f}"
        print(f"{number:6d}{share}{rest}")


def start_of(rows: Run) -> Run:
    """Greedy answers before training, with the prompt of the runs."""
    prompt = len(qwen.Rows.examples), qwen.MARK
    (start,) = (s for s in rows["starts"] if (s["examples"], s["mark"]) == prompt)
    return start


def begun(rows: Run, run: Run) -> Run:
    """Greedy answers before a run: what it kept, or the start in its precision.

    The imitation kept none. It was computed in float32, as were all runs that did.
    """
    kept = [one["begun"] for one in rows["runs"] if "begun" in one]
    if "solutions" in run and kept:
        return kept[0]
    return run.get("begun", start_of(rows))


def trained(rows: Run) -> list[Run]:
    """Every run on the rows: those of GRPO, and the imitation of solutions."""
    return [*rows["runs"], *rows.get("supervised", ())]


def lost_and_won(run: Run) -> tuple[int, int] | None:
    """Rows right only before training, and only after it; None if sums were kept."""
    before, after = (run.get(when, {}).get("rows") for when in ("begun", "end"))
    if before is None or after is None:
        return None
    return turned(before, after)


def turned(before: str, after: str) -> tuple[int, int]:
    """Rows lost and won between two answers to the same rows, a 1 where it is right."""
    pairs = list(zip(before, after, strict=True))
    return pairs.count(("1", "0")), pairs.count(("0", "1"))


def new_rows(test: Run) -> Run:
    """What a planned run made of the rows that chose nothing: all but the first."""
    return {
        when: {"rows": test[when]["rows"][FIRST_ROWS:]} for when in ("begun", "end")
    }


def row_changes(test: Run) -> Tensor:
    """Of each new row of a planned run: 1 if it was won, -1 if it was lost. [row]"""
    before, after = ([*map(int, each["rows"])] for each in new_rows(test).values())
    return torch.tensor(after).double() - torch.tensor(before)


def kinds_of_rows(planned: Sequence[Run]) -> dict[str, list[int]]:
    """The numbers of the rows that chose nothing, by what became of them."""
    start = planned[0]["begun"]["rows"]
    found: dict[str, list[int]] = {
        "right before": [],
        "won later": [],
        "right nowhere": [],
    }
    for row in range(FIRST_ROWS, len(start)):
        won = any(test["end"]["rows"][row] == "1" for test in planned)
        kind = "won later" if won else "right nowhere"
        found["right before" if start[row] == "1" else kind].append(row)
    return found


def sampled_kinds(rows: Run) -> dict[str, Tensor]:
    """The share of its eight samples before training that were right. kind -> [row]"""
    every, kinds = rows["sampled"], kinds_of_rows(rows["planned"])
    asked = {name: [str(row) for row in each] for name, each in kinds.items()}
    return {
        name: torch.tensor([every[row] / 8 for row in each if row in every]).double()
        for name, each in asked.items()
    }


def print_ends(rows: Run) -> None:
    """What greedy answers come to before training and after each run."""
    asked = f"right of {start_of(rows)['problems']} rows, greedily"
    print(f"{asked:35s} seed   rate  before  after  lost  won  form")
    for number, run in enumerate(trained(rows)):
        name, end = shorten(run["name"], 32), run["end"]
        told = f"{number}  {name:32s}{run['seed']:5d}{run['learning_rate']:7g}"
        lost, won = lost_and_won(run) or ("", "")
        counts = f"{begun(rows, run)['right']:8d}{end['right']:7d}"
        print(f"{told}{counts}{lost:6}{won:5}{end['form']:6d}")


def least_uneven(rows: Run, run: Run) -> tuple[int, int]:
    """The rows lost and won; of sums alone, the least uneven pair that they allow."""
    kept = lost_and_won(run)
    start, after = begun(rows, run), run["end"]["right"]
    both = max(0, start["right"] + after - start["problems"])  # right before and after
    return kept or (start["right"] - both, after - both)


def sure_gain(
    by_chance: Callable[[int, int], float], rows: int, lost: float, won: float
) -> float:
    """The share of 500 experiments on so many rows in which chance is below 0.05."""
    drawn = torch.rand(500, rows, generator=torch.Generator().manual_seed(0))
    fell = (drawn < lost).sum(-1), (drawn > 1 - won).sum(-1)
    pairs = zip(*(each.tolist() for each in fell), strict=True)
    return sum(by_chance(*pair) < 0.05 for pair in pairs) / len(drawn)


def is_pair(given: object) -> bool:
    """Whether it says how many rows were lost and how many won."""
    if not isinstance(given, tuple | list) or len(given) != 2:
        return False
    return all(isinstance(count, int) and count >= 0 for count in given)


def weigh(
    rows: Run,
    by_chance: Callable[[int, int], float],
    changed: Mapping[int, tuple[int, int]],
    enough: int,
) -> None:
    """Print what each finding of notebook 18's investigation comes to, and its mark."""
    pairs = [least_uneven(rows, run) for run in trained(rows)]
    named = isinstance(changed, Mapping) and set(changed) <= set(range(len(pairs)))
    if not named or not all(map(is_pair, changed.values())):
        what = f"changed = {{run: (lost, won)}} with runs of 0 to {len(pairs) - 1}"
        return tell(False, f"write {what}, not {changed!r}")
    if not isinstance(enough, int) or enough < 1:
        return tell(False, f"enough is a whole number of rows, not {enough!r}")
    for number, pair in changed.items():
        chance, (lost, won) = by_chance(*pair), pairs[number]
        words = (
            f"run {number}, {pair[0]} lost and {pair[1]} won: {chance:.3f} by chance"
        )
        stands, why = tuple(pair) == (lost, won), "its sums allow a less uneven pair"
        if lost_and_won(trained(rows)[number]):
            why = "it kept another pair"
        elif pair[1] - pair[0] != won - lost:
            why = "its sums differ by another number"
        tell(stands and chance < 0.05, words + (f"; {why}" if not stands else ""))
    others = [pair for i, pair in enumerate(pairs) if i not in changed]
    missing = sum(by_chance(*pair) < 0.05 for pair in others)
    tell(not missing, f"runs below 0.05 that you left out: {missing}")
    shares = [
        sure_gain(by_chance, n, lost=0.10, won=0.15) for n in (enough, enough // 2)
    ]
    seen, by_half = (f"{share:.0%}" for share in shares)
    words = f"{enough} rows show the gain in {seen} of experiments, half of them in"
    tell(shares[0] >= 0.8 > shares[1], f"{words} {by_half}")


def written(
    record: Sequence[Run], update: int, seed: int = 0, arm: str = FIRST
) -> list[Run]:
    """Four problems, and what was written to each after so many updates.

    -> dicts of question, answer, `greedy`, a text, and `sampled`, several
    """
    (run,) = (run for run in runs(record, arm) if run["seed"] == seed)
    return [r for r in run["rows"] if r["update"] == update and "question" in r]


def votes(record: Sequence[Run], update: int = 0) -> list[Run]:
    """Eight samples to each problem, at the start or the end (32), one dict a seed.

    -> dicts of answers and gold
    """
    every = (row for run in runs(record) for row in run["rows"])
    return [r for r in every if r["update"] == update and "gold" in r]


def agreement(record: Sequence[Run], update: int) -> float:
    """How often two of the samples to a problem state the same number."""
    pairs = [
        first is not None and first == second
        for each in votes(record, update)
        for numbers in each["answers"]
        for first, second in itertools.combinations(numbers, 2)
    ]
    return sum(pairs) / len(pairs)


def voted(record: Sequence[Run]) -> Tensor:
    """Whether the answer that most of eight samples give is right. -> [seed problem]

    Of equally many, the first counts; a sample without an answer has no vote.
    """
    won = []
    for each in votes(record):
        given = [[one for one in texts if one is not None] for texts in each["answers"]]
        pairs = zip(given, each["gold"], strict=True)
        won.append([bool(texts) and mode(texts) == gold for texts, gold in pairs])
    return torch.tensor(won, dtype=torch.float64)
