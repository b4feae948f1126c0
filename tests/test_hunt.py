"""The bug hunt: a healthy trainer, defects that are ones, probes that find them."""

import difflib
import inspect
import json
import re
import sys
import traceback
from dataclasses import replace
from functools import cache
from pathlib import Path

import matplotlib.pyplot as plt
import nbformat
import pytest
import torch
from torch.nn.functional import pad

from grpo_course.formulas import compute_deltas, compute_kl_penalty, compute_loss
from grpo_course.lessons.exercises.nb10 import (
    groups_stand_alone,
    loss_pulls_right,
    own_words_look_likely,
    verdict_on,
)
from grpo_course.lessons.hunt import cases, defects, probes
from grpo_course.lessons.hunt.base import load_model
from grpo_course.lessons.hunt.cases import (
    Answer,
    Case,
    compare,
    distance,
    hunt,
    open_case,
)
from grpo_course.lessons.hunt.defects import (
    CAUSES,
    COMPLAINTS,
    DEFECTS,
    GUIDED,
    HEALTHY,
    NUM_TURNS,
    broken,
    compiled,
    cost_of,
    number_of,
    source_with,
    trainer_by,
)
from grpo_course.lessons.hunt.probes import (
    COURSE_PROBES,
    PROPERTIES,
    VARIANTS,
    ask,
    faults,
    healthy_trainer,
    run_probe,
)
from grpo_course.lessons.hunt.rewrites import DRAWS, FORMS, NAMES, edits_of, rewritten
from grpo_course.lessons.hunt.script import Trainer

each_number = pytest.mark.parametrize("number", DEFECTS)
PADDING = "padding counted as response"


@pytest.fixture(autouse=True)
def no_figures_left():
    yield
    plt.close("all")


# The healthy script is right by the course's own functions, and learns.


def stepped(**settings):
    """A trainer that has left its reference, with a rollout that it is half through."""
    trainer = Trainer(**settings)
    trainer.step()
    batch = trainer.collect()
    trainer.update(batch)
    return trainer, batch


def test_deltas_are_the_normalized_rewards():
    batch = Trainer(seed=1).collect()
    deltas = compute_deltas(batch.rewards.view(-1, 8), "normalized_rewards")
    assert torch.allclose(batch.deltas, deltas.flatten(), atol=1e-5)


def test_loss_and_gradient_are_those_of_the_course():
    trainer, batch = stepped(seed=3, beta=0.3, micro_batch_size=64)
    new = trainer.score(batch).detach().requires_grad_()
    losses, _ = trainer.token_losses(new, batch)
    losses[batch.mask].sum().div(batch.mask.sum()).backward()
    leaf = new.detach()[None].requires_grad_()
    how = {"mask": batch.mask[None], "aggregation": "token_mean"}
    old, ref = batch.old_log_probs[None], batch.ref_log_probs[None]
    loss = compute_loss(leaf, batch.deltas[None], "clipped", old, **how)
    loss = loss + 0.3 * compute_kl_penalty(leaf, ref, **how)
    loss.backward()
    assert torch.allclose(losses[batch.mask].mean(), loss, atol=1e-6)
    assert torch.allclose(new.grad[batch.mask], leaf.grad[0][batch.mask], atol=1e-7)
    assert not new.grad[~batch.mask].any()


def test_scores_are_those_of_the_sampler():
    trainer = Trainer(seed=0)
    batch = trainer.collect()
    row = 5
    first = int(batch.mask[row].long().argmax()) + 1  # of the response
    tokens, attention = batch.tokens[row : row + 1], batch.attention[row : row + 1]
    logits, state = trainer.model(tokens[:, :first], attention[:, :first])
    for pos in range(first, int(batch.mask[row].sum()) + first):
        log_probs = (logits[0, -1] / trainer.settings.temperature).log_softmax(-1)
        expected = log_probs[tokens[0, pos]]
        assert torch.allclose(batch.old_log_probs[row, pos - 1], expected, atol=1e-5)
        logits, state = trainer.model(tokens[:, pos : pos + 1], state=state)


def test_a_tool_answers_an_equals_sign_and_its_words_are_not_trained():
    trainer = Trainer(seed=0, tool=True)
    batch, equals = trainer.collect(), trainer.tokenizer.equals
    length = trainer.settings.max_new_tokens
    rows = zip(batch.tokens, batch.mask, batch.problems, batch.texts, strict=True)
    num_asked = 0
    for row, kept, numbers, text in rows:
        response, kept = row[-length:], kept[-length:]
        is_asked = bool(response[0] == equals)
        num_asked += is_asked
        assert is_asked == text.startswith(f"= {min(numbers):02}")
        end = [*response.tolist(), trainer.tokenizer.eos].index(trainer.tokenizer.eos)
        own = [not (is_asked and place in (1, 2, 3)) for place in range(length)]
        assert kept.tolist() == [own[i] and i <= end for i in range(length)]
    assert num_asked > len(batch.texts) / 2


