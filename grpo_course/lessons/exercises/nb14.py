"""The exercises of 14_exact_answers."""

import torch

from grpo_course.classroom.check import case, exercise
from grpo_course.lessons.exercises.shared import TOO_LATE, numbers


@exercise("14.1")
def prompt_weight(solve_rate, chance):
    """float [prompt], float [prompt count] -> float [prompt]"""
    k = torch.arange(chance.shape[-1])
    G = chance.shape[-1] - 1
    push = (k * (G - k) * (G - 1) / G**3).sqrt()
    return (chance * push).sum(-1) / (solve_rate * (1 - solve_rate))


def _weight_case(description, rates, num_responses):
    solve_rate = torch.tensor(rates)
    count = torch.arange(num_responses + 1.0)
    several = torch.distributions.Binomial(num_responses, solve_rate[:, None])
    chance = several.log_prob(count).exp()
    return case(description, solve_rate=solve_rate, chance=chance)


prompt_weight.insight = (
    "The weight of a prompt depends on how hard it is. Centered deltas give every "
    "prompt the same, (G - 1)/G."
)
prompt_weight.cases = (
    _weight_case("six prompts, groups of 4", [0.1, 0.5, 0.6, 0.2, 0.7, 0.9], 4),
    _weight_case("two prompts, groups of 8", [0.05, 0.6], 8),
    _weight_case("one prompt, groups of 2", [0.25], 2),
)
prompt_weight.mistakes = """
chance.shape[-1] - 1 => chance.shape[-1] | G is one too large. chance has G + 1 \
columns, since 0 to G responses can be right: G is chance.shape[-1] - 1.
chance.shape[-1] - 1 => len(chance) - 1 | len(chance) counts the prompts. The columns \
are the counts from 0 to G: G is chance.shape[-1] - 1.
(k * (G - k) * (G - 1) / G**3).sqrt() => k * (G - k) * (G - 1) / G**3 | The square \
root is missing: deltas are divided by the spread, and that is a root itself.
(k * (G - k) * (G - 1) / G**3).sqrt() => (k * (G - k)).sqrt() / G | This spread \
divides by G. The deltas of GRPO take the sample spread, which divides by G - 1.
(k * (G - k) * (G - 1) / G**3).sqrt() => k * (G - k) / G**2 / (k * (G - k) / (G * (G \
- 1))).sqrt() | In a tied group the spread is 0, and 0/0 is not a number. Simplify \
the quotient first, to one root, as in the text above: there a tied group pushes with 0.
(k * (G - k) * (G - 1) / G**3).sqrt() => k * (G - k) / G**2 | These are centered \
deltas: the spread is missing. They give (G - 1)/G for every prompt.
(chance * push).sum(-1) / => (chance * push).sum(-1) / chance[:, 1:-1].sum(-1) / | \
You average over mixed groups only. A tied group counts too: it pushes with 0. \
Leaving it out is dynamic sampling, which comes next.
k = torch.arange(chance.shape[-1]) => k = solve_rate * (chance.shape[-1] - 1) && \
(chance * push).sum(-1) => push | You put the mean count into the push. The push \
bends, so its mean is not the push at the mean: weigh each count by its chance.
/ (solve_rate * (1 - solve_rate)) => | This is the push. What is asked is the push in \
units of p(1 - p), which turns it into a multiple of the gradient of p.
(solve_rate * (1 - solve_rate)) => solve_rate * (1 - solve_rate) | Python reads a / p \
* (1 - p) from the left: you divide by p and multiply by 1 - p. Put brackets around \
p(1 - p).
(chance * push).sum(-1) / (solve_rate * (1 - solve_rate)) => (chance * push).sum(-1) \
* (solve_rate * (1 - solve_rate)) | You multiply by p(1 - p). To measure the push in \
units of it, divide.
G**3 => G**2 | The push is larger than it can be: the root holds (G - 1) / G^3.
(k * (G - k) * (G - 1) / G**3).sqrt() => k * (G - k) / G**2 / ((k * (G - k) / (G * (G \
- 1))).sqrt() + 1e-4) | A small number beside the spread lowers every push a little. \
Simplify the quotient first, to one root, as in the text above: nothing is divided by \
0 there.
chance.shape[-1] - 1 => len(solve_rate) | len(solve_rate) counts the prompts. The \
columns of chance are the counts from 0 to G: G is chance.shape[-1] - 1.
(solve_rate * (1 - solve_rate)) => solve_rate | You divide by p alone. The push is to \
be measured in units of p(1 - p).
(solve_rate * (1 - solve_rate)) => (solve_rate * (1 - solve_rate)).sqrt() | You \
divide by the spread of one answer. The push is to be measured in units of p(1 - p), \
without a root.
.sum(-1) / ( => .mean(-1) / ( | You divide by the number of counts. The chances are \
the weights of the mean already: take the sum.
chance * push => push | The chances are missing: every count weighs the same. Weigh \
the push of each count by how likely it is.
"""


