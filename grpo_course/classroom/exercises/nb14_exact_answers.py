"""The exercises of 14_exact_answers."""

import torch
from torch import Tensor

from grpo_course.classroom.check.exercise import Case, Exercise, Mistake
from grpo_course.classroom.exercises.shared import case


def _chance(solve_rate: Tensor, num_responses: int) -> Tensor:
    count = torch.arange(num_responses + 1.0)
    several = torch.distributions.Binomial(num_responses, solve_rate[:, None])
    return several.log_prob(count).exp()


def _weight_case(description: str, rates: list, num_responses: int) -> Case:
    solve_rate = torch.tensor(rates)
    chance = _chance(solve_rate, num_responses)
    return case(description, solve_rate=solve_rate, chance=chance)


def _parts(chance: Tensor) -> tuple[Tensor, int]:
    return torch.arange(chance.shape[-1]), chance.shape[-1] - 1


def _other_spread(solve_rate: Tensor, chance: Tensor) -> Tensor:
    k, count = _parts(chance)
    push = (k * (count - k)).sqrt() / count
    return (chance * push).sum(-1) / (solve_rate * (1 - solve_rate))


def _centered(solve_rate: Tensor, chance: Tensor) -> Tensor:
    k, count = _parts(chance)
    push = k * (count - k) / count**2
    return (chance * push).sum(-1) / (solve_rate * (1 - solve_rate))


def _resampled(solve_rate: Tensor, chance: Tensor) -> Tensor:
    mixed = chance[:, 1:-1].sum(-1)
    return prompt_weight(solve_rate, chance) / mixed


def _most_likely(solve_rate: Tensor, chance: Tensor) -> Tensor:
    _, count = _parts(chance)
    k = solve_rate * count
    push = (k * (count - k) * (count - 1) / count**3).sqrt()
    return push / (solve_rate * (1 - solve_rate))


def prompt_weight(solve_rate, chance):
    """float [prompt], float [prompt count] -> float [prompt]"""
    k = torch.arange(chance.shape[-1])
    G = chance.shape[-1] - 1
    push = (k * (G - k) * (G - 1) / G**3).sqrt()
    return (chance * push).sum(-1) / (solve_rate * (1 - solve_rate))


PROMPT_WEIGHT = Exercise(
    key="14.1",
    name="prompt_weight",
    solution=prompt_weight,
    axes={"solve_rate": "prompt", "chance": "prompt count", "return": "prompt"},
    cases=(
        _weight_case("three prompts, groups of 4", [0.1, 0.5, 0.6], 4),
        _weight_case("two prompts, groups of 8", [0.05, 0.6], 8),
        _weight_case("one prompt, groups of 2", [0.25], 2),
    ),
    mistakes=(
        Mistake(
            _other_spread,
            "This spread divides by G. The deltas of GRPO take the sample spread, "
            "which divides by G - 1.",
        ),
        Mistake(
            _centered,
            "These are centered deltas: the spread is missing. They give (G - 1)/G for "
            "every prompt.",
        ),
        Mistake(
            _resampled,
            "You average over mixed groups only. A tied group counts too: it pushes "
            "with 0. Leaving it out is dynamic sampling, which comes next.",
        ),
        Mistake(
            _most_likely,
            "You put the mean count into the push. The push bends, so its mean is not "
            "the push at the mean: weigh each count by its chance.",
        ),
        Mistake(
            lambda p, chance: prompt_weight(p, chance) * p * (1 - p),
            "This is the push. What is asked is the push in units of p(1 - p), which "
            "turns it into a multiple of the gradient of p.",
        ),
    ),
    equivalent={
        "sign dropped": "rates and counts lie between 0 and their largest value",
        "chance[:1]": "only its size along an axis is used here",
    },
    insight="The weight of a prompt depends on how hard it is. Centered deltas give "
    "every prompt the same, (G - 1)/G.",
)


def _pass_case(description: str, right: list, n: int, k: int, **more) -> Case:
    return case(description, num_right=right, num_samples=n, k=k, **more)


def pass_at_k(num_right, num_samples, k):
    """int [problem], int, int -> float [problem]"""
    drawn = torch.arange(k)
    wrong = num_samples - num_right[:, None]
    return 1 - ((wrong - drawn) / (num_samples - drawn)).prod(-1)


PASS_AT_K = Exercise(
    key="14.2",
    name="pass_at_k",
    solution=pass_at_k,
    axes={"num_right": "problem", "return": "problem"},
    cases=(
        _pass_case("10 samples, k = 3", [0, 1, 4, 9], 10, 3),
        _pass_case("6 samples, k = 1", [0, 2, 6], 6, 1),
        _pass_case("one problem", [2], 5, 2),
        _pass_case(
            "1000 samples, k = 400",
            [0, 1, 2, 5],
            1000,
            400,
            hint="Factorials of 1000 do not fit a float. Multiply k fractions, each "
            "below 1.",
            within=2e-3,
        ),
    ),
    mistakes=(
        Mistake(
            lambda c, n, k: 1 - (1 - c / n) ** k,
            "This draws with replacement, as if c/n were the true solve rate. It is "
            "too low on average. Draw k of the n samples without replacement.",
        ),
        Mistake(
            lambda c, n, k: (c >= 1).float(),
            "This is pass@n: whether any of all samples is right. Only k of them are "
            "drawn.",
        ),
        Mistake(
            lambda c, n, k: c / n,
            "This is pass@1, the share of right samples.",
        ),
        Mistake(
            lambda c, n, k: (c / n * k).clamp(max=1),
            "The chances of k draws do not add up: two draws can both be right. Take "
            "the chance that all k are wrong.",
        ),
        Mistake(
            lambda c, n, k: 1 - pass_at_k(c, n, k),
            "This is the chance that all k are wrong. pass@k is one minus it.",
        ),
        Mistake(
            lambda c, n, k: pass_at_k(n - c, n, k),
            "You count the wrong samples as right: c of n are right, n - c wrong.",
        ),
    ),
    equivalent={
        "sign dropped": "below zero is only what stands beside a factor of zero",
    },
    insight="Nothing overflows: a product of k fractions takes the place of two huge "
    "binomials.",
)