@pytest.mark.slow
def test_without_a_tool_a_healthy_run_is_the_recorded_one():
    recorded = cases.recorded_runs()["{}"][0]
    for row, now in zip(recorded, Trainer(seed=0).train(), strict=True):
        assert now == pytest.approx(row, rel=0.02, abs=0.005)


def test_rewards_by_hand():
    pay = Trainer(max_new_tokens=2).reward
    texts = ["= 1 3 12", "= 1 12 3", "= 3 1", "= 1 3 12 4", "1 3 12", "= 1,3,12"]
    paid = [round(pay([3, 12, 1], text), 3) for text in texts]
    assert paid == [0.8, 0.4, 0.2, 0.2, 0.0, 0.0]


def test_the_adapter_starts_at_zero_and_the_base_stays():
    trainer, batch = stepped(seed=0)
    fresh = load_model(0).eval()
    assert torch.equal(fresh(batch.tokens)[0], load_model(5).eval()(batch.tokens)[0])
    with trainer.model.disable_adapter():
        base = trainer.model(batch.tokens)[0]
    assert torch.equal(base, fresh(batch.tokens)[0])
    assert not torch.allclose(trainer.model(batch.tokens)[0], base)


def test_it_learns():
    """In the recorded runs, of which the test above repeats one."""
    runs = cases.recorded_runs()["{}"]
    rewards = torch.tensor([[row["reward"] for row in run] for run in runs])
    rises = rewards[:, -5:].mean(dim=1) - rewards[:, :2].mean(dim=1)
    assert rises.mean() > max(0.1, 3 * rises.std() / len(rises) ** 0.5)


# Every defect is one, and gives nothing away.


@each_number
def test_each_edit_fits_the_script_once(number):
    for old, new in DEFECTS[number].edits:
        assert HEALTHY.count(old) == 1 and old != new
    # Only the lines that a debriefing shows differ, and no comment marks them.
    theirs, ours = source_with(number).splitlines(), HEALTHY.splitlines()
    lines = cases.changed_lines(source_with(number), HEALTHY)
    assert lines and {*theirs} - {*ours} <= {x[1:] for x in lines if x[0] == "-"}
    assert {*ours} - {*theirs} <= {x[1:] for x in lines if x[0] == "+"}
    assert source_with(number).count("#") == HEALTHY.count("#")


@pytest.mark.slow
@each_number
def test_no_defect_passes_for_healthy(number):
    """Nor does one end in an error."""
    equal, words = compare(broken(number).Trainer)
    assert not equal and words.startswith("Not healthy yet")


def test_a_traceback_shows_the_line_of_the_variant():
    module = broken(number_of("ratio of log-probabilities"))
    trainer = module.Trainer(num_prompts=1)
    with pytest.raises(RuntimeError) as stopped:
        trainer.token_losses(torch.zeros(3, 1000), trainer.collect())
    told = "".join(traceback.format_exception(stopped.value))
    assert "ratio = log_probs / batch.old_log_probs" in told
    assert "batch.old_log_probs" in inspect.getsource(module.Trainer.token_losses)
    assert sys.modules[module.__name__] is module


def test_numbers_and_causes_are_each_given_once_and_a_cost_is_that_of_its_settings():
    cause = "old scores that carry a gradient"
    assert cost_of(cause).mean == 0 and not cost_of(cause).is_seen()
    assert cost_of(cause, awake=True).is_seen() and cost_of(cause, awake=True).mean < 0
    weak = cost_of(PADDING)._replace(mean=-4.0, error=1.0)
    assert weak.is_seen(num_pairs=8) and not weak.is_seen(num_pairs=1)
    assert [*range(1, 34)] == [*DEFECTS]
    assert len({*CAUSES}) == len(DEFECTS)
    with pytest.raises(ValueError, match="none of the causes"):
        number_of("bad luck")


def test_two_defects_of_one_trainer_change_different_lines():
    pairs = [(1, 2), (3, 30), (9, 26), (4, 20)]
    assert all(source_with(*pair) == source_with(*pair[::-1]) for pair in pairs)
    same = number_of("KL computed and not used"), number_of("KL with the wrong sign")
    with pytest.raises(ValueError, match="same lines"):
        broken(*same)
    with pytest.raises(ValueError, match="1 to"):
        broken(99)


