"""A case goes from a complaint to a debriefing, and judges repairs by what they do."""

import inspect
import re

import matplotlib.pyplot as plt
import pytest
import torch

from grpo_course.classroom.hunt import recorded
from grpo_course.classroom.hunt.broken import HEALTHY, source_with
from grpo_course.classroom.hunt.cases import Case, hunt, open_case
from grpo_course.classroom.hunt.debrief import boxes_of, changed_lines, stage_of
from grpo_course.classroom.hunt.defects import CAUSES, DEFECTS, number_of
from grpo_course.classroom.hunt.probes import groups_share_a_prompt
from grpo_course.classroom.hunt.properties import COURSE_PROBES
from grpo_course.classroom.hunt.repair import compare
from grpo_course.classroom.hunt.roles import GUIDED, HUNTED, SOLVED
from grpo_course.classroom.hunt.script import Trainer
from grpo_course.classroom.plots.log_panel import PANEL, plot_log_panel
from grpo_course.classroom.plots.trainer_flow import draw_flow

PADDING = "padding counted as response"


@pytest.fixture
def case():
    return Case("case", (number_of(PADDING),))


@pytest.fixture(autouse=True)
def no_figures_left():
    yield
    plt.close("all")


def test_solved_and_hunted_cases_are_all_the_defects():
    assert len(GUIDED) == 6 and sorted([*SOLVED, *HUNTED]) == sorted(DEFECTS)
    assert len({DEFECTS[n].first_look for n in GUIDED.values()}) == 6


def test_the_hunt_opens_each_case_once(monkeypatch):
    monkeypatch.setattr(Case, "present", lambda case: case)
    opened = [[hunt(turn, seed) for turn in range(1, 18)] for seed in (0, 1)]
    orders = [[number_of(case._left[0]) for case in order] for order in opened]
    assert orders[0] != orders[1] and sorted(orders[0]) == sorted(HUNTED)
    assert [case.name for case in opened[0][:2]] == ["turn 1", "turn 2"]
    with pytest.raises(ValueError, match="turns 1 to 17"):
        hunt(18)


@pytest.mark.parametrize("number", DEFECTS)
def test_a_complaint_names_what_is_seen_and_not_its_cause(number):
    """Of the words of its cause, only those of the log and of a sample stand in it."""
    defect = DEFECTS[number]
    seen = {*re.findall(r"[a-z]{4,}", " ".join(PANEL) + str(defect.settings))}
    seen |= {"first", "looks", "samples", "responses", "token", "tokens", "step"}
    of_cause, said = (
        {*re.findall(r"[a-z]{4,}", words.lower())} - seen
        for words in (defect.cause, defect.complaint)
    )
    assert not of_cause & said


@pytest.mark.slow
@pytest.mark.parametrize("letter", GUIDED)
def test_opening_a_case_tells_no_cause(letter, capsys):
    case = open_case(letter)
    case.plot_log()
    said = " ".join(capsys.readouterr().out.split())
    defect = DEFECTS[GUIDED[letter]]
    assert defect.complaint in said and said.count("reward") >= 3
    told = said + plt.gcf().get_label() + repr(case) + "".join(dir(case))
    assert defect.cause not in told and defect.probe not in told
    assert case.source() == inspect.getsource(case.module)
    titles = [ax.get_title() for ax in plt.gcf().axes]
    assert "reward" in titles and "learning rate" in titles


def test_a_case_is_looked_back_on_once_its_cause_is_named(case, capsys):
    with pytest.raises(ValueError, match="name its cause first"):
        case.look_back()
    guess = "k1 as a loss"
    assert case.accuse_in_turn(None, guess, case.cause, guess) == PADDING
    assert capsys.readouterr().out.count("[x]") == 1 and case.score() == 3
    case.look_back()
    assert "Guilty: response_mask." in plt.gcf().get_label()


def test_the_panel_says_where_its_scale_is_by_powers_of_ten():
    healthy = recorded.healthy_runs({})
    far = [row | {"kl": 100 * row["kl"]} for row in healthy[0]]
    titles = [ax.get_title() for ax in plot_log_panel(far, healthy)]
    assert "KL (nats a token), log scale" in titles and "reward" in titles


@pytest.mark.parametrize("number", DEFECTS)
def test_every_guilty_stage_is_a_box(number):
    stages = [stage_of(old) for old, _ in DEFECTS[number].edits]
    ax = draw_flow(stages)
    thick = [box for box in ax.patches if box.get_linewidth() == 3]
    assert len(thick) >= len(set(stages))


@pytest.mark.parametrize("number", DEFECTS)
def test_looking_back_marks_one_place_for_each_of_a_defect(number):
    boxes = boxes_of(DEFECTS[number])
    thick = [p for p in draw_flow(boxes).patches if p.get_linewidth() == 3]
    assert len(thick) == len(boxes) + boxes.count("score")


