"""The exercises of 07_zero_loss."""

import torch

from grpo_course.classroom.check import case, exercise
from grpo_course.formulas import compute_deltas, compute_loss
from grpo_course.lessons.exercises.shared import mask_of

EMPTY = (
    "A response without tokens counts in N, and its length of 0 must not make 0/0. "
    "Give the length a floor: mask.sum(-1).clamp(min=1)."
)


@exercise("7.1")
def gradient_by_log_probs(deltas, mask):
    """float [batch trial], bool [batch trial pos] -> float [batch trial pos]"""
    lengths = mask.sum(dim=-1).clamp(min=1)  # [batch trial]
    share = -deltas / (lengths * deltas.numel())
    return share[..., None] * mask


gradient_by_log_probs.insight = (
    "The value of the loss is minus the mean delta, which is zero. The gradient gives "
    "every token a share of its own, and each share moves another log-probability."
)
gradient_by_log_probs.cases = (
    case(
        "two responses, of 1 and 3 tokens",
        deltas=[[1.0, -1.0]],
        mask=mask_of([[1, 3]]),
    ),
    case(
        "two groups of three",
        deltas=[[2.0, -0.5, -1.5], [0.5, 0.5, -1.0]],
        mask=mask_of([[4, 2, 1], [3, 3, 2]]),
    ),
    case(
        "all axes of the same size",
        deltas=[[1.0, -3.0, 2.0], [0.0, 4.0, -4.0], [-1.0, -1.0, 2.0]],
        mask=mask_of([[3, 1, 2], [2, 2, 3], [1, 3, 1]]),
    ),
    case(
        "a response without tokens",
        EMPTY,
        deltas=[[1.5, -1.5]],
        mask=mask_of([[2, 0]]),
    ),
    case(
        "deltas that are not centered",
        "These deltas do not sum to zero, and they are taken as they are.",
        deltas=[[3.0, 1.0], [0.5, 2.0]],
        mask=mask_of([[2, 3], [1, 2]]),
    ),
    case("one response of one token", deltas=[[2.0]], mask=mask_of([[1]])),
)
gradient_by_log_probs.mistakes = """
-deltas / => deltas / | The sign is reversed. A loss must fall when a better response \
gets likelier: the gradient is negative where delta is positive.
lengths * deltas.numel() => deltas.numel() | The length is missing: a response's \
tokens share its weight, so each gets 1 / length of it.
share[..., None] * mask => share[..., None].expand(mask.shape) | The mask is missing: \
multiply by it, so that each token of a response gets the share and padding gets 0.
lengths * deltas.numel() => lengths | The mean over responses is missing: divide by \
their number, deltas.numel().
return -deltas[..., None] * mask / mask.sum(dim=-2, keepdim=True).clamp(min=1) / \
deltas.numel() | You sum the mask over the responses. The length of a response is the \
sum along pos, the last axis.
deltas.numel() => deltas.shape[-1] | You divide by G alone. The mean runs over all \
responses of the batch: divide by deltas.numel().
return torch.zeros(mask.shape) | You return zero everywhere: that is the value of the \
loss. Its gradient does not vanish where delta is not zero.
return -deltas[..., None] * mask / mask.sum() | This belongs to the token mean, which \
divides by all tokens. The sequence mean divides by each response's own length, then \
by N.
return -deltas[..., None] * mask / mask.numel() | You divide by the width of the \
tensor, padding included. The length of a response is what its mask sums to.
"""


@exercise("7.2")
def center_for_token_mean(rewards, lengths):
    """float [batch trial], int [batch trial] -> float [batch trial]"""
    weighted = (lengths * rewards).sum(dim=-1, keepdim=True)
    return rewards - weighted / lengths.sum(dim=-1, keepdim=True)