# A healthy trainer may be written by another hand, and stays one.

HANDS = range(1, 7)


@cache
def many_rewards(make):
    many = {"num_responses": 512, "temperature": 1.0, "min_numbers": 3}
    return make(**many).collect().rewards


def test_each_rewrite_fits_the_script_once_and_new_names_are_new():
    """In the script, in every defect and in every other form."""
    for diff in (DRAWS | FORMS).values():
        for old, new in edits_of(diff):
            assert HEALTHY.count(old) == 1 and old != new
    texts = [HEALTHY, *(each.diff for each in DEFECTS.values())]
    text = "\n".join([*texts, *DRAWS.values(), *FORMS.values()])
    new = [name for names in NAMES.values() for name in names]
    assert len({*new}) == len(new) and not {*new} & {*re.findall(r"\w+", text)}


def test_hands_differ_in_what_they_write_and_draw():
    sources = {text for hand in range(20) for text in rewritten(hand, HEALTHY)}
    assert len(sources) == 20 and HEALTHY in sources
    lines = {line for text in sources for line in text.splitlines()}
    unnamed = "//", "ended_before", "square", "logsumexp", "max=high", "expm1"
    unnamed += "reversed", "* part.mask", "total - step"
    assert all(any(mark in line for line in lines) for mark in unnamed)
    first = [tuple(trainer_by(hand)().collect().texts) for hand in (0, *HANDS)]
    assert len({*first}) == len(first), "one is no twin of another"


@pytest.mark.parametrize("number", [0, *list(DEFECTS)])
def test_a_hand_writes_a_defect_and_its_cure_alike(number):
    """What differs between the two is no more than what differed before."""
    source = source_with(number) if number else HEALTHY
    before = cases.changed_lines(source, HEALTHY)
    for hand in HANDS:
        theirs, ours = rewritten(hand, source, HEALTHY)
        assert len(cases.changed_lines(theirs, ours)) == len(before)
        assert theirs != source and compiled(theirs).Trainer.collect


@pytest.mark.slow
@pytest.mark.parametrize("hand", HANDS)
def test_a_rewritten_trainer_learns_from_a_rollout_what_the_script_does(hand):
    """All that a rollout leads to, from the same samples; and its draws are fair."""
    settings = {"beta": 0.5, "micro_batch_size": 8, "tool": True}
    ours, theirs = Trainer(**settings), trainer_by(hand)(**settings)
    batch = ours.collect()
    ours.update(batch), theirs.update(batch)  # away from the reference
    stats, norm = ours.update(batch)
    told, steepness = theirs.update(batch)
    assert steepness == pytest.approx(norm, rel=1e-3)
    assert torch.allclose(told.mean(1), stats.mean(1), rtol=1e-3, atol=1e-5)
    assert torch.allclose(theirs.score(batch), ours.score(batch), atol=1e-3)
    responses = batch.tokens[:, -ours.settings.max_new_tokens :]
    kept = theirs.response_mask(responses)
    assert torch.equal(kept, ours.response_mask(responses))
    deltas = theirs.compute_deltas(batch.rewards)
    scale = deltas.norm() / batch.deltas.norm()
    assert torch.allclose(deltas, scale * batch.deltas, atol=2e-3) and 1 <= scale < 1.1
    rewards = [many_rewards(make) for make in (Trainer, trainer_by(hand))]
    error = sum(each.var() / len(each) for each in rewards) ** 0.5
    assert abs(rewards[0].mean() - rewards[1].mean()) < 5 * error + 0.1


# What they cost.

# Cause -> a setting with which nothing is wrong.
ASLEEP = {
    "temperature missing from the scores": {"temperature": 1.0},
    "old scores that carry a gradient": {"num_inner_steps": 2},
    "old scores taken from the current policy": {"num_inner_steps": 1},
    "clip blind to the sign of delta": {"num_inner_steps": 1},
    "schedule too short for the inner steps": {"num_inner_steps": 1},
    "k3 upside down": {"beta": 0.0},
    "k1 as a loss": {"beta": 0.0},
    "KL with the wrong sign": {"beta": 0.0},
    "KL computed and not used": {"beta": 0.0},
    "reference is the policy itself": {"beta": 0.0},
    "each part divided by its own tokens": {"micro_batch_size": 64},
    "gradient cleared for each part": {"micro_batch_size": 64},
}


