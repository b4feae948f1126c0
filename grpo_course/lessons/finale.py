"""What GRPO made of two language models, as it was recorded for notebooks 12 and 18.

`tools/record.py` recorded SmolLM2's runs, `tools/rows.py` those on GSM8K's rows.

A run is a dict: its arm and seed, how many updates it had and how many minutes they
took; `curves`, lists with a value an update; and `rows`, what was asked after how many
updates. In a row, each problem has one character, how many of its samples were right.
"""

import itertools
import json
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from statistics import multimode
from textwrap import fill, shorten
from typing import Any

import torch
from torch import Tensor
from torch.distributions import Binomial

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
TURNING = 0.25  # of the rows a plan in notebook 18 asks: 10 in a hundred lost, 15 won
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
    arm: str = FIRST,
) -> list[dict[str, Any]]:
    """What the runs of an arm were asked at every stop, and whether it came out right.

    Of the two splits, "new wordings" tells calculations of training in other sentences.

    -> dicts of seed, operation, left, right, and came_out, 1 where the greedy answer
    was right, by stop
    """
    found = []
    for run in runs(record, arm):
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
    return f"{len(chosen):4d} answers  {in_a_row(share_right(chosen))}"


def in_a_row(shares: Iterable[float] | Tensor) -> str:
    """Shares as text, of two digits each."""
    return " ".join(f"{share:.2f}" for share in shares)


def over_seeds(values: Tensor) -> str:
    """The mean over seeds and its 95 % interval by Student's t, as text. [seed] in."""
    return f"{values.mean():+.2f} ± {half_width(values):.2f}"


def by_seed(chosen: Sequence[Mapping[str, Any]]) -> Tensor:
    """The share of some held-out problems that came out right. -> [stop seed]"""
    apart: dict[int, list[Mapping[str, Any]]] = {}
    for one in chosen:
        apart.setdefault(one["seed"], []).append(one)
    return torch.stack([*map(share_right, apart.values())], dim=-1)


def by_kind(
    chosen: Sequence[Mapping[str, Any]], kind_of: Callable[[Mapping[str, Any]], str]
) -> dict[str, Tensor]:
    """The share of each kind of problem that came out right. -> [stop seed] each"""
    found: dict[str, list[Mapping[str, Any]]] = {}
    for one in chosen:
        found.setdefault(kind_of(one), []).append(one)
    return {kind: by_seed(found[kind]) for kind in sorted(found)}


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


def tied(runs: Sequence[Run]) -> float:
    """The share of groups that tie, over all updates of these runs."""
    every = [one["tied_groups"] for run in runs for one in run["updates"]]
    return sum(every) / len(every)


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
    """Every run that was asked the first rows; of a name, one seed after the other.

    The first of the planned runs is one of them, the imitation of solutions the last.
    """
    every = [*rows["runs"], *map(on_first_rows, rows.get("planned", [])[:1])]
    every += rows.get("supervised", [])
    names = [run["name"] for run in every]
    return sorted(every, key=lambda run: names.index(run["name"]))


def by_name(rows: Run) -> dict[str, list[Run]]:
    """Every run that was asked the first rows, the seeds of a name in order."""
    named: dict[str, list[Run]] = {}
    for run in trained(rows):
        named.setdefault(run["name"], []).append(run)
    return named


def on_first_rows(test: Run) -> Run:
    """A planned run, asked as the others were: the first rows alone."""
    asked = {when: test[when]["rows"][:FIRST_ROWS] for when in ("begun", "end")}
    return test | {
        when: {"rows": marks, "right": marks.count("1")}
        for when, marks in asked.items()
    }


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


def new_rows(rows: Run) -> tuple[str, dict[str, str]]:
    """The rows that chose nothing: before training, and at the end of each run."""
    tests = rows["planned"]
    ends = {}
    for test in tests:
        name = f"GRPO, seed {test['seed']}"
        name += f", {len(test['updates'])} updates" * (name in ends)
        ends[name] = test["end"]["rows"][FIRST_ROWS:]
    for one in rows["moved"]:
        ends[f"{one['name']}, seed {one['seed']}"] = one["end"]["rows"]
    return tests[0]["begun"]["rows"][FIRST_ROWS:], ends


