"""The first part of notebook 12 with a fetched model: small, random, of its own kind.

CI has no such model otherwise, so there the same cells show what was recorded. And what
12 and 18 make of the records.
"""

import copy
import itertools
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import matplotlib
import nbformat
import pytest
import torch

from grpo_course.classroom.live import LiveCurve
from grpo_course.lessons import finale
from grpo_course.lessons.exercises.nb12 import found, is_lost
from grpo_course.lessons.exercises.nb18 import by_chance
from grpo_course.lessons.pictures.nb18 import balance, plot_balances
from grpo_course.text import smollm2
from grpo_course.text.environment import Environment
from grpo_course.text.models import load_model
from grpo_course.text.responses import chat_messages
from grpo_course.text.tiny import make_tiny_model, make_tokenizer
from grpo_course.text.training import (
    load_problems,
    make_environment,
    make_model,
    make_optimizer,
    make_policy,
    presets_of,
    train_policy,
)
from tools.rows import sample_slices

NOTEBOOK = Path(__file__).parents[1] / "notebooks" / "12_gsm8k_grpo.ipynb"
END = "## The whole run, five times"  # from there on, nothing asks the model


@pytest.fixture
def fetched(tmp_path, monkeypatch):
    """A folder with a model where `fetch` puts one, seen from a folder below."""
    (config,) = presets_of("smollm2").values()
    task = smollm2.ShortAnswers()
    opening = task.opening(config.system_prompt)
    problems = task.problems("train", 50, 0)
    texts = [m["content"] for p in problems for m in chat_messages(p.question, opening)]
    tokenizer = make_tokenizer([*texts, *map(task.gold, problems)])
    model = make_tiny_model(tokenizer, "llama", hidden_size=16, context_length=1024)
    for part in (model, tokenizer):
        part.save_pretrained(tmp_path / smollm2.FOLDER)
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path / smollm2.FOLDER


def run_cells():
    """Run the code cells before END. -> the names that they made"""
    matplotlib.use("Agg")
    names = {"__name__": "__main__", "display": print}  # IPython brings one along
    for cell in nbformat.read(NOTEBOOK, as_version=4).cells:
        if cell.source.startswith(END):
            return names
        if cell.cell_type == "code":
            exec(cell.source.replace("LIVE = 8", "LIVE = 2"), names)
    raise AssertionError(f"no cell begins with {END}")


def length_reward(completions, **_):
    """Something that a random model earns now and then."""
    return [len(text) / 10 for text in completions]


@pytest.mark.slow
def test_the_cells_train_a_model_that_was_fetched(fetched, monkeypatch, capsys):
    lines, figures = [], []
    monkeypatch.setattr(LiveCurve, "say", lambda self, text: lines.append(text))
    draw = LiveCurve.show
    monkeypatch.setattr(
        LiveCurve,
        "show",
        lambda self, *how: figures.append(len(lines)) or draw(self, *how),
    )
    names = run_cells()
    assert figures[0] == 0 and len(figures) == 3  # drawn before the first update
    told = "\n".join(lines)
    assert "update 2 of 2, sampling 64 responses: 0 of 32 tokens" in told
    said = capsys.readouterr().out
    assert "LlamaForCausalLM" in said and "recorded" not in said
    assert "update 2: 0.00 right" in said and names["folder"] == fetched

    # And with a reward that it earns, an update is that of the command, to rounding.
    task = smollm2.ShortAnswers
    names["answer_reward"] = lambda text, answer: length_reward([text])[0]
    monkeypatch.setattr(task, "rewards", {"length": (length_reward, 1.0)})
    monkeypatch.setattr(task, "measures", ("length",))
    preset = presets_of("smollm2")["smollm2"]
    config = replace(preset, model=str(fetched), num_problems=50, num_epochs=1)
    problems = load_problems(config)
    model, tokenizer = make_model(config, problems)
    environment = make_environment(config, problems, tokenizer)

    own = make_policy(config, copy.deepcopy(model), tokenizer)
    optimizer = make_optimizer(config, own)
    chosen = [problems[place] for place in environment.chosen(0)]
    rewards = names["update"](own, optimizer, chosen)
    policy, history = train_policy(config, model, tokenizer, environment)

    assert rewards.std(dim=-1).gt(0).any()
    assert history.curve("mean_reward")[0] == pytest.approx(rewards.mean().item())
    start = load_model(str(fetched)).parameters()
    pairs = zip(own.model.parameters(), policy.model.parameters(), start, strict=True)
    for mine, theirs, before in pairs:
        assert (mine - theirs).abs().mean() < 1e-3 * (theirs - before).abs().mean()