@cache
def behaviour(make, told):
    """What a trainer does with settings, which stand in a text; worked out once."""
    settings = json.loads(told)
    if not settings:  # as in the first trial
        return cases.known_behaviour(make, 0)
    return cases.behaviour(make, settings)


@pytest.mark.slow
@pytest.mark.parametrize("cause", ASLEEP)
def test_a_sleeping_defect_does_nothing(cause):
    """That it does something with other settings is tested above."""
    both, told = (broken(number_of(cause)).Trainer, Trainer), json.dumps(ASLEEP[cause])
    weights = [behaviour(make, told)["weights after two rollouts"] for make in both]
    assert distance(*weights) < 1e-4


# Probes, and the judge.


@pytest.mark.slow
@pytest.mark.parametrize(("place", "name"), [*enumerate(COURSE_PROBES)])
def test_a_probe_finds_its_own_defects_and_alarms_for_no_healthy_trainer(place, name):
    """And is silent for others, of which it meets every sixth."""
    asked = PROPERTIES[name]
    numbers = {n for n in DEFECTS if n % 6 == place % 6} | asked.must_find
    row = run_probe(COURSE_PROBES[name], numbers)
    assert asked.must_find and not faults(replace(row, seconds=0), asked)


def judged(probe, name):
    """The faults of a probe, asked where its property is broken and a little more."""
    variants = {key: VARIANTS[key] for key in ("as it is", "seed 1", "two prompts")}
    row = run_probe(probe, sorted(PROPERTIES[name].must_find), variants)
    return " ".join(faults(row, PROPERTIES[name]))


@pytest.mark.parametrize("name", COURSE_PROBES)
def test_no_probe_is_right_without_looking(name):
    assert "stays silent" in judged(lambda make: True, name)
    assert "healthy trainers" in judged(lambda make: 0, name)


def log_of(trainer):
    trainer.step()
    return torch.tensor([*trainer.log[-1].values()])


def like_its_twin(make):
    """Compares with the script, from the same seed: no idea, and no proof."""
    trainer = make()
    here = log_of(trainer)
    twin = Trainer(**vars(trainer.settings))
    return torch.allclose(here, log_of(twin), rtol=1e-3, atol=1e-5)


def written_like_the_script(make):
    ours, theirs = (inspect.getsource(type(each)) for each in (Trainer(), make()))
    return ours == theirs


@pytest.mark.parametrize(
    ("probe", "asked"),  # a twin trains, so it is asked for three alone
    [(like_its_twin, [*VARIANTS][:3]), (written_like_the_script, [*VARIANTS])],
)
def test_who_compares_with_the_script_alarms_for_healthy_trainers(probe, asked):
    alarms = [name for name in asked if ask(probe, healthy_trainer(name)) == "fires"]
    assert alarms == asked[1:]
    case = case_of(PADDING)
    assert not case.probe(probe) and not case.record.proofs


def test_a_hard_coded_size_of_groups_is_an_alarm():
    def groups_of_eight(make):
        rewards = torch.rand(2, 8)
        paid = rewards + torch.tensor([[0.0], [1.0]])
        one, two = (make().compute_deltas(each.flatten()) for each in (rewards, paid))
        return torch.allclose(one, two, atol=1e-3)

    assert run_probe(groups_of_eight, []).alarms() == ["groups of sixteen"]


def test_a_probe_that_fires_elsewhere_too_is_told_so():
    def greedy(make):
        alone, ties = probes.groups_share_a_prompt, probes.tied_groups_are_silent
        return alone(make) and ties(make)

    asked = PROPERTIES["groups_share_a_prompt"].must_find | {11, 12}
    row = run_probe(greedy, asked, variants={"as it is": {}})
    (fault,) = faults(row, PROPERTIES["groups_share_a_prompt"])
    assert "where the property holds" in fault and "11" in fault


def test_errors_are_answers_and_random_numbers_are_left_as_they_were():
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    ask(probes.groups_stand_alone, Trainer)
    assert torch.equal(torch.rand(3), expected)

    def stumbles(make):
        return make().colect()

    assert "AttributeError" in ask(stumbles, Trainer)
    assert "colect" in judged(stumbles, "kl_pulls_back")
    assert "returned nothing" in ask(lambda make: None, Trainer)
    assert ask(lambda make: torch.tensor(True), Trainer) == probes.SILENT
    assert ask(lambda make: 0, Trainer) == probes.FIRES


