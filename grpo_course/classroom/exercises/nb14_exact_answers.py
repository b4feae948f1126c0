"""The exercises of 14_exact_answers."""

import torch
from torch import Tensor

from grpo_course.classroom.exercises.shared import TOO_LATE, case, numbers
from grpo_course.classroom.old_check.exercise import Case, Exercise, Mistake


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


OVERFLOW = (
    "At a small β, e^(R/β) is more than a float holds; beside it, small shares round "
    "to 0, whose logarithm is infinite. Add while both are logarithms, and normalize "
    "with log_softmax."
)


def _tilted(ref_log_probs: list, rewards: list, beta: float, **more) -> Case:
    ref = torch.tensor(ref_log_probs).log_softmax(-1)
    return case(ref_log_probs=ref, rewards=rewards, beta=beta, **more)


def _shared_out(weights: Tensor) -> Tensor:
    return weights / weights.sum(-1, keepdim=True)


def best_policy(ref_log_probs, rewards, beta):
    """[seed batch pos token], [batch pos token], float -> as the first"""
    return (ref_log_probs + rewards / beta).log_softmax(-1)


BEST_POLICY = Exercise(
    key="14.3",
    name="best_policy",
    solution=best_policy,
    axes=dict.fromkeys(("ref_log_probs", "return"), "seed batch pos token")
    | {"rewards": "batch pos token"},
    cases=(
        _tilted(
            [[[[-1.0, -2.0, -0.5], [0.0, -0.4, -3.0]]]],
            [[[0.0, 1.0, 0.0], [0.2, 0.0, 0.6]]],
            0.5,
            description="two places, three tokens, β = 0.5",
        ),
        _tilted(
            numbers(2, 3, 2, 4).tolist(),
            numbers(3, 2, 4, shift=0.5).abs().tolist(),
            0.2,
            description="two seeds, three prompts, two places of four tokens",
        ),
        _tilted(
            numbers(3, 2, 1, 5, shift=1.0).tolist(),
            [[[1.0, 0.0, 0.0, 0.5, 0.25]], [[0.0, 0.0, 0.0, 0.0, 3.0]]],
            2.0,
            description="three seeds, one place, β = 2",
        ),
        _tilted(
            [[[[0.0, -1.0, -2.0]]]],
            [[[0.0, 0.5, 1.0]]],
            0.005,
            description="rewards up to 1, β = 0.005",
            hint=OVERFLOW,
        ),
        _tilted(
            [[[[0.0, -200.0, -0.5]]]],
            [[[0.0, 1.0, 0.5]]],
            0.1,
            description="a token that the reference can hardly choose",
            hint=TOO_LATE,
        ),
    ),
    words={
        "not normalized": "The right odds, but they are not normalized: the "
        "probabilities do not add up to 1.",
        "log lost": "These are probabilities. Their logarithms are asked for: "
        "log_softmax.",
        "log too late": OVERFLOW,
        "times for divided": "You multiply the reward by β. β is the price of leaving "
        "the reference: the smaller it is, the more a reward counts. Divide by it.",
        "not divided": "β is not used. It says how much a reward counts against the "
        "reference: R/β.",
        "minus for plus": "You take the reward away: the worst tokens become likely.",
        "rewards / beta": "The reference is missing: this is the best policy only "
        "where the reference is uniform.",
        "axis": "You normalize along the wrong axis. The probabilities of the tokens "
        "at one place add up to 1, and the tokens are the last axis.",
    },
    mistakes=(
        Mistake(
            lambda ref, r, b: _shared_out(ref.exp() * (r / b).exp()).log(),
            OVERFLOW,
        ),
        Mistake(
            lambda ref, r, b: _shared_out(ref.exp() + r / b).log(),
            "You add the reward to probabilities. It is e^(R/β) times the probability: "
            "add R/β to its logarithm.",
        ),
        Mistake(
            lambda ref, r, b: (ref.exp() + r / b).log_softmax(-1),
            "You add the reward to probabilities, and log_softmax takes them for "
            "logarithms. Add R/β to the logarithm of the reference.",
        ),
        Mistake(
            lambda ref, r, b: _shared_out(ref.exp() * r / b).log(),
            "You multiply by R/β. The factor is e to that power, so that a token "
            "without a reward stays possible.",
        ),
    ),
    insight="A reward that is β ln 2 higher doubles a token's odds against the "
    "others. Among equal rewards the reference decides.",
)
