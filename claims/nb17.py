"""What 17_judges_and_teachers claims."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

from claims.runner import (
    BEST,
    PROMPT_SETS,
    Claim,
    Setting,
)
from grpo_course.formulas import compute_deltas
from grpo_course.lessons import teachers
from grpo_course.lessons.judges import (
    draw_judges,
    judge_errors,
    of_panel,
)
from grpo_course.lessons.preferences import (
    EVERY,
    RewardModel,
    bradley_terry_loss,
    by_choice,
    climb,
    descend,
    dpo,
    draw_pairs,
    of_pairs,
    scores_of,
    true_rewards,
    warm_start,
)
from grpo_course.loop import Rollout
from grpo_course.sort import SORT_PROMPTS, all_log_probs, exact_sorted_probability


def climbing(setting: Setting) -> dict[str, Any]:
    """How a climb is varied."""
    epochs = round(60 * setting.length)
    return {"num_epochs": epochs, "learning_rate": 0.001 * setting.rate}


def true_reward(
    setting: Setting,
    num_pairs: int = 40,
    written: bool = False,
) -> Tensor:
    """What a policy is worth after it climbed a learned reward. -> [seed]

    The pairs are of random responses, or of such as the policy writes at the start.
    """
    seeds, prompts = setting.seeds, PROMPT_SETS[setting.prompts]
    policy = warm_start(seeds, prompts)
    before = all_log_probs(policy.model, prompts).exp().detach()
    chances = before if written else None
    pairs = draw_pairs(num_pairs, seeds, prompts, chances=chances)
    marks = scores_of(fitted(pairs, seeds, prompts), prompts)
    return climb(marks, policy, prompts, **climbing(setting)).final("true")


def fitted(pairs: Tensor, seeds: Sequence[int], prompts: Tensor) -> RewardModel:
    """As `fit_reward_model`, but each response is read once, in however many pairs."""
    model = RewardModel(5, 16, 3, 3, seeds)
    every = EVERY.expand(len(seeds), len(prompts), *EVERY.shape)

    def loss() -> Tensor:
        sides = of_pairs(model(prompts, every), pairs)
        return bradley_terry_loss(*(side.flatten(1) for side in sides))

    descend(loss, model, 200, 0.01)
    return model


def the_start(setting: Setting) -> Tensor:
    """What a policy is worth before it climbs. -> [seed]"""
    return worth_of(warm_start(setting.seeds, PROMPT_SETS[setting.prompts]), setting)


def worth_of(policy: Any, setting: Setting) -> Tensor:
    """The true reward that a policy earns: exact, [seed]."""
    prompts = PROMPT_SETS[setting.prompts]
    chances = all_log_probs(policy.model, prompts).exp().detach()
    return (chances * true_rewards(prompts)).sum(-1).mean(-1)


def by_dpo(
    setting: Setting,
    of_right: bool = False,
    turned: bool = False,
    hold: float = 0.0,
) -> Tensor:
    """DPO on 40 pairs that the start wrote: what the policy is worth. [seed]

    Or the mean change of log pi of the responses that were rightly chosen. `turned`
    makes the truly better response of each pair the chosen one.
    """
    seeds, prompts = setting.seeds, PROMPT_SETS[setting.prompts]
    policy = warm_start(seeds, prompts)
    before = all_log_probs(policy.model, prompts).detach()
    pairs = draw_pairs(40, seeds, prompts, chances=before.exp())
    if turned:
        chosen, rejected = of_pairs(true_rewards(prompts).expand_as(before), pairs)
        wrong = (chosen < rejected)[..., None]
        pairs = torch.where(wrong, pairs.flip(-1), pairs)
    num_steps, rate = round(200 * setting.length), 0.001 * setting.rate
    dpo(pairs, policy, prompts, 0.1, num_steps, rate, hold)
    if not of_right:
        return worth_of(policy, setting)
    change = all_log_probs(policy.model, prompts).detach() - before
    return by_choice(of_pairs(change, pairs)[0], pairs, prompts)["rightly chosen"]


def sorts_after(marks: Tensor, setting: Setting, prompts: Tensor) -> Tensor:
    """P(sorted) of policies that climbed such marks [seed batch all]. -> [seed]"""
    policy = warm_start(setting.seeds, prompts)
    climb(marks, policy, prompts, **climbing(setting))
    return exact_sorted_probability(policy.model, prompts).mean(-1).detach()


def by_panel(setting: Setting, num_judges: int, correlation: float = 0.0) -> Tensor:
    """P(sorted) after climbing the mean mark of such judges. -> [seed]"""
    prompts = PROMPT_SETS[setting.prompts]
    errors = judge_errors(num_judges, correlation, setting.seeds, prompts).mean(0)
    return sorts_after(true_rewards(prompts) + errors, setting, prompts)


def by_names(setting: Setting, panel: str) -> Tensor:
    """P(sorted) after climbing the mean mark of these of the twelve. -> [seed]"""
    errors = draw_judges(setting.seeds)[of_panel(panel)].mean(0)
    return sorts_after(true_rewards() + errors, setting, SORT_PROMPTS)


# Teachers and their students.


def taught(setting: Setting, make: Callable[[Any], dict], rate: float = 0.02) -> Tensor:
    """P(right) of students. `make` says for a teacher how to study. -> [seed]"""
    teacher = teachers.make_teacher(setting.seeds)
    rollouts = round(40 * setting.length)
    student = teachers.make_student(setting.seeds)
    how = make(teacher)
    return teachers.study(student, rate * setting.rate, rollouts, **how)[-1]


def by_group(rollout: Rollout, rewards: Tensor, log_probs: Tensor) -> Tensor:
    return compute_deltas(rewards, "normalized_rewards")


def by_token(teacher: Any) -> dict:
    return {"deltas_of": lambda rollout, _, own: teacher.log_probs(rollout) - own}


def by_copying(teacher: Any) -> dict:
    """The teacher writes, and each of its tokens has the delta 1."""
    return {"deltas_of": lambda rollout, _, own: own * 0 + 1, "writer": teacher}


def judged(teacher: Any, with_term: bool = True, each_token: bool = True) -> dict:
    """The teacher's log-probabilities, less the student's or not.

    The marks are compared within the group, place by place or those of a response.
    """

    def deltas_of(rollout: Rollout, _, log_probs: Tensor) -> Tensor:
        marks = teacher.log_probs(rollout) - with_term * log_probs
        if not each_token:
            marks = marks.sum(-1, keepdim=True).expand_as(marks)
        return by_group(rollout, marks.mT, log_probs).mT  # trial comes last

    return {"deltas_of": deltas_of}


grpo = partial(taught, make=lambda teacher: {"deltas_of": by_group})
distilled = partial(taught, make=by_token)
imitated = partial(taught, make=by_copying)
ALL_PROMPTS = {"other prompts": "prompts are drawn from all that there are"}
Taught = partial(Claim, not_tried=ALL_PROMPTS)
FromStart = partial(Claim, not_tried={BEST: "one arm is the start, and has no rate"})
# fmt: off
CLAIMS = (
    FromStart("17.judge", "Climbing a reward learned from few pairs costs true reward.",
        (the_start, true_reward)),
    Claim("17.pairs", "A reward learned from more pairs leaves more true reward.",
        (partial(true_reward, num_pairs=160), partial(true_reward, num_pairs=10))),
    FromStart("17.own", "1000 pairs that the start wrote add true reward.",
        (partial(true_reward, num_pairs=1000, written=True), the_start)),
    FromStart("17.dpo", "DPO on few pairs costs true reward too, at β = 0.1.",
        (the_start, by_dpo)),
    FromStart("17.chosen", "The rightly chosen become rarer, too, at β = 0.1.",
        (0.0, partial(by_dpo, of_right=True))),
    FromStart("17.turned", "The same pairs without wrong choices add true reward.",
        (partial(by_dpo, turned=True), the_start)),
    Claim("17.held", "Holding the chosen up saves true reward, at β = 0.1.",
        (partial(by_dpo, hold=0.1), by_dpo)),
    Claim("17.panel", "Sixteen judges that err independently teach more than one.",
        (partial(by_panel, num_judges=16), partial(by_panel, num_judges=1))),
    Claim("17.alike", "Sixteen judges that err alike teach less than independent ones.",
        (partial(by_panel, num_judges=16),
         partial(by_panel, num_judges=16, correlation=0.5))),
    Claim("17.families",
        "A panel that errs apart teaches more than the most accurate four.",
        (partial(by_names, panel="abci"), partial(by_names, panel="aehk")),
        not_tried={"other prompts": "the twelve judges know these alone"}),
    Taught("17.distillation", "Distillation leads GRPO.", (distilled, grpo)),
    Taught("17.imitation", "Imitation leads distillation.", (imitated, distilled)),
    Taught("17.term", "Without its -log π distillation teaches less.",
        (partial(taught, make=judged),
         partial(taught, make=partial(judged, with_term=False)))),
    Taught("17.sparse", "-log π alone teaches more than a mark for each token alone.",
        (partial(taught, make=partial(judged, each_token=False)),
         partial(taught, make=partial(judged, with_term=False)))),
)
# fmt: on