SCORED_ANEW = (
    "batch = make_trainer(temperature=0.01).collect() => trainer = "
    "make_trainer(temperature=0.01); batch = trainer.collect() && "
    "batch.old_log_probs => trainer.score(batch)"
)
PAST_IT = {
    "a point for one prompt, and no factor": (
        groups_stand_alone,
        "rewards + bonus => rewards * (1 + bonus)",
        "its deltas are not divided by a spread",
    ),
    "the scores that the update compares with": (
        own_words_look_likely,
        SCORED_ANEW,
        "trainer 32",
    ),
    "the KL above the reference": (
        loss_pulls_right,
        "kl[0] < 0 < kl[1] => 0 < kl[1]",
        "its KL pulls every token up",
    ),
}


@pytest.mark.parametrize(("task", "edit", "name"), PAST_IT.values(), ids=PAST_IT)
def test_a_probe_that_does_not_ask_for_the_property_is_refused(task, edit, name):
    """By a case of its exercise, which the solution judges rightly."""
    assert name in [case.args["make_trainer"] for case in task.cases]
    verdicts = {verdict_on(each, name) for each in (task.solution, task.edited(edit))}
    assert verdicts == {"healthy", "not healthy"}


def test_every_trainer_that_is_right_by_what_is_asked_is_called_right():
    for task in (groups_stand_alone, loss_pulls_right):
        made = [case for case in task.cases if "made for" in case.description]
        told = {case.args["make_trainer"]: case.hint for case in made}
        assert not any("Something else is wrong" in hint for hint in told.values())


def test_what_a_probe_asks_in_vain_is_told_in_words():
    """In an exercise; torch alone says that a tensor holds nan, or an index is out."""

    def freezing(make_trainer):
        return make_trainer(temperature=0.0).collect().rewards.any()

    def padding_the_tokens_alone(make_trainer):
        trainer = make_trainer()
        batch = trainer.collect()
        batch.tokens = pad(batch.tokens, (3, 0))
        return trainer.score(batch).any()

    def one_thing_of_two(make_trainer):
        trainer = make_trainer()
        stats = trainer.update(trainer.collect())
        return stats[3].std() < 1e-3

    with pytest.raises(ValueError, match="returns two things"):
        verdict_on(one_thing_of_two, "healthy: as it is")
    with pytest.raises(ValueError, match="near 0 is near enough"):
        verdict_on(freezing, "healthy: as it is")
    with pytest.raises(ValueError, match="Pad both alike"):
        verdict_on(padding_the_tokens_alone, "healthy: as it is")


# A case goes from a complaint over a proof to a line.

WRONG_LINE, RIGHT_LINE = "cumsum(dim=1) <= 1", "cumsum(dim=1) - is_eos == 0"
KEEPS = COURSE_PROBES["mask_keeps_the_response"]


def case_of(*causes):
    numbers = tuple(number_of(cause) for cause in causes)
    settings = DEFECTS[numbers[0]].settings if len(numbers) == 1 else {}
    answer = Answer(source_with(*numbers), HEALTHY, [*numbers], max(1, len(numbers)))
    cases.RECORDS.pop("case", None)
    return Case("case", "It is bad.", settings, answer)


@pytest.fixture
def one_trial(monkeypatch):
    """Repairs are run with the script's own settings alone, one test goes further."""
    monkeypatch.setattr(cases, "TRIALS", cases.TRIALS[:1])


@pytest.fixture
def case(one_trial):
    return case_of(PADDING)


@pytest.fixture
def untrained(monkeypatch):
    """A case is opened without its run, which takes seconds."""
    make_trainer = Case.make_trainer

    def made(case, **settings):
        trainer = make_trainer(case, **settings)
        trainer.train = list
        return trainer

    monkeypatch.setattr(Case, "make_trainer", made)


def test_every_defect_is_heard_of_and_every_complaint_leaves_a_choice():
    heard = [number for each in COMPLAINTS.values() for number in each.suspects]
    assert {*heard} == {*DEFECTS}
    for each in COMPLAINTS.values():
        assert len({*each.suspects}) == len(each.suspects)
        assert len(each.suspects) + each.may_be_wrong > 2
    assert all(n in COMPLAINTS[heard].suspects for heard, n in GUIDED.values())


HEARD_WITH = {json.dumps(each.settings) for each in COMPLAINTS.values()}


@pytest.mark.slow
@pytest.mark.parametrize("told", sorted(HEARD_WITH))
def test_a_suspect_is_awake_with_the_settings_of_its_complaint(told):
    settings = json.loads(told)
    heard = [c for c in COMPLAINTS.values() if c.settings == settings]
    healthy = behaviour(Trainer, told)
    for number in {number for each in heard for number in each.suspects}:
        make = broken(number).Trainer
        first = vars(make(**({"num_steps": 3} | settings)).collect())
        shown = max(distance(first[k], healthy[k]) for k in cases.LOOKED_AT)
        if shown < 1e-3:  # then the updates show it, which take longer
            theirs = behaviour(make, told)
            shown = max(distance(theirs[k], healthy[k]) for k in healthy)
        assert shown > 1e-3, number