def changes(rows: Run) -> dict[str, Tensor]:
    """What became of the new rows: 1 won, -1 lost, else 0. -> [seed row] of each"""
    start, ends = new_rows(rows)
    of_many = [test["seed"] for test in rows["planned"] if test["num_prompts"] > 8]
    many = [*dict.fromkeys(of_many)]  # a run that went on counts once, as it was first
    kinds = {
        f"GRPO, {len(many)} seeds": [ends[f"GRPO, seed {seed}"] for seed in many],
        "imitation": [end for name, end in ends.items() if name.startswith("imit")],
    }

    return {
        name: torch.stack([right_in(text) for text in texts]) - right_in(start)
        for name, texts in kinds.items()
    }


def right_in(text: str) -> Tensor:
    """1 where a row is right, of a text with a mark for each. -> float64 [row]"""
    return torch.tensor([*map(int, text)]).double()


def kinds_of_rows(planned: Sequence[Run]) -> dict[str, list[int]]:
    """The numbers of the rows that chose nothing, by what became of them.

    By the first four runs: the samples were drawn before there was a fifth.
    """
    planned = planned[:4]
    start = planned[0]["begun"]["rows"]
    found: dict[str, list[int]] = {
        "right before": [],
        "won by a run": [],
        "won by none": [],
    }
    for row in range(FIRST_ROWS, len(start)):
        won = any(test["end"]["rows"][row] == "1" for test in planned)
        kind = "won by a run" if won else "won by none"
        found["right before" if start[row] == "1" else kind].append(row)
    return found


def sampled_shares(
    rows: Run, *ways: str
) -> tuple[dict[str, list[float]], list[tuple[float, float]]]:
    """The share of right samples, and how far it rose over rows new to the runs.

    -> before and after each way, by kind of row and weighted as the kinds occur;
    and for each way the rise of the weighted share, with its half-width over rows
    """
    asked = [rows["sampled"][name] for name in ("before", *ways)]
    kinds = kinds_of_rows(rows["planned"])
    shares, widths = {}, []  # [sampling] each
    everything = torch.zeros(len(asked), dtype=torch.float64)
    for kind, every in kinds.items():
        few = [str(row) for row in every if str(row) in asked[0]]
        right = torch.tensor([[of[row] / 8 for row in few] for of in asked]).double()
        shares[f"{kind} ({len(few)} rows)"] = right.mean(1).tolist()
        weight = len(every) / sum(map(len, kinds.values()))
        everything += weight * right.mean(1)
        more = (right[1:] - right[0]).tolist()
        widths.append([weight * half_width(each) for each in more])
    shares["the 192 rows, weighted"] = everything.tolist()
    rises = (everything[1:] - everything[0]).tolist()
    halves = torch.tensor(widths).norm(dim=0).tolist()
    return shares, list(zip(rises, halves, strict=True))


def print_ends(rows: Run) -> None:
    """What greedy answers come to before training and after each run."""
    asked = f"right of {start_of(rows)['problems']} rows, greedily"
    print(f"{asked:34s} seed   rate  before  after  lost  won  form")
    for run in trained(rows):
        name, end = shorten(run["name"], 32), run["end"]
        told = f"{name:34s}{run['seed']:5d}{run['learning_rate']:7g}"
        lost, won = lost_and_won(run) or ("", "")
        counts = f"{begun(rows, run)['right']:8d}{end['right']:7d}"
        print(f"{told}{counts}{lost:6}{won:5}{end.get('form', ''):6}")


Chance = Callable[[int, int], float]  # what a learner writes in 18.1


def print_tests(rows: Run, by_chance: Chance) -> None:
    """What each planned run came to, greedily, and how often chance goes so far."""
    start, ends = new_rows(rows)
    print("                      ----- 192 new rows -----     -- all 256 --")
    print("updates problems seed right lost  won  p-value     form  cut off")
    known = rows["planned"][0]["begun"]
    counts = f"{start.count('1'):6d}{known['form']:28d}{known['cut_off']:9d}"
    print(f"{'before':21s}{counts}")
    for test, end in zip(rows["planned"], ends.values(), strict=False):
        (lost, won), now = turned(start, end), test["end"]
        told = f"{len(test['updates']):7d}{test['num_prompts']:9d}{test['seed']:5d}"
        told += f"{end.count('1'):6d}{lost:5d}{won:5d}{by_chance(lost, won):9.3f}"
        print(f"{told}{now['form']:9d}{now['cut_off']:9d}")


def print_moved(rows: Run, by_chance: Chance) -> None:
    """What became of the new rows where the weights were moved without a reward."""
    start, ends = new_rows(rows)
    print("                              other texts  lost  won  p-value")
    moved = [*ends.items()][len(rows["planned"]) :]
    for (name, end), one in zip(moved, rows["moved"], strict=True):
        texts, (lost, won) = one["end"]["other_texts"], turned(start, end)
        print(f"{name:28s}{texts:13d}{lost:6d}{won:5d}{by_chance(lost, won):9.3f}")