# The record, and what the notebook makes of it


def test_the_most_frequent_answer_wins_and_none_has_no_vote():
    answers = [["3", "3", "5"], ["12", "5", "5", "12"], [None, None, "5"], [None, None]]
    row = {"update": 0, "answers": answers, "gold": ["3", "12", "5", "5"]}
    run = {"arm": finale.FIRST, "seed": 0, "rows": [row]}
    assert finale.voted([run]).tolist() == [[1, 1, 1, 0]]


def test_what_a_run_asked_is_told_from_its_seed():
    task, seed = smollm2.ShortAnswers(), 3
    preset = task.presets["smollm2"]
    problems = task.problems("train", preset["num_problems"], seed)
    run = SimpleNamespace(
        problems=problems, num_prompts=preset["num_prompts"], seed=seed
    )
    asked = finale.asked(task, seed)
    for update in (0, 31):
        chosen = [problems[place] for place in Environment.chosen(run, update)]
        told = [(one.kind, *one.operands) for one in chosen]
        assert [calculation(one) for one in asked[8 * update :][:8]] == told
    practised = finale.practised(task)
    assert practised.issuperset(map(calculation, asked))
    held = {calculation(one) for one in finale.held_out(finale.read_record())}
    assert not practised & held
    # New wordings tell practised calculations.
    anew = finale.held_out(finale.read_record(), stops=(0, 32), split="new wordings")
    assert practised.issuperset(map(calculation, anew)) and len(anew) == 5 * 64


def test_numbers_are_those_stated_to_the_problems_beside_them():
    record = finale.read_record()
    for update in (0, 32):
        asked = finale.held_out(record, stops=(update,))
        problems = [one for at in range(0, 5 * 64, 64) for one in asked[at : at + 32]]
        votes = finale.votes(record, update)
        numbers = [each for vote in votes for each in vote["answers"]]
        assert len(numbers) == 5 * 32
        right = finale.shares(record, "GRPO", update, way="sampled").flatten()
        for one, said, share in zip(problems, numbers, right, strict=True):
            left, number = one["left"], one["right"]
            result = left + number if one["operation"] == "+" else left - number
            assert said.count(str(result)) == 8 * share
    alike = {"answers": [["3", "3", None, None]], "gold": ["3"], "update": 0}
    (run,) = (each for each in finale.runs(record) if each["seed"] == 0)
    rows = [row for row in run["rows"] if "gold" not in row]
    assert finale.agreement([run | {"rows": [*rows, alike]}], 0) == 1 / 6


def test_of_practised_large_sums_only_the_largest_part_the_runs():
    every = finale.held_out(finale.read_record(), stops=(32,), split="new wordings")
    large = [one for one in every if one["operation"] == "+"]
    large = [one for one in large if one["left"] + one["right"] > 16]
    smaller = [one for one in large if one["left"] + one["right"] < 20]
    larger = [one for one in large if one not in smaller]
    assert [sum(one["came_out"][0] for one in each) for each in (smaller, larger)] == [
        len(smaller) - 1,
        6,
    ]
    assert finale.by_seed(larger).tolist() == [[0, 0, 1, 1, 0]]


def test_an_interval_over_seeds_is_students():
    # The means of five: 0.2, with a standard error of 0.0707; t is 2.776.
    assert finale.over_seeds(torch.tensor([0.0, 0.1, 0.2, 0.3, 0.4])) == "+0.20 ± 0.20"
    assert finale.over_seeds(torch.tensor([0.1, 0.2])) == "+0.15 ± 0.64"


def test_a_share_is_that_of_each_seed():
    def one(seed, *came_out):
        return {"seed": seed, "came_out": came_out}

    chosen = [
        one(0, True, True, False),
        one(0, True, True, True),
        one(1, True, False, True),
    ]
    assert finale.by_seed(chosen).tolist() == [[1.0, 1.0], [1.0, 0.0], [0.5, 1.0]]
    assert finale.at_every_stop(chosen) == "   3 answers  1.00 0.67 0.67"
    assert "no answers" in finale.at_every_stop([])