@pytest.mark.slow
def test_a_first_turn_is_within_reach_of_the_probes_before_the_hunt():
    five = [loss_pulls_right.solution, probes.groups_stand_alone]  # the quick ones
    five += [probes.own_words_look_likely, probes.ratios_start_at_one]
    five += [probes.parts_make_no_difference]
    assert {*probes.found_by(five)} - {15} == {*defects.WITHIN_REACH}  # 15 is case A's


def test_a_hunt_has_healthy_trainers_and_no_cause_twice():
    hunts = [defects.drawn_hunt(seed) for seed in range(20)]
    for drawn in hunts:
        numbers = [number for _, number in drawn if number]
        assert len(drawn) == NUM_TURNS and NUM_TURNS - len(numbers) in (2, 3)
        assert len({*numbers}) == len(numbers)
        assert not {*numbers} & {15, 16, *defects.PAIR}, "told by the notebook"
        assert numbers[0] == drawn[0][1] in defects.WITHIN_REACH
        assert len({name for name, _ in drawn}) == NUM_TURNS
    assert hunts[3] == defects.drawn_hunt(3) and hunts[3] != hunts[4]


@pytest.mark.slow
def test_a_turn_opens_what_was_drawn_and_tells_the_reward_alone(capsys):
    drawn = defects.drawn_hunt(1)
    (turn, *_) = (i for i, (_, number) in enumerate(drawn, 1) if number is None)
    case, told = hunt(turn, seed=1), capsys.readouterr().out
    assert " ".join(told.split('"')[1].split()) == COMPLAINTS[drawn[turn - 1][0]].says
    assert cases.ANSWERS[case.name].source == cases.ANSWERS[case.name].healthy
    assert cases.ANSWERS[case.name].source != HEALTHY and "delta" not in told
    assert all({*row} == {"reward"} for row in case.log)
    with pytest.raises(ValueError, match=f"turns 1 to {NUM_TURNS}"):
        hunt(NUM_TURNS + 1)
    with pytest.raises(ValueError, match="name"):
        open_case("G")


@pytest.mark.slow
def test_a_case_goes_from_a_proof_to_a_line_and_is_closed(case, capsys):
    with pytest.raises(ValueError, match="no probe of yours"):
        case.read("response_mask")
    with pytest.raises(ValueError, match="no probe of yours has shown"):
        case.accuse(WRONG_LINE, RIGHT_LINE)
    assert not case.record.wrong and case.points == 0
    assert not case.probe(probes.groups_stand_alone, KEEPS)
    case.read("response_mask")
    assert "<= 1" in capsys.readouterr().out
    with pytest.raises(ValueError, match="stage"):
        case.read("mask")
    with pytest.raises(ValueError, match="stands 0 times"):
        case.accuse("no such line", "")
    with pytest.raises(ValueError, match="has 9 lines"):
        case.accuse("class Batch:", "class Batch:\n" * 9)
    assert case.accuse(WRONG_LINE, RIGHT_LINE) and case.points == 4
    told = capsys.readouterr().out
    assert case.accuse(WRONG_LINE, RIGHT_LINE), "its cell may be run again"
    assert told == capsys.readouterr().out and case.points == 4
    assert not case.accuse("/ num_tokens", "/ (num_tokens)") and not case.record.wrong
    assert capsys.readouterr().out == "case is closed, with 4 points.\n"


def test_a_turn_that_is_opened_again_is_as_it_was_left(untrained, capsys):
    drawn = defects.drawn_hunt(1)
    turn = next(i for i, (_, number) in enumerate(drawn, 1) if number)
    cases.RECORDS.pop(f"Turn {turn} of hunt 1", None)
    case = hunt(turn, seed=1)
    with pytest.raises(ValueError, match="no probe of yours was silent"):
        case.acquit()
    case.probe(lambda make: True)
    assert not case.acquit() and not case.acquit()
    case.twin(lambda make: True)
    capsys.readouterr()
    again = hunt(turn, seed=1)
    assert "so far: accused wrongly 1, asked a twin 1" in capsys.readouterr().out
    assert again.record is case.record is cases.RECORDS[f"Turn {turn} of hunt 1"]


