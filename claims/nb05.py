"""What 05_kl claims."""

import copy
from functools import partial

import torch
from torch import Generator, Tensor

from claims.report import BEST
from claims.runner import PROMPT_SETS, Claim, Setting, repeated
from grpo_course.formulas import exact_kl, kl_values
from grpo_course.lessons.preferences import marks_of
from grpo_course.lessons.reward_tables import numbers_off
from grpo_course.sort import (
    SortModel,
    all_log_probs,
    all_responses,
    compute_log_probs,
    compute_reward,
    exact_sorted_probability,
    generate_responses,
    sort_distance_reward,
)

LESS = {BEST: "here the best rate is the one that leaves least"}
FREQUENT = 12  # responses to a prompt that the start says most often


def imitated(prompts: Tensor, seeds: range, steps: int = 18) -> SortModel:
    """Policies that have been shown right answers, as the notebook's."""
    model = SortModel(5, 10, 3, 3, init_scale=0.1, seeds=seeds)
    truth = prompts.sort(dim=-1).values[:, None].expand(len(seeds), -1, 1, 3)
    adam = torch.optim.Adam(model.parameters(), lr=0.003)
    for _ in range(steps):
        loss = -compute_log_probs(prompts, truth, model).sum()
        adam.zero_grad()
        loss.backward()
        adam.step()
    return model


def graded(
    setting: Setting,
    beta: float,
    errors_on: str = "all",
    estimator: str = "",
    shown: int = 18,
    turned: bool = False,
    wrong: str = "",
) -> Tensor:
    """P(sorted) after 200 steps against a grader that errs. -> [seed]

    The KL is exact and in the loss, or an estimate of the sampled tokens. `errors_on`
    is all responses, or those that the start says "often" or "seldom"; "four often" and
    "four seldom" have one number out of place. With an empty one the grader is right.
    `shown` is how many steps the start has imitated; `turned` takes KL(ref||pi).
    `wrong` asks for the probability of wrong responses instead: those that the grader
    "preferred" to the right one, or the "other" ones.
    """
    prompts, seeds = PROMPT_SETS[setting.prompts], setting.seeds
    model = imitated(prompts, seeds, shown)
    start = copy.deepcopy(model)
    before = all_log_probs(start, prompts).detach()
    shape = before.shape  # [seed batch response]
    errors = torch.randn(shape, generator=Generator().manual_seed(seeds.start))
    rank = before.argsort(dim=-1, descending=True).argsort(dim=-1)
    often = rank < FREQUENT
    nowhere = torch.zeros_like(often)
    where = {"all": ~nowhere, "often": often, "seldom": ~often, "": nowhere}
    every = all_responses(5, 3).expand(*shape, 3)
    close = numbers_off(prompts) == 1  # [batch response]
    for name, by in {"four often": before, "four seldom": -before}.items():
        order = by.masked_fill(~close, -torch.inf).argsort(dim=-1, descending=True)
        where[name] = order.argsort(dim=-1) < 4
    errors = errors * where[errors_on]
    points = compute_reward(prompts, every, sort_distance_reward) + errors
    adam = torch.optim.Adam(model.parameters(), lr=0.01 * setting.rate)
    dice = [Generator().manual_seed(seed) for seed in seeds]
    for _ in range(round(200 * setting.length)):
        responses = generate_responses(prompts, model, 10, dice)
        rewards = marks_of(points, responses)
        deltas = rewards - rewards.mean(dim=-1, keepdim=True)
        log_probs = compute_log_probs(prompts, responses, model)
        loss = -(deltas[..., None] * log_probs).mean(dim=(-3, -2, -1))  # [seed]
        if estimator:
            with torch.no_grad():
                ref = compute_log_probs(prompts, responses, start)
            kl = kl_values(log_probs, ref, estimator).mean(dim=(-3, -2, -1))
        else:
            ref = start(prompts).log_softmax(dim=-1).detach()
            now = model(prompts).log_softmax(dim=-1)
            each = (ref.exp() * (ref - now)).sum(-1) if turned else exact_kl(now, ref)
            kl = each.mean(dim=(-2, -1))
        adam.zero_grad()
        (loss + beta * kl).sum().backward()
        adam.step()
    if wrong:
        truth = prompts.sort(dim=-1).values[:, None].expand(len(seeds), -1, 1, 3)
        right = marks_of(points, truth)
        asked = points > right if wrong == "preferred" else points < right
        probs = all_log_probs(model, prompts).detach().exp()
        return (probs * asked).sum(dim=-1).mean(dim=-1)
    return exact_sorted_probability(model, prompts).mean(dim=-1).detach()


# fmt: off
CLAIMS = (
    Claim("05.saves", "Against a grader that errs, a KL with β = 1 saves the skill.",
        (partial(graded, beta=1.0), partial(graded, beta=0.0))),
    Claim("05.often", "It does where errors fall on what the start says often.",
        (partial(graded, beta=1.0, errors_on="often"),
         partial(graded, beta=0.0, errors_on="often"))),
    Claim("05.seldom", "On what the start says seldom, errors do less harm.",
        (partial(graded, beta=0.0, errors_on="seldom"),
         partial(graded, beta=0.0, errors_on="often"))),
    Claim("05.close", "So it is where all are equally close to the right answer.",
        (partial(graded, beta=0.0, errors_on="four seldom"),
         partial(graded, beta=0.0, errors_on="four often"))),
    Claim("05.beginner", "From a start that seldom sorts, a KL with β = 1 costs.",
        (partial(graded, beta=0.0, shown=3), partial(graded, beta=1.0, shown=3))),
    Claim("05.reversed", "KL(ref||π), priced exactly, protects less than KL(π||ref).",
        (partial(graded, beta=1.0), partial(graded, beta=1.0, turned=True))),
    Claim("05.right", "Where the grader is right, a KL to the start holds back.",
        (partial(graded, beta=0.0, errors_on=""),
         partial(graded, beta=1.0, errors_on=""))),
    Claim("05.k3", "As a loss against a grader that errs, corrected k3 saves more.",
        (repeated(partial(graded, beta=1.0, estimator="corrected_k3"), 4),
         repeated(partial(graded, beta=3.0, estimator="k3"), 4))),
    Claim("05.preferred", "KL(ref||π) leaves more to responses the grader prefers.",
        (partial(graded, beta=1.0, turned=True, wrong="preferred"),
         partial(graded, beta=1.0, estimator="corrected_k3", wrong="preferred")),
        not_tried=LESS),
    Claim("05.kept", "It leaves more to the other wrong responses, too.",
        (partial(graded, beta=1.0, turned=True, wrong="other"),
         partial(graded, beta=1.0, estimator="corrected_k3", wrong="other")),
        not_tried=LESS),
)
# fmt: on