def print_on_test_rows(rows: Run, by_chance: Chance) -> dict[str, Tensor]:
    """GSM8K's own test rows: what is right before and after. -> as `changes`"""
    ends = {(one["name"], one["seed"]): one["end"] for one in rows["test"]}
    start = ends.pop(("before", 0))
    found: dict[str, list[Tensor]] = {}
    print("256 test rows            right lost  won  p-value     form  cut off")
    print(f"before{start['right']:24d}{start['form']:28d}{start['cut_off']:9d}")
    for (name, seed), end in ends.items():
        lost, won = turned(start["rows"], end["rows"])
        told = f"{f'{name}, seed {seed}':24s}{end['right']:6d}{lost:5d}{won:5d}"
        print(f"{told}{by_chance(lost, won):9.3f}{end['form']:9d}{end['cut_off']:9d}")
        change = right_in(end["rows"]) - right_in(start["rows"])
        found.setdefault(name, []).append(change)
    return {name: torch.stack(each) for name, each in found.items()}


def binomial(count: int, chance: float) -> Tensor:
    """How likely each number of heads is in so many flips. -> float64 [count + 1]"""
    flips = Binomial(count, torch.tensor(chance, dtype=torch.float64))
    return flips.log_prob(torch.arange(count + 1.0)).exp()


def splits_below(by_chance: Chance, changed: int, bar: float) -> int:
    """How many splits of so many rows, the most uneven first, chance puts below it."""
    few = range(changed // 2 + 1)  # rows that went the rarer way
    return bisect_left(few, bar, key=lambda rarer: by_chance(rarer, changed - rarer))


def below(
    by_chance: Chance, rows: int, bar: float, *, lost: float, won: float
) -> float:
    """How likely a look at so many rows comes out below the bar, by chance or not."""
    found = 0.0
    for changed, weight in enumerate(binomial(rows, lost + won).tolist()):
        if weight < 1e-7:
            continue
        uneven = splits_below(by_chance, changed, bar)
        split = binomial(changed, lost / (lost + won))
        found += weight * (split[:uneven].sum() + split.flip(0)[:uneven].sum()).item()
    return found


def sees(by_chance: Chance, rows: int, bar: float, turning: float) -> float:
    """How often a look sees a gain of five in a hundred, if so many rows turn."""
    lost, won = (turning - 0.05) / 2, (turning + 0.05) / 2
    return below(by_chance, rows, bar, lost=lost, won=won)


def try_plan(by_chance: Chance, rows: int, looks: int, bar: float) -> None:
    """Print what a plan of notebook 18 sees, and how often chance fools it."""
    seen = sees(by_chance, rows, bar, TURNING)
    tell(seen >= 0.8, f"experiments in which a look sees the gain: {seen:.0%}")
    once = below(by_chance, rows, bar, lost=TURNING / 2, won=TURNING / 2)
    fooled = 1 - (1 - once) ** looks
    tell(
        fooled <= 0.05,
        f"experiments without one in which {looks} looks are fooled: {fooled:.0%}",
    )


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
    """How often numbers that two samples state to a problem are the same."""
    pairs = [
        first == second
        for each in votes(record, update)
        for numbers in each["answers"]
        for first, second in itertools.combinations(filter(None, numbers), 2)
    ]
    return sum(pairs) / len(pairs)


def ballot(answers: Sequence[str | None], gold: str) -> dict[str, bool]:
    """What comes of a vote of samples on one problem.

    Of equally many, the first counts; a sample without an answer has no vote.
    """
    given = [one for one in answers if one is not None]
    most = multimode(given)  # in the order in which they were first given
    return {
        "the vote is right": most[:1] == [gold],
        "several numbers come most often": len(most) > 1,
        "right, if every such tie went well": gold in most,
        "the right number has a vote": gold in given,
    }


def ballots(record: Sequence[Run], update: int = 0) -> dict[str, Tensor]:
    """What comes of the votes of eight samples, 1 where it is so. -> [seed problem]"""
    found: dict[str, list[list[bool]]] = {}
    for each in votes(record, update):
        every = [*map(ballot, each["answers"], each["gold"])]
        for name in every[0]:
            found.setdefault(name, []).append([one[name] for one in every])
    return {name: torch.tensor(each).double() for name, each in found.items()}


def voted(record: Sequence[Run]) -> Tensor:
    """Whether the answer that most of eight samples give is right. -> [seed problem]"""
    return ballots(record)["the vote is right"]