center_for_token_mean.insight = (
    "A zero tells how the deltas were centered. verl has this baseline as opo (Hao et "
    "al., 2025, arXiv 2505.23585)."
)
center_for_token_mean.cases = (
    case(
        "two responses, of 6 and 2 tokens",
        "By hand: of eight tokens, six belong to a reward of 1 and two to 0. Which "
        "number, taken from each, makes the eight add up to zero?",
        rewards=[[1.0, 0.0]],
        lengths=[[6, 2]],
    ),
    case(
        "two groups of three",
        rewards=[[2.0, 0.0, 1.5], [0.5, 3.0, 1.0]],
        lengths=[[4, 2, 1], [3, 9, 2]],
    ),
    case(
        "as many groups as responses",
        rewards=[[1.0, 3.0, 2.0], [0.0, 4.0, 5.0], [1.0, 1.0, 2.0]],
        lengths=[[3, 1, 2], [2, 8, 3], [1, 3, 10]],
    ),
    case(
        "a group that is tied, and one below zero",
        rewards=[[1.0, 1.0], [-2.0, -1.0]],
        lengths=[[5, 2], [1, 3]],
    ),
)
center_for_token_mean.mistakes = """
return rewards - rewards.mean(dim=-1, keepdim=True) | These add up to zero where each \
response counts once. In a token mean it counts once for each of its tokens.
return (rewards - rewards.mean(dim=-1, keepdim=True)) / lengths | This prints zero, \
too, but divides the rewards. Only subtract, one number from all rewards of a group.
return lengths * (rewards - rewards.mean(dim=-1, keepdim=True)) | The token mean \
itself counts each delta once a token. Do not multiply the deltas by the lengths, too.
return rewards - (lengths * rewards).sum() / lengths.sum() | This is one number for \
the whole batch. Each group alone is to print zero: take the sums within it.
lengths * rewards => rewards / lengths && lengths.sum => (1 / lengths).sum | You give \
short responses more weight. A long one has more tokens: weigh by the length.
/ lengths.sum(dim=-1, keepdim=True) => / lengths.shape[-1] | You divide by the number \
of responses. The weights are tokens: divide by how many the group has.
rewards - weighted => weighted - rewards | The sign is reversed: a better \
response has the larger delta.
"""


NAMES = ("mean_reward", "tied_groups", "sampled_entropy", "ratio_min", "ratio_max")


def five_numbers(function, *given):
    """The numbers of a line, by their names."""
    line = function(*given)
    if not isinstance(line, dict) or not {*NAMES} <= line.keys():
        raise ValueError(f"Return a dictionary with the keys {', '.join(NAMES)}.")
    if held := [name for name in NAMES if isinstance(line[name], torch.Tensor)]:
        raise ValueError(f"A tensor is no plain number: add .item() to {held[0]}.")
    return {name: line[name] for name in NAMES}


NOT_ALL_TOKENS = (
    "Padding is no token: its log-probabilities are whatever the model happened to "
    "say there. Index with the mask, x[mask], before you take a mean or an extreme."
)
DIFFERENCE = (
    "A small difference is a difference: normalizing makes it as large as any. Ask "
    "whether the rewards are equal, not whether they are close."
)
SAMPLER = (
    "The tokens were drawn from pi_old. Only minus the mean of its own "
    "log-probabilities is its entropy on average."
)


@exercise("7.3", use=five_numbers)
def log_line(rewards, log_probs, old_log_probs, mask):
    """[batch trial], [batch trial pos] twice, bool [batch trial pos] -> dict"""
    tied = rewards.amax(dim=-1) == rewards.amin(dim=-1)
    ratio = (log_probs - old_log_probs)[mask].exp()
    return {
        "mean_reward": rewards.mean().item(),
        "tied_groups": tied.float().mean().item(),
        "sampled_entropy": -old_log_probs[mask].mean().item(),
        "ratio_min": ratio.min().item(),
        "ratio_max": ratio.max().item(),
    }