def test_a_probe_counts_and_the_budget_ends(case, capsys):
    assert not case.probe(COURSE_PROBES["mask_keeps_the_response"])
    for _ in range(3):
        assert case.probe(groups_share_a_prompt)
    said = capsys.readouterr().out
    assert "not healthy (3 of 4 probes left)" in said and "(0 of 4" in said
    with pytest.raises(ValueError, match="are spent"):
        case.probe(groups_share_a_prompt)


def test_wrong_causes_are_answered_and_cost_points(case, capsys):
    for wrong in ("k1 as a loss", "k3 upside down", "k3 upside down"):  # costs once
        assert not case.accuse(wrong)
    assert case.score() == 0 and PADDING not in capsys.readouterr().out
    case.num_probes = 2
    assert case.accuse(PADDING) and case.score() == 4 - 2 - 1
    said = capsys.readouterr().out
    assert "MemGen #33" in said and "is_eos.cumsum(dim=1) <= 1" in said
    with pytest.raises(ValueError, match="cause"):
        case.accuse("bad luck")


def test_four_points_at_the_first_try_and_never_below_zero(case):
    case.accuse(PADDING)
    assert case.score() == 4
    case.wrong_causes = {*CAUSES}
    assert case.score() == 0


def test_two_defects_are_two_causes(capsys):
    causes = "k1 as a loss", "groups that mix prompts"
    case = Case("case", tuple(number_of(cause) for cause in causes))
    case.accuse(causes[1])
    assert case.score() == 0 and "1 cause left" in capsys.readouterr().out
    assert case.accuse(causes[1]) and case.score() == 0  # found already
    case.accuse(causes[0])
    assert case.score() == 8 and "look into collect" in capsys.readouterr().out


@pytest.mark.parametrize("number", DEFECTS)
def test_the_debriefing_shows_the_lines(number):
    lines = changed_lines(DEFECTS[number])
    assert lines and all(line[0] in "-+" for line in lines)
    for mark, there, not_there in (
        ("-", source_with(number), HEALTHY),
        ("+", HEALTHY, source_with(number)),
    ):
        marked = [line[1:] for line in lines if line[0] == mark]
        assert all(line in there.splitlines() for line in marked)
        assert not marked or any(x not in not_there.splitlines() for x in marked)


def test_a_repair_in_place_equals_the_healthy_trainer(case, capsys):
    assert not case.repair("cumsum(dim=1) <= 1", "cumsum(dim=1) < 1")
    assert "mask" in capsys.readouterr().out
    assert case.repair("cumsum(dim=1) <= 1", "cumsum(dim=1) - is_eos == 0")
    assert "bit for bit" in capsys.readouterr().out
    with pytest.raises(ValueError, match="stands 0 times"):
        case.repair("no such line", "")


def test_a_repaired_class_is_judged_by_what_it_does(case, capsys):
    class Repaired(case.module.Trainer):
        def response_mask(self, responses):
            ended = (responses == self.tokenizer.eos).cumsum(1)
            return torch.nn.functional.pad(ended[:, :-1], (1, 0)) == 0

    assert case.repair(Repaired)

    class Stumbles(case.module.Trainer):
        def response_mask(self, responses):
            return self.mask

    assert not case.repair(Stumbles)
    assert "AttributeError" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize("number", DEFECTS)
def test_no_defect_passes_for_healthy(number):
    equal, words = compare(Case("case", (number,)).module.Trainer)
    assert not equal and words.startswith("Not healthy yet")


def test_rounding_passes_and_is_called_so(monkeypatch):
    class Reordered(Trainer):
        def score(self, batch):
            return super().score(batch) * (1 + 1e-7)

    equal, words = compare(Reordered)
    assert equal and "is rounding" in words
    assert compare(Trainer) == (
        True,
        "It equals the healthy trainer bit for bit, in 5 runs.",
    )


def test_unknown_cases_are_refused():
    with pytest.raises(ValueError, match="name"):
        open_case("G")
    with pytest.raises(ValueError, match="1 to"):
        open_case(99)


def test_healthy_runs_are_recorded_or_run(monkeypatch):
    monkeypatch.setattr(recorded, "stored", lambda path: {})
    monkeypatch.setattr(recorded, "HEALTHY_SEEDS", range(2))
    runs = recorded.healthy_runs({"num_steps": 1, "num_prompts": 1})
    assert len(runs) == 2 and len(runs[0]) == 1 and "reward" in runs[0][0]
    assert len(CAUSES) == len(DEFECTS)


def test_a_probe_sees_the_settings_of_its_case():
    case = Case("case", (number_of("old scores that carry a gradient"),))
    seen = []
    case.probe(lambda make_trainer: seen.append(make_trainer().settings) or True)
    assert case.settings
    assert {name: getattr(seen[0], name) for name in case.settings} == case.settings


@pytest.mark.parametrize("probe", [lambda make: make.typo, lambda make: None])
def test_a_probe_that_fails_is_no_evidence_and_costs_nothing(case, probe):
    with pytest.raises(ValueError, match="says nothing of the trainer"):
        case.probe(probe)
    assert case.num_probes == 0