def calculation(one):
    return one["operation"], one["left"], one["right"]


def test_what_12_2_calls_lost_falls_and_the_others_never_do():
    every = finale.held_out(finale.read_record())
    places = {calculation(one) for one in every}
    lost = [one for one in every if is_lost.solution(*calculation(one))]
    others = [one for one in every if one not in lost]
    assert {tuple(case.args.values()) for case in is_lost.cases} <= places
    at = [
        [sum(one["came_out"][i] for one in each) / len(each) for i in range(5)]
        for each in (lost, others)
    ]
    assert at[0][4] < at[0][0] < at[0][1]
    assert at[1] == sorted(at[1])
    # Or whatever else keeps to what the task says of yours and of the others.
    assert found(is_lost.solution)
    assert found(lambda sign, left, right: sign == "+" and min(left, right) > 8)
    assert not found(lambda sign, left, right: sign == "+" and left + right > 15)
    assert not found(lambda sign, left, right: sign == "+" and left > 10)
    assert not found(lambda *problem: None) and not found(lambda *problem: True)


def test_whatever_the_file_of_rows_holds_is_printed(capsys):
    end = {"problems": 64, "right": 3, "form": 61, "lenient": 4, "cut_off": 0}
    update = {"accuracy": 0.25, "form": 0.5, "mean_length": 77.1, "tied_groups": 0.125}
    run = {
        "name": "slow",
        "seed": 1,
        "learning_rate": 2e-6,
        "updates": [update],
        "end": end,
    }
    finale.print_updates(run)
    begun = end | {"right": 14, "rows": "1" * 14 + "0" * 50}
    kept = run | {"begun": begun, "end": end | {"rows": "1" + "0" * 61 + "11"}}
    start = end | {"right": 13, "examples": 2, "mark": "####"}
    rival = run | {"name": "rival", "learning_rate": 1e-5, "solutions": 128}
    rows = {"starts": [start], "runs": [run, kept], "supervised": [rival]}
    finale.print_ends(rows)
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) < 80
    assert lines[2].split() == ["0", "0.25", "0.50", "77", "0.12"]
    assert [line.split() for line in lines[-3:]] == [
        ["0", "slow", "1", "2e-06", "13", "3", "61"],
        ["1", "slow", "1", "2e-06", "14", "3", "13", "2", "61"],
        ["2", "rival", "1", "1e-05", "14", "3", "61"],  # in float32, as the second
    ]

    # Of the sums 13 and 3, the pair with most flips: none right both times.
    assert finale.least_uneven(rows, run) == (13, 3)
    assert finale.least_uneven(rows, kept) == (13, 2)

    # And it is drawn: an interval and a dot for every run, and two lines across.
    pairs = {run: (lost, 3) for run, lost in {"one": 13, "other": 4}.items()}
    lines = plot_balances(pairs, rows=64).lines
    assert [line.get_xdata()[0] for line in lines[1:4:2]] == [-10, -1]
    assert len(lines) == 6 and lines[-1].get_xdata()[0] == 0.05 * 64


def test_the_planned_runs_are_asked_new_rows_and_18_tells_what_came_out():
    rows = finale.read_rows()
    book = nbformat.read(NOTEBOOK.with_name("18_full_gsm8k.ipynb"), 4)
    # The first 64 rows are those of the other runs, which began alike.
    others = {one["begun"]["rows"] for one in rows["runs"] if "begun" in one}
    ends = []
    for run in rows["planned"]:
        asked = {when: run[when]["rows"] for when in ("begun", "end")}
        assert all(len(each) == run[when]["problems"] for when, each in asked.items())
        assert all(
            each.count("1") == run[when]["right"] for when, each in asked.items()
        )
        assert others == {asked["begun"][:64]}
        new = finale.new_rows(run)
        low, high = balance(*finale.lost_and_won(new))
        assert low < 0 < high  # none is surely a change
        start, end = (each["rows"].count("1") for each in new.values())
        assert finale.row_changes(run).sum() == end - start
        ends.append((end, high))
    # Of the first, a gain of five in a hundred is left out.
    assert ends[0][1] < 192 * 0.05
    told = [start, *(end for end, _ in ends)]
    told = "{} right before and {}, {}, {} and {} after".format(*told)
    assert told in book.cells[-1].source
    # A line of the others that holds zero holds a gain of five in a hundred, too.
    held = [balance(*finale.least_uneven(rows, run)) for run in finale.trained(rows)]
    assert [high > 64 * 0.05 for low, high in held if low < 0 < high] == [True] * 3
    eight, sixteen, *_ = rows["planned"]
    assert sixteen["updates"][:8] == eight["updates"]  # the same run, gone on