@exercise("14.2")
def pass_at_k(num_right, num_samples, k):
    """int [problem], int, int -> float [problem]"""
    drawn = torch.arange(k)
    wrong = num_samples - num_right[:, None]
    return 1 - ((wrong - drawn) / (num_samples - drawn)).prod(-1)


def _pass_case(description, right, n, k, hint="", within=None):
    args = {"num_right": right, "num_samples": n, "k": k}
    return case(description, hint, within=within, **args)


pass_at_k.insight = (
    "Nothing overflows: a product of k fractions takes the place of two huge binomials."
)
pass_at_k.cases = (
    _pass_case("10 samples, k = 3", [0, 1, 4, 9], 10, 3),
    _pass_case("6 samples, k = 1", [0, 2, 6], 6, 1),
    _pass_case("one problem", [2], 5, 2),
    _pass_case(
        "1000 samples, k = 400",
        [0, 1, 2, 5],
        1000,
        400,
        "Factorials of 1000 do not fit a float. Multiply k fractions, each below 1.",
        within=2e-3,
    ),
)
pass_at_k.mistakes = """
return 1 - (1 - num_right / num_samples) ** k | This draws with replacement, as if \
c/n were the true solve rate. It is too low on average. Draw k of the n samples \
without replacement.
return (num_right >= 1).float() | This is pass@n: whether any of all samples is \
right. Only k of them are drawn.
return num_right / num_samples | This is pass@1, the share of right samples.
return (num_right / num_samples * k).clamp(max=1) | The chances of k draws do not add \
up: two draws can both be right. Take the chance that all k are wrong.
1 - ((wrong => ((wrong | This is the chance that all k are wrong. pass@k is one minus \
it.
torch.arange(k) => torch.arange(k - 1) | That is one draw too few. k draws are \
counted from 0 to k - 1: torch.arange(k).
return (num_right / num_samples) ** k | This draws with replacement, and it is the \
chance that all k are right. One is enough: one minus the chance that all k are \
wrong, drawn without replacement.
return 1 - ((num_samples - num_right[:, None]) / (num_samples - \
torch.arange(k))).prod(-1) | You put the sample back above: with each draw one fewer \
is left, of the wrong ones as of all.
num_samples - num_right[:, None] => num_right[:, None] | You count the wrong samples \
as right: c of n are right, n - c wrong.
return torch.where(num_samples - num_right < k, 0.0, 1 - ((num_samples - num_right[:, \
None] - torch.arange(k)) / (num_samples - torch.arange(k))).prod(-1)) | Where fewer \
than k samples are wrong, any k hold a right one: the share is 1 there, not 0.
return ((num_right[:, None] - torch.arange(k)) / (num_samples - \
torch.arange(k))).prod(-1) | This is the chance that all k are right. One is enough: \
one minus the chance that all k are wrong.
(num_samples - drawn) => num_samples | You put the sample back below: with each draw \
one fewer is left, of all as of the wrong ones.
torch.arange(k) => torch.arange(k + 1) | That is one draw too many. k draws are \
counted from 0 to k - 1: torch.arange(k).
torch.arange(k) => torch.arange(1, k + 1) | You begin one draw too late. The first \
draw finds all n samples, n - c of them wrong: count what is gone from 0 to k - 1.
"""


@exercise("14.3")
def best_policy(ref_log_probs, rewards, beta):
    """[seed batch pos token], [batch pos token], float -> [seed batch pos token]"""
    return (ref_log_probs + rewards / beta).log_softmax(-1)


def _shared_out(weights):
    return weights / weights.sum(-1, keepdim=True)


OVERFLOW = (
    "At a small β, e^(R/β) is more than a float holds; beside it, small shares round "
    "to 0, whose logarithm is infinite. Add while both are logarithms, and normalize "
    "with log_softmax."
)


def _tilted(description, ref_log_probs, rewards, beta, hint=""):
    ref = torch.as_tensor(ref_log_probs).log_softmax(-1)
    args = {"ref_log_probs": ref, "rewards": rewards, "beta": beta}
    return case(description, hint, **args)