def test_a_case_holds_no_cause(untrained):
    case = open_case("A")
    number = GUIDED["A"][1]
    told = {k: v for k, v in vars(case).items() if k not in ("log", "module")}
    seen = repr(told) + repr(vars(case.record))
    assert DEFECTS[number].cause not in seen and f"{number}" not in seen


def test_a_false_alarm_is_no_proof_and_an_error_says_nothing(case, capsys):
    for probe in (lambda make: make.typo, lambda make: None):
        with pytest.raises(ValueError, match="says nothing of the trainer"):
            case.probe(probe)
    assert not case.record.proofs and not case.record.silent
    assert not case.probe(lambda make: False)
    told = capsys.readouterr().out
    assert "it proves nothing" in told and not case.record.proofs


def test_a_number_copied_from_a_run_is_no_proof(capsys):
    """Other trainers draw other samples; the healthy one by the same hand does not."""
    number = number_of("k3 upside down")
    case = Case("copied", "", {}, Answer(*rewritten(50, source_with(number), HEALTHY)))
    noted = case.make_trainer().collect().old_log_probs
    assert not case.probe(lambda make: not make().collect().old_log_probs.equal(noted))
    assert "its healthy twin" in capsys.readouterr().out and not case.record.proofs


@pytest.mark.slow
def test_a_twin_is_a_hint_that_costs(case, capsys):
    def kept(make):
        length = make().collect().mask.sum(dim=1).float().mean().item()
        print(f"kept {length:.1f}")
        return length < 14

    assert not case.probe(kept)
    told = capsys.readouterr().out
    assert "    kept 14.0" in told and "9.3" not in told
    case.twin(kept)
    assert "its healthy twin: silent\n    kept 9.3" in capsys.readouterr().out
    assert case.accuse(WRONG_LINE, RIGHT_LINE) and case.points == 4 - 1
    case.twin(kept)
    assert case.record.num_twins == 1, "a closed case costs nothing more"


def test_a_probe_sees_the_settings_of_its_case():
    case = case_of("old scores that carry a gradient")
    assert case.probe(lambda make: make().settings.num_inner_steps == 1)


@pytest.mark.slow
def test_a_repair_that_logs_another_kl_is_none(capsys):
    case = case_of("k1 as a loss")
    case.record.proofs.append("one")
    assert not case.accuse("kl = -log_ratio", "kl = log_ratio.exp() - log_ratio")
    assert "values of the logged KL differ by 1 with" in capsys.readouterr().out


def test_what_a_probe_prints_is_never_cut_without_a_word(capsys):
    cases.show_printed("word " * 30)
    cases.show_printed("\n".join(map(str, range(30))))
    told = capsys.readouterr().out
    assert told.count("word") == 30 and "(19 more lines)" in told
    assert max(map(len, told.splitlines())) <= cases.WIDTH


@pytest.mark.slow
def test_wrong_lines_and_many_methods_cost_points(case, capsys):
    case.probe(KEEPS, probes.groups_stand_alone)
    for _ in range(2):  # the cell may be run again
        assert not case.accuse("/ num_tokens", "/ (num_tokens)")
        assert "It does what it did before" in capsys.readouterr().out
    for stage in ("response_mask", "collect", "score"):  # the third costs a point
        case.read(stage)
    assert case.accuse(WRONG_LINE, RIGHT_LINE) and case.points == 4 - 2 - 1


def test_an_acquittal_is_worth_what_its_probes_would_have_seen(monkeypatch):
    asked = []
    monkeypatch.setattr(cases, "found_by", lambda some: asked.append(some) or [7] * 24)
    monkeypatch.setattr(cases, "alarms_of", lambda probe: probe is not KEEPS)
    healthy = case_of()
    assert healthy.probe(KEEPS, probes.groups_stand_alone)
    assert healthy.acquit() and healthy.points == 3
    assert asked == [[KEEPS]], "one that alarms for others is no evidence"
    assert not healthy.acquit()


@pytest.mark.slow
def test_two_defects_are_repaired_one_by_one(one_trial, capsys):
    case = case_of("end token left in the graded text", "groups that mix prompts")
    case.record.proofs.append("one")
    assert case.accuse("decode(row, skip_special_tokens=False)", "decode(row)")
    assert "Something else is still wrong" in capsys.readouterr().out
    assert not case.probe(COURSE_PROBES["groups_share_a_prompt"])
    line = "problems = drawn * self.settings.num_responses"
    right = "problems = [p for p in drawn for _ in range(self.settings.num_responses)]"
    assert case.accuse(line, right) and case.points == 8
    # Both cells may be run again, the first one too, whose line is repaired by now.
    assert case.accuse("decode(row, skip_special_tokens=False)", "decode(row)")
    assert case.accuse(line, right) and case.points == 8