def test_a_small_random_change_moves_no_row_and_all_others_win_what_runs_won():
    rows = finale.read_rows()
    start = rows["planned"][0]["begun"]["rows"][64:]
    small, *others = rows["moved"]
    assert finale.turned(start, small["end"]["rows"]) == (0, 0)
    ever = set(finale.kinds_of_rows(rows["planned"])["won later"])
    for one in others:
        end = one["end"]["rows"]
        assert end.count("1") == one["end"]["right"]
        won = {64 + row for row in range(192) if start[row] < end[row]}
        by_lot = len(won) * len(ever) / start.count("0")
        assert len(won & ever) > 2 * by_lot  # "over twice as many as by lot"
        assert len(won & ever) / len(won) >= 0.5  # "at least half"
        assert (len(won) > finale.turned(start, end)[0]) == (one["name"] == "imitation")


def test_18_tells_which_rows_moved_and_the_tool_asked_as_many_of_each_kind():
    rows = finale.read_rows()
    kinds, start = finale.kinds_of_rows(rows["planned"]), rows["planned"][0]["begun"]
    assert sorted(itertools.chain(*kinds.values())) == [*range(64, 256)]
    assert [len(each) for each in kinds.values()] == [28, 36, 128]  # 128: in 18's text
    assert all(start["rows"][row] == "1" for row in kinds["right before"])
    won = [finale.row_changes(test).gt(0) for test in rows["planned"]]
    assert (won[2] & won[3]).sum() == 9 and won[2].sum() == won[3].sum() == 19
    assert set(torch.stack(won).any(0).nonzero().flatten().add(64).tolist()) == set(
        kinds["won later"]
    )
    asked = [str(row) for each in sample_slices(rows["planned"]) for row in each]
    assert asked == [*rows["sampled"]]
    shares = finale.sampled_kinds(rows)
    assert [len(each) for each in shares.values()] == [24, 36, 36]
    # One in six, in eleven, in fifty.
    per = [1 / each.mean().item() for each in shares.values()]
    assert per == pytest.approx([6, 11.5, 48], abs=0.5)


def test_an_interval_leaves_out_zero_where_the_sign_test_is_sure():
    for lost, won in itertools.product(range(13), range(1, 13)):
        low, high = balance(lost, won)
        assert (low > 0 or high < 0) == (by_chance.solution(lost, won) < 0.05)


def test_the_investigation_of_18_takes_its_findings_and_no_others(capsys):
    rows = finale.read_rows()
    rows["runs"] = rows["runs"][:4]  # as long as no other is recorded anew

    def marks(changed, enough=1000):
        finale.weigh(rows, by_chance.solution, changed, enough)
        lines = capsys.readouterr().out.splitlines()
        return [line[1] for line in lines if line.startswith("[")]

    found = {0: (13, 3), 1: (13, 3), 3: (10, 2)}
    assert set(marks(found)) == {"v"}
    assert marks({0: (10, 0), 1: (13, 3), 3: (10, 2)}) == ["x", "v", "v", "v", "v"]
    assert marks(found | {0: (3, 13)})[0] == "x"  # as uneven, and the wrong way round
    assert marks({0: (13, 3), 3: (10, 2)}) == ["v", "v", "x", "v"]
    assert marks(found | {2: (13, 13)})[3] == "x" == marks(found, 64)[-1]
    assert marks(found, 5000)[-1] == "x"
    assert marks({0: 13}) == marks({3: (10, -2)}) == marks(found, "1000") == ["x"]
    assert marks({run: list(pair) for run, pair in found.items()}) == marks(found)
