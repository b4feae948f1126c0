"""The first part of notebook 12 with a fetched model: small, random, of its own kind.

CI has no such model otherwise, so there the same cells show what was recorded. And what
12 and 18 make of the records.
"""

import copy
import itertools
from dataclasses import replace
from math import comb
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
from grpo_course.lessons.pictures.nb18 import balance, plot_balances, plot_sampled
from grpo_course.loop import half_width
from grpo_course.text import qwen, smollm2
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
from tools import rows as recording
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
    alike = {"answers": [["3", "3", "5", None]], "gold": ["3"], "update": 0}
    (run,) = (each for each in finale.runs(record) if each["seed"] == 0)
    rows = [row for row in run["rows"] if "gold" not in row]
    assert finale.agreement([run | {"rows": [*rows, alike]}], 0) == 1 / 3


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
    # The investigation: what practice of other sums of 20 and 21 is worth there.
    ends = []
    for arm in ("GRPO", "GRPO, also sums of 20 and 21"):
        asked = finale.held_out(finale.read_record(), (16,), arm=arm)
        large = [one for one in asked if one["operation"] == "+"]
        large = [one for one in large if one["left"] + one["right"] > 16]
        ends.append(finale.by_seed(large)[0])
    assert [round(share, 2) for share in ends[1].tolist()] == [0, 0.5, 0, 0.59, 0.64]
    assert round(ends[0].max().item(), 2) == 0.27
    assert finale.over_seeds(ends[1] - ends[0]) == "+0.27 ± 0.32"


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
        ["slow", "1", "2e-06", "13", "3", "61"],
        ["slow", "1", "2e-06", "14", "3", "13", "2", "61"],
        ["rival", "1", "1e-05", "14", "3", "61"],  # in float32, as the second
    ]

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
        start, end = (each[64:] for each in asked.values())
        low, high = balance(*finale.turned(start, end))
        assert low < 0 < high  # none is surely a change
        ends.append((end, high))
        # Where more texts hit the form, fewer are cut off; seed 7 went the other way.
        more = run["begun"]["form"] < run["end"]["form"]
        assert more == (run["seed"] != 7)
        assert more == (run["begun"]["cut_off"] > run["end"]["cut_off"])
    # A gain of five in a hundred is in five of them.
    wide = [high > 192 * 0.05 for _, high in ends]
    assert wide == [False, True, True, True, False, True, True]
    told = [start.count("1"), *(end.count("1") for end, _ in ends)]
    told = "{} were right before, and {}, {}, {}, {}, {}, {} and {} in".format(*told)
    assert told in book.cells[-1].source
    # The first is told beside the seeds that were asked the first 64 rows alone.
    slow = [one for one in finale.trained(rows) if one["learning_rate"] == 2e-6]
    assert [one["seed"] for one in slow] == [0, 1, 2, 3, 0]
    assert [one["end"]["right"] for one in slow] == [13, 6, 16, 10, 4]
    assert finale.lost_and_won(slow[3]) == (10, 6)
    assert "end at 13, 6, 16 and 10" in "".join(cell.source for cell in book.cells)
    eight, sixteen, *_, seven, twelve = rows["planned"]
    for first, more in ((eight, sixteen), (seven, twelve)):  # the same run, gone on
        assert more["updates"][:8] == first["updates"]


def test_no_rival_without_a_reward_is_surely_better_or_worse():
    rows = finale.read_rows()
    start, ends = finale.new_rows(rows)
    rivals = [*ends][len(rows["planned"]) :]
    assert finale.turned(start, ends[rivals[0]]) == (0, 0)
    for name in rivals[1:]:
        lost, won = finale.turned(start, ends[name])
        assert by_chance.solution(lost, won) > 0.05  # "none of these is sure"
        assert won > lost or not name.startswith("imitation")
        assert won < lost or "0.0016" not in name


def test_a_plan_of_18_comes_to_what_all_outcomes_add_up_to():
    def added_up(rows, bar, lost, won):
        found = 0.0
        for a, b in itertools.product(range(rows + 1), repeat=2):
            if a + b <= rows and by_chance.solution(a, b) < bar:
                ways = comb(rows, a) * comb(rows - a, b)
                found += ways * lost**a * won**b * (1 - lost - won) ** (rows - a - b)
        return found

    for rows, bar in ((64, 0.05), (90, 0.0125)):
        for lost, won in ((0.1, 0.15), (0.125, 0.125)):
            exact = added_up(rows, bar, lost, won)
            share = finale.below(by_chance.solution, rows, bar, lost=lost, won=won)
            assert share == pytest.approx(exact, abs=1e-5)


def test_a_plan_of_18_sees_a_gain_and_is_seldom_fooled(capsys):
    def marks(*plan):
        finale.try_plan(by_chance.solution, *plan)
        lines = capsys.readouterr().out.splitlines()
        return [(line[1], int(line.split()[-1][:-1]) / 100) for line in lines]

    looks = {rows: marks(rows, 4, 0.05) for rows in (64, 192, 400, 900)}
    assert [seen[1] for seen, _ in looks.values()] == [0.08, 0.24, 0.48, 0.84]
    fooled = [fool[1] for _, fool in looks.values()]
    fooled += [marks(1200, 4, 0.05)[1][1]]
    assert (min(fooled), max(fooled)) == (0.11, 0.16)
    assert {fool[0] for _, fool in looks.values()} == {"x"}
    shared = {rows: marks(rows, 4, 0.0125) for rows in (64, 192, 900, 1200, 1250)}
    assert {fool[0] for _, fool in shared.values()} == {"v"}
    assert max(fool[1] for _, fool in shared.values()) == 0.04
    assert shared[900][0] == ("x", 0.67)
    assert shared[1200][0][0] == shared[1250][0][0] == "v"
    # "In about a third of the experiments, or at best in somewhat more than half."
    seen = [finale.sees(by_chance.solution, 192, 0.05, of) for of in (0.25, 0.18, 0.09)]
    assert [round(each, 2) for each in seen] == [0.24, 0.31, 0.58]