best_policy.insight = (
    "A reward that is β ln 2 higher doubles a token's odds against the others. Among "
    "equal rewards the reference decides."
)
best_policy.cases = (
    _tilted(
        "two places, three tokens, β = 0.5",
        [[[[-1.0, -2.0, -0.5], [0.0, -0.4, -3.0]]]],
        [[[0.0, 1.0, 0.0], [0.2, 0.0, 0.6]]],
        0.5,
    ),
    _tilted(
        "two seeds, three prompts, two places of four tokens",
        numbers(2, 3, 2, 4),
        numbers(3, 2, 4, shift=0.5).abs(),
        0.2,
    ),
    _tilted(
        "three seeds, one place, β = 2",
        numbers(3, 2, 1, 5, shift=1.0),
        [[[1.0, 0.0, 0.0, 0.5, 0.25]], [[0.0, 0.0, 0.0, 0.0, 3.0]]],
        2.0,
    ),
    _tilted(
        "rewards up to 1, β = 0.005",
        [[[[0.0, -1.0, -2.0]]]],
        [[[0.0, 0.5, 1.0]]],
        0.005,
        OVERFLOW,
    ),
    _tilted(
        "a token that the reference can hardly choose",
        [[[[0.0, -200.0, -0.5]]]],
        [[[0.0, 1.0, 0.5]]],
        0.1,
        TOO_LATE,
    ),
)
NO_REFERENCE = (
    "The reference is missing: this is the best policy only where the reference is "
    "uniform. Add its logarithm: log π_ref + R/β."
)
best_policy.mistakes = f"""
.log_softmax(-1) => | The right odds, but they are not normalized: the probabilities \
do not add up to 1.
.log_softmax(-1) => .softmax(-1) | These are probabilities. Their logarithms are \
asked for: log_softmax.
.log_softmax(-1) => .softmax(-1).log() | At a small β the small shares round to 0, \
whose logarithm is infinite. Normalize with log_softmax, which never leaves the \
logarithms.
return _shared_out(ref_log_probs.exp() * (rewards / beta).exp()).log() | At a small \
β, e^(R/β) is more than a float holds; beside it, small shares round to 0, whose \
logarithm is infinite. Add while both are logarithms, and normalize with log_softmax.
rewards / beta => rewards * beta | You multiply the reward by β. β is the price of \
leaving the reference: the smaller it is, the more a reward counts. Divide by it.
rewards / beta => rewards | β is not used. It says how much a reward counts against \
the reference: R/β.
(ref_log_probs + rewards / beta) => ((ref_log_probs + rewards) / beta) | You divide \
the reference by β as well. Only the reward is weighed: log π_ref + R/β.
(ref_log_probs + rewards / beta) => (beta * ref_log_probs + rewards) | You multiply \
the reference by β in place of dividing the reward: that is β times the exponent that \
is asked for.
(ref_log_probs + rewards / beta).log_softmax(-1) => ref_log_probs + (rewards / \
beta).log_softmax(-1) | You normalize the rewards alone. It is the product with the \
reference that has to add up to 1: add first, normalize last.
ref_log_probs + rewards => ref_log_probs - rewards | You take the reward away: the \
worst tokens become likely.
ref_log_probs + rewards => rewards | {NO_REFERENCE}
ref_log_probs + rewards => 0 * ref_log_probs + rewards | {NO_REFERENCE}
ref_log_probs + rewards => ref_log_probs * rewards | You multiply the logarithm by \
the reward. The reward's factor e^(R/β) belongs to the probability; among logarithms \
it is added: log π_ref + R/β.
return (ref_log_probs * (rewards / beta).exp()).log_softmax(-1) | You multiply the \
logarithm by e^(R/β). That factor belongs to the probability; among logarithms it is \
added: log π_ref + R/β.
ref_log_probs + rewards => ref_log_probs.exp() + rewards | You take exp of the \
reference and add the exponent of the reward: the first is a probability, the second \
a logarithm. Add both as logarithms: log π_ref + R/β.
rewards / beta => rewards.exp() / beta | You take exp of the reward. It is the \
exponent itself, R/β, that is added to log π_ref.
return ref_log_probs.exp() * (rewards / beta).exp() | These are probabilities that do \
not add up to 1, and their logarithms are asked for: add while both are logarithms, \
log π_ref + R/β, and normalize with log_softmax.
return (ref_log_probs.exp() * (rewards / beta).exp()).log() | The right odds, but \
they are not normalized: the probabilities do not add up to 1.
(ref_log_probs + rewards / beta).log_softmax(-1) => (best := ref_log_probs + rewards \
/ beta) - best.amax(-1, keepdim=True) | You subtract the largest, which keeps exp \
from overflowing, and normalizes nothing: the probabilities have to add up to 1. \
log_softmax does both.
return (ref_log_probs + rewards / \
beta).flatten(-2).log_softmax(-1).view(ref_log_probs.shape) | You normalize over all \
places at once. The probabilities of the tokens at one place add up to 1: over the \
last axis alone.
(ref_log_probs + rewards / beta) => (rewards - beta * ref_log_probs) | A sign is \
wrong: the reference is added, log π_ref + R/β. What this policy prefers is what the \
reference finds rare.
log_softmax(-1) => log_softmax(-2) | You normalize along the wrong axis, that of the \
places. The probabilities of the tokens at one place add up to 1, and the tokens are \
the last axis.
return ((both := ref_log_probs.exp() * (rewards / beta).exp()) / both.sum(1, \
keepdim=True)).log() | You normalize along the wrong axis, that of the prompts. The \
probabilities of the tokens at one place add up to 1, and the tokens are the last axis.
log_softmax(-1) => log_softmax(0) | You normalize along the wrong axis, that of the \
seeds. The probabilities of the tokens at one place add up to 1, and the tokens are \
the last axis.
log_softmax(-1) => log_softmax(1) | You normalize along the wrong axis, that of the \
prompts. The probabilities of the tokens at one place add up to 1, and the tokens are \
the last axis.
return _shared_out(ref_log_probs.exp() + rewards / beta).log() | You add the reward \
to probabilities. It is e^(R/β) times the probability: add R/β to its logarithm.
"""