log_line.insight = (
    "Five numbers that tell runs apart which print the same loss: paste it into your "
    "own trainer, and log the gradient norm beside it."
)
log_line.cases = (
    case(
        "two groups, one of them tied",
        "By hand: the rewards have a mean of 7/6, and one group of two is tied. A "
        "ratio is exp(log_prob - old_log_prob), one for each token, and the entropy "
        "is minus the mean of all twelve old_log_probs.",
        rewards=[[2.0, 0.0, 2.0], [1.0, 1.0, 1.0]],
        log_probs=[
            [[-1.0, -2.0], [-0.5, -1.5], [-2.5, -1.0]],
            [[-0.25, -3.0], [-1.5, -0.75], [-2.0, -1.25]],
        ],
        old_log_probs=[
            [[-1.5, -1.75], [-1.0, -1.0], [-2.0, -1.5]],
            [[-0.5, -2.0], [-1.25, -1.0], [-2.5, -1.0]],
        ],
        mask=mask_of([[2, 2, 2], [2, 2, 2]]),
    ),
    case(
        "padding, which holds other numbers",
        NOT_ALL_TOKENS,
        rewards=[[1.0, 0.0]],
        log_probs=[[[-1.0, -9.0, 0.0], [-0.5, -1.5, -2.0]]],
        old_log_probs=[[[-1.25, -2.0, -8.0], [-0.75, -1.0, -2.5]]],
        mask=mask_of([[1, 3]]),
    ),
    case(
        "a step that has not been taken yet",
        rewards=[[0.0, 0.0, 1.0], [1.0, 1.0, 1.0]],
        log_probs=[[[-1.0], [-2.0], [-1.5]], [[-0.5], [-3.0], [-1.0]]],
        old_log_probs=[[[-1.0], [-2.0], [-1.5]], [[-0.5], [-3.0], [-1.0]]],
        mask=mask_of([[1, 1, 1], [1, 1, 1]]),
    ),
    case(
        "eight rewards of 0.1, which tie",
        "Eight rewards of 0.1 tie, but their computed spread is not quite 0. Compare "
        "the rewards with each other: largest against smallest.",
        rewards=[[0.1] * 8],
        log_probs=[[[-1.0], [-2.0], [-1.5], [-0.5], [-1.0], [-3.0], [-0.75], [-1.0]]],
        old_log_probs=[
            [[-1.25], [-1.0], [-1.5], [-1.0], [-2.0], [-2.5], [-0.25], [-1.0]]
        ],
        mask=mask_of([[1] * 8]),
    ),
    case(
        "rewards of 0 and 1e-9, which do not tie",
        DIFFERENCE,
        rewards=[[0.0, 1e-9]],
        log_probs=[[[-1.0], [-2.0]]],
        old_log_probs=[[[-1.5], [-1.0]]],
        mask=mask_of([[1, 1]]),
    ),
    case(
        "padding of minus infinity",
        f"{NOT_ALL_TOKENS} Times 0, minus infinity is NaN.",
        rewards=[[0.0, 2.0], [0.0, 0.0]],
        log_probs=[
            [[-1.0, -torch.inf], [-2.0, -1.0]],
            [[-0.5, -0.5], [-3.0, -torch.inf]],
        ],
        old_log_probs=[
            [[-1.5, -torch.inf], [-2.0, -0.5]],
            [[-1.0, -0.25], [-2.5, -torch.inf]],
        ],
        mask=mask_of([[1, 2], [2, 1]]),
    ),
)
log_line.mistakes = f"""
(log_probs - old_log_probs)[mask].exp() => (log_probs - old_log_probs).exp() | \
{NOT_ALL_TOKENS}
-old_log_probs[mask].mean() => -old_log_probs.mean() | {NOT_ALL_TOKENS}
-old_log_probs[mask].mean() => -log_probs[mask].mean() | {SAMPLER}
(log_probs - old_log_probs)[mask].exp() => (old_log_probs - log_probs)[mask].exp() | \
The ratio is upside down. It is pi over pi_old: exp(log_probs - old_log_probs).
-old_log_probs[mask].mean() => -(old_log_probs[mask].exp() * \
old_log_probs[mask]).sum() | You add up p log p, which is the entropy only over all \
tokens of a vocabulary. These tokens are samples: a plain mean of the \
log-probabilities is right.
tied.float().mean().item() => tied.sum().item() | This is the number of tied groups. \
Their share is asked for: take the mean over the groups.
tied.float() => (~tied).float() | This is the share of the groups that are not tied. \
The share of tied ones is asked for.
rewards.amax(dim=-1) == rewards.amin(dim=-1) => (rewards == 0).all(dim=-1) | \
Rewards can tie at any value: a group where all are right teaches nothing either.
rewards.amax(dim=-1) == rewards.amin(dim=-1) => (rewards[..., 1:] == \
rewards[..., :-1]).any(dim=-1) | Two equal neighbours do not make a tie. All of the \
group must agree.
"""