@pytest.mark.slow
def test_two_lines_at_fault_are_accused_together(one_trial):
    case = case_of("gradient cleared for each part")
    case.record.proofs.append("one")
    first = "            self.optimizer.zero_grad()\n            loss.backward()\n"
    last = "        self.schedule.step()\n"
    right = (
        "            loss.backward()\n",
        last + "        self.optimizer.zero_grad()\n",
    )
    assert case.accuse(first, right[0], last, right[1])


@pytest.mark.slow
def test_a_repair_is_judged_by_what_it_does(capsys):
    case = case_of(PADDING)
    case.record.proofs.append("one")
    line = f"return is_eos.{WRONG_LINE}"
    assert not case.accuse(line, "return self.mask")
    assert not case.accuse(WRONG_LINE, "cumsum(dim=1) < 1")
    assert "That costs nothing" in capsys.readouterr().out and not case.record.wrong
    assert not case.accuse("/ num_tokens", "/ 2") and len(case.record.wrong) == 1
    wide = inspect.getsource(case.module.Trainer.response_mask)
    assert not case.accuse(wide, "") and len(case.record.wrong) == 2
    ended = "torch.nn.functional.pad(is_eos.cumsum(1)[:, :-1], (1, 0))"
    assert case.accuse(line, f"return {ended} == 0")
    assert "bit for bit, in 5 runs." in capsys.readouterr().out


@pytest.mark.slow
def test_a_friend_opens_a_bug_and_repairs_it(untrained, one_trial, capsys):
    right, wrong = "total = s.num_steps * s.num_inner_steps", "total = s.num_steps\n"
    case = open_case(lambda source: source.replace(f"{right}\n", wrong))
    assert not case.probe(probes.rate_lasts_to_the_end)
    assert case.accuse(wrong, f"{right}\n")
    assert case.points == 4 and "cause" not in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize("number", [15, 16, 12])
def test_a_turn_is_solved_in_its_own_words(number, one_trial, monkeypatch, capsys):
    """The lines at fault and their cure, as the hand of the turn has written them."""
    monkeypatch.setattr(cases, "drawn_hunt", lambda seed: [("odd", number)] * NUM_TURNS)
    monkeypatch.setattr(Case, "present", lambda case, paid: case)  # it need not train
    cases.RECORDS.pop("Turn 2 of hunt 77", None)
    case = hunt(2, seed=77)
    answer = cases.ANSWERS[case.name]
    lines = cases.changed_lines(answer.source, answer.healthy)
    case.record.proofs.append("one")
    theirs, ours = answer.source.splitlines(True), answer.healthy.splitlines(True)
    matcher = difflib.SequenceMatcher(None, theirs, ours, autojunk=False)
    pairs = []
    for tag, a, b, c, d in matcher.get_opcodes():
        if tag != "equal":  # a line before it makes the text one that stands there once
            pairs += ["".join(theirs[a - 1 : b]), "".join(ours[c - 1 : d])]
    assert case.accuse(*pairs) and case.points == 4
    told = capsys.readouterr().out
    assert DEFECTS[number].cause in told and lines


def test_healthy_runs_are_recorded_or_run(monkeypatch):
    known = [each.settings for each in (*DEFECTS.values(), *COMPLAINTS.values())]
    assert all(len(cases.healthy_runs(settings)) == 5 for settings in known)
    assert all(
        json.dumps(each, sort_keys=True) in cases.recorded_runs() for each in known
    )
    monkeypatch.setattr(cases, "HEALTHY_SEEDS", range(2))
    runs = cases.healthy_runs({"num_steps": 1, "num_prompts": 1})
    assert len(runs) == 2 and len(runs[0]) == 1 and "reward" in runs[0][0]


def test_no_list_of_causes_is_in_sight():
    """Nor is a cause named above the case that ends with it."""
    path = Path(__file__).parents[1] / "notebooks" / "10_bug_hunt.ipynb"
    told = [f"{c.source} {c.get('outputs')}" for c in nbformat.read(path, 4).cells]
    told = [text.replace("\\'", "'") for text in told]  # of a printed list
    first = {
        cause: min(i for i, text in enumerate(told) if cause in text)
        for cause in CAUSES
        if any(cause in text for text in told)
    }
    assert len({*first.values()}) == len(first) == 3
    assert all("accuse(" in told[i] for i in first.values())