def test_a_vote_is_won_tied_or_held_by_nobody():
    def came_out(answers, gold="7"):
        return [int(each) for each in finale.ballot(answers, gold).values()]

    assert came_out(["7", "7", "5", None]) == [1, 0, 1, 1]
    assert came_out(["5", "7", None]) == [0, 1, 1, 1]  # the first counts
    assert came_out(["7", "5"]) == [1, 1, 1, 1]
    assert came_out(["5", "5", "7"]) == [0, 0, 0, 1]
    assert came_out([None, None]) == [0, 0, 0, 0]


def test_imitation_gains_over_seeds_and_not_surely_over_rows():
    change = finale.changes(finale.read_rows())["imitation"]
    start, ends = finale.new_rows(finale.read_rows())
    lost, won = finale.turned(start, ends["imitation, seed 3"])
    assert change[3].sum() == won - lost and change[3].eq(-1).sum() == lost
    assert half_width(change.sum(1)) < change.sum(1).mean()
    assert half_width(change.mean(0)) > change.mean(0).mean() > 0


def test_the_test_rows_are_asked_as_the_new_rows_were(capsys):
    rows = finale.read_rows()
    before, *others = rows["test"]
    for one in rows["test"]:
        end = one["end"]
        assert len(end["rows"]) == end["problems"] == 256
        assert end["rows"].count("1") == end["right"]
    tested = finale.print_on_test_rows(rows, by_chance.solution)
    more = [one["end"]["right"] - before["end"]["right"] for one in others]
    assert torch.cat([*tested.values()]).sum(1).tolist() == more
    assert len(capsys.readouterr().out.splitlines()) == 2 + len(others)


def test_a_recording_keeps_the_form_of_every_row(monkeypatch):
    texts = [["2 + 3 = 5\n#### 5"], ["#### 6"], ["It is 5."]]
    scores = SimpleNamespace(texts=texts, earned={"lenient_accuracy": torch.ones(1)})
    monkeypatch.setattr(recording, "greedy_scores", lambda *_: scores)
    problem = SimpleNamespace(question="2 + 3?", answer="5")
    environment = SimpleNamespace(
        problems=[problem] * 3, tokenizer=lambda text: {"input_ids": text.split()}
    )
    policy = SimpleNamespace(sampler=SimpleNamespace(max_new_tokens=7))
    found, _ = recording.answers(policy, environment, qwen.MARK)
    assert (found["rows"], found["formed"], found["form"]) == ("100", "110", 2)
    assert found["cut_off"] == 1


def test_18_tells_which_rows_moved_and_the_tool_asked_as_many_of_each_kind(capsys):
    rows = finale.read_rows()
    kinds, start = finale.kinds_of_rows(rows["planned"]), rows["planned"][0]["begun"]
    assert sorted(itertools.chain(*kinds.values())) == [*range(64, 256)]
    assert [len(each) for each in kinds.values()] == [28, 36, 128]  # 128: in 18's text
    assert all(start["rows"][row] == "1" for row in kinds["right before"])
    before, ends = finale.new_rows(rows)
    won = [
        64 + row
        for row, (old, *new) in enumerate(
            zip(before, *[*ends.values()][:4], strict=True)
        )
        if old == "0" and "1" in new
    ]
    assert won == sorted(kinds["won by a run"])
    asked = [str(row) for each in sample_slices(rows["planned"]) for row in each]
    assert all(asked == [*right] for right in rows["sampled"].values())
    shares, _ = finale.sampled_shares(rows, "seed 7")
    begun = [(kind[-8:-6], round(share[0], 2)) for kind, share in shares.items()]
    assert begun[:3] == [("24", 0.17), ("36", 0.09), ("36", 0.02)]
    weighted = sum(
        len(each) * sum(right) / len(right) / 8 / 192
        for each in kinds.values()
        for right in [
            [rows["sampled"]["seed 7"][str(row)] for row in each if str(row) in asked]
        ]
    )
    share = plot_sampled(rows, "seed 7", "before, at 0.7")
    assert shares["the 192 rows, weighted"][1] == pytest.approx(weighted)
    assert 0.05 < weighted < share < 0.1  # the rival gains as much, and both are sure
    told = capsys.readouterr().out.splitlines()
    assert [line.partition(": ")[2][:14] for line in told] == [
        "+0.031 ± 0.021",
        "+0.033 ± 0.021",
    ]


def test_an_interval_leaves_out_zero_where_the_sign_test_is_sure():
    for lost, won in itertools.product(range(13), range(1, 13)):
        low, high = balance(lost, won)
        assert (low > 0 or high < 0) == (by_chance.solution(lost, won) < 0.05)
