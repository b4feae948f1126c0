"""What 17_judges_and_teachers claims."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

from claims.runner import BEST, PROMPT_SETS, Claim, Setting
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
    climb,
    descend,
    dpo,
    draw_pairs,
    of_pairs,
    record_of,
    scores_of,
    true_rewards,
    warm_start,
    what_moved,
)
from grpo_course.sort import (
    SORT_PROMPTS,
    all_log_probs,
    all_rewards,
    sort_inclusion_ordering_reward,
)


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
    dpo(pairs, policy, prompts, 0.1, num_steps, rate)
    if not of_right:
        return worth_of(policy, setting)
    change = all_log_probs(policy.model, prompts).detach() - before
    return what_moved(change, pairs, prompts)[0]


def on_marks(
    marks: Tensor, setting: Setting, prompts: Tensor, learned: int = 10
) -> Tensor:
    """What policies are worth that climbed such marks [seed batch all]. -> [seed]

    Before, they learned from the true reward for so many epochs.
    """
    policy = warm_start(setting.seeds, prompts, learned)
    return climb(marks, policy, prompts, **climbing(setting)).final("true")


def at_start(setting: Setting, learned: int = 10) -> Tensor:
    """log pi of every response before a policy climbs, [seed batch all]."""
    prompts = PROMPT_SETS[setting.prompts]
    policy = warm_start(setting.seeds, prompts, learned)
    return all_log_probs(policy.model, prompts).detach()


def alone(setting: Setting, learned: int = 10) -> Tensor:
    """What policies are worth that climbed what they found likely. -> [seed]"""
    marks = at_start(setting, learned)
    return on_marks(marks, setting, PROMPT_SETS[setting.prompts], learned)


def by_rubric(setting: Setting, inclusion: bool = True) -> Tensor:
    """What weak policies are worth that climbed right answers to questions. -> [seed]

    How many neighbours are in order, and how many numbers of the prompt are there?
    """
    prompts = PROMPT_SETS[setting.prompts]
    ordering = (EVERY[:, 1:] >= EVERY[:, :-1]).sum(-1).float()
    both = all_rewards(prompts, 5, sort_inclusion_ordering_reward)
    marks = both if inclusion else ordering.expand_as(both)
    return on_marks(marks.expand(len(setting.seeds), -1, -1), setting, prompts, 3)


def by_record(setting: Setting) -> Tensor:
    """What policies are worth that climbed wins minus losses in 40 pairs. -> [seed]"""
    prompts = PROMPT_SETS[setting.prompts]
    pairs = draw_pairs(40, setting.seeds, prompts, chances=at_start(setting).exp())
    won, lost = record_of(pairs)
    return on_marks((won - lost).float(), setting, prompts)


def by_panel(setting: Setting, num_judges: int, correlation: float = 0.0) -> Tensor:
    """What policies are worth after the mean mark of such judges. -> [seed]"""
    prompts = PROMPT_SETS[setting.prompts]
    errors = judge_errors(num_judges, correlation, setting.seeds, prompts).mean(0)
    return on_marks(true_rewards(prompts) + errors, setting, prompts)


def by_names(setting: Setting, panel: str) -> Tensor:
    """What policies are worth after the mean mark of these of the twelve. -> [seed]"""
    errors = draw_judges(setting.seeds)[of_panel(panel)].mean(0)
    return on_marks(true_rewards() + errors, setting, SORT_PROMPTS)


def the_teacher(setting: Setting) -> Tensor:
    """What the teachers are worth themselves, that learned for long. -> [seed]"""
    prompts = PROMPT_SETS[setting.prompts]
    return worth_of(teachers.make_teacher(14, setting.seeds, prompts), setting)


def taught(setting: Setting, learned: int, climbed: bool = False) -> Tensor:
    """What students are worth of teachers that learned for so many epochs. -> [seed]

    They distil, or they climb the teacher's opinion of a whole response.
    """
    prompts = PROMPT_SETS[setting.prompts]
    teacher = teachers.make_teacher(learned, setting.seeds, prompts)

    def deltas_of(own: Tensor, theirs: Tensor) -> Tensor:
        if climbed:
            return compute_deltas(theirs.sum(-1), "normalized_rewards")
        return theirs - own

    student = warm_start(setting.seeds, prompts)
    teachers.study(student, teacher, deltas_of, prompts, **climbing(setting))
    return worth_of(student, setting)


FromStart = partial(Claim, not_tried={BEST: "one arm is the start, and has no rate"})
# fmt: off
CLAIMS = (
    FromStart("17.alone", "Policies gain by climbing what they found likely.",
        (alone, the_start)),
    FromStart("17.judge", "Climbing a reward learned from few pairs costs true reward.",
        (the_start, true_reward)),
    Claim("17.record", "Who climbs wins minus losses ends as who asks nobody.",
        (by_record, alone), within=0.1),
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
    Claim("17.panel", "Sixteen judges that err apart leave more than one.",
        (partial(by_panel, num_judges=16), partial(by_panel, num_judges=1))),
    Claim("17.alike", "Sixteen judges that err alike leave less than independent ones.",
        (partial(by_panel, num_judges=16),
         partial(by_panel, num_judges=16, correlation=0.5))),
    Claim("17.families",
        "A panel that errs apart leaves more than four that err alike.",
        (partial(by_names, panel="abci"), partial(by_names, panel="aegk")),
        not_tried={"other prompts": "the twelve judges know these alone"}),
    Claim("17.order",
        "Who climbs the order alone ends below who asks nobody, from a weak start.",
        (partial(alone, learned=3), partial(by_rubric, inclusion=False))),
    Claim("17.rubric",
        "Who climbs inclusion + ordering ends above who asks nobody, from there.",
        (by_rubric, partial(alone, learned=3))),
    Claim("17.copied", "Who distils ends close to its teacher.",
        (partial(taught, learned=14), the_teacher), within=0.1,
        not_tried={BEST: "one arm is the teacher, and has no rate"}),
    Claim("17.outvoted", "Who climbs a worse teacher's opinion ends above who distils.",
        (partial(taught, learned=7, climbed=True), partial(taught, learned=7))),
)
# fmt: on