# What a log shows: column -> what it may say -> in words.
LOG = {
    "loss": {
        "zero": "a loss of 0 at step 0 in every epoch",
        "grows": "a loss above 0 at step 0 of the later epochs, which is beta times KL",
    },
    "reward": {
        "rises": "a reward that rises",
        "falls": "a reward that falls",
        "stays": "a reward that stays where it was",
    },
    "gradient": {
        "some": "a gradient norm above 0 in the first epoch",
        "none": "a gradient norm of 0 in every epoch",
    },
    "ratio": {
        "leaves 1": "ratios that leave 1 within the first epoch",
        "one": "ratios of exactly 1 in every epoch",
    },
    "entropy": {
        "slow": "an entropy still above 0.3 in epoch 5",
        "gone": "an entropy near 0 in epoch 5 already",
    },
}
# What each cause does to the columns; the one that gives it away comes first.
USUAL = {
    "reward": "rises",
    "ratio": "leaves 1",
    "gradient": "some",
    "entropy": "slow",
    "loss": "zero",
}
SIGNS = {
    "all groups tied": {"gradient": "none", "reward": "stays", "ratio": "one"},
    "deltas with the wrong sign": {"reward": "falls"},
    "healthy": {},
    "KL weight far too large": {"loss": "grows", "reward": "stays"},
    "learning rate far too large": {"entropy": "gone"},
    "no step is taken": {"ratio": "one", "gradient": "some", "reward": "stays"},
    "old log-probs noted anew": {"ratio": "one", "gradient": "some"},
}
SIGNS = {cause: signs | USUAL | signs for cause, signs in SIGNS.items()}


@exercise("7.4", choice=True)
def cause_of_run(run):
    """the letter of a run -> its cause, one of the list"""
    causes = {
        "A": "deltas with the wrong sign",
        "B": "no step is taken",
        "C": "healthy",
        "D": "all groups tied",
        "E": "old log-probs noted anew",
        "F": "learning rate far too large",
    }
    return causes[run]


def taken_for(run, cause):
    """One run taken for the victim of another cause: the first number that argues."""
    right = cause_of_run(run)
    seen, told = SIGNS[right], SIGNS[cause]
    column = next(name for name, sign in told.items() if sign != seen[name])
    expected, found = LOG[column][told[column]], LOG[column][seen[column]]
    hint = f"'{cause}' would show {expected}. Run {run} shows {found}."
    return f'"{run}": "{right}" => "{run}": "{cause}" | {hint}'


cause_of_run.insight = (
    "Six runs print a loss of 0 at step 0. The reward, the gradient norm, the entropy "
    "and the ratio at the last step tell them apart. The solution compares A with C "
    "and B with E."
)
cause_of_run.cases = tuple(
    case(
        f"run {run}",
        "No cause of the list has this name. Copy one, letter by letter.",
        run=run,
    )
    for run in "ABCDEF"
)
cause_of_run.mistakes = "\n".join(
    taken_for(run, cause)
    for run in "ABCDEF"
    for cause in SIGNS
    if cause != cause_of_run(run)
)
