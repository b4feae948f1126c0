"""Every formula of GRPO, from a group's rewards to the loss, and nothing else.

    deltas       how much each response of a group counts, and with which sign
    ratio        how much likelier a token is now than when it was sampled
    losses       naive, unclipped, clipped, and what papers made of the clip
    KL           how far the policy is from its reference: exact, and estimated
    means        from one number a token to one number
    report       what ratio and clip did, for the record

torch alone: no model, no task, no text. Log-probabilities are in nats, and axes are
[batch trial pos]: prompts, the responses to one prompt, the tokens of a response. Axes
in front of them, such as a seed axis, pass through. `compute_deltas`, `compute_loss`,
`loss_report`, `compute_kl_penalty`, `exact_kl`, `kl_reward` and `aggregate` are what a
person calls: they check what they are given. The small functions between them are the
formulas as papers write them, and trust their caller, as the loop does.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from grpo_course.checks import (
    CERTAIN,
    require_at_least,
    require_axes,
    require_finite,
    require_inside,
    require_known,
    require_log_probs,
    require_number,
    require_old_log_probs,
    require_one_each,
    require_ref_log_probs,
    require_same_shape,
)

TOKEN_AXES = (-3, -2, -1)

# --- Deltas: rewards [batch trial] -> the same

SPREAD_EPSILON = 1e-4  # added to a spread before dividing; in units of the reward


def center(rewards: Tensor) -> Tensor:
    """Reward minus the mean reward of its group. [batch trial] -> [batch trial]

    The first reward is taken off before averaging. That changes nothing on paper;
    in floating point it makes tied rewards give exactly zero, whatever they are.
    """
    shifted = rewards - rewards[..., :1]
    return shifted - shifted.mean(dim=-1, keepdim=True)


def group_spread(rewards: Tensor) -> Tensor:
    """Sample standard deviation (over G - 1) of a group. [batch trial] -> [batch 1]"""
    squares = center(rewards).square().sum(dim=-1, keepdim=True)
    return (squares / (rewards.shape[-1] - 1)).sqrt()


def batch_spread(rewards: Tensor) -> Tensor:
    """Sample standard deviation of all rewards of a batch. [batch trial] -> [1 1]"""
    return rewards.std(dim=(-2, -1), keepdim=True)


def is_group_max(rewards: Tensor) -> Tensor:
    """Which responses have the best reward of their group. [batch trial] -> bool"""
    return rewards == rewards.max(dim=-1, keepdim=True).values


def keep_rewards(rewards: Tensor) -> Tensor:
    """The rewards themselves: no baseline. [batch trial] -> [batch trial]"""
    return rewards


def normalize(rewards: Tensor) -> Tensor:
    """Centered rewards in units of the group's spread. [batch trial] -> [batch trial]

    GRPO: Shao et al. 2024, arXiv 2402.03300.
    """
    return center(rewards) / (group_spread(rewards) + SPREAD_EPSILON)


def keep_max(rewards: Tensor) -> Tensor:
    """The reward where it is the best of its group, else zero: no baseline."""
    return torch.where(is_group_max(rewards), rewards, torch.zeros_like(rewards))


def keep_centered_max(rewards: Tensor) -> Tensor:
    """The centered reward where it is the best of its group, else zero."""
    return torch.where(
        is_group_max(rewards), center(rewards), torch.zeros_like(rewards)
    )


def leave_one_out(rewards: Tensor) -> Tensor:
    """Reward minus the mean of the group's others. [batch trial] -> [batch trial]

    RLOO: Ahmadian et al. 2024, arXiv 2402.14740.
    """
    return center(rewards) * rewards.shape[-1] / (rewards.shape[-1] - 1)


def normalize_by_batch(rewards: Tensor) -> Tensor:
    """Centered by group, in units of the batch's spread. [batch trial] -> [batch trial]

    Liu et al. 2025, arXiv 2508.08221.
    """
    return center(rewards) / (batch_spread(rewards) + SPREAD_EPSILON)


def whiten_rewards(rewards: Tensor) -> Tensor:
    """Centered by group, then in units of the spread of all centered rewards.

    REINFORCE++ with a group baseline: Hu et al. 2025, arXiv 2501.03262. Trainers that
    whiten over tokens weigh a response by its length in this spread; here each
    response counts once.
    """
    return center(rewards) / (batch_spread(center(rewards)) + SPREAD_EPSILON)


def softmax_weights(rewards: Tensor) -> Tensor:
    """Positive weights that sum to one in each group: no baseline."""
    return rewards.softmax(dim=-1)


def centered_softmax_weights(rewards: Tensor) -> Tensor:
    """Softmax weights minus their mean, which is 1/G. [batch trial] -> [batch trial]"""
    return center(rewards.softmax(dim=-1))


DELTA_MODES = {
    "rewards": keep_rewards,
    "centered_rewards": center,
    "normalized_rewards": normalize,
    "max_rewards": keep_max,
    "centered_max_rewards": keep_centered_max,
    "leave_one_out": leave_one_out,
    "batch_normalized_rewards": normalize_by_batch,
    "whitened_rewards": whiten_rewards,
    "softmax_rewards": softmax_weights,
    "centered_softmax_rewards": centered_softmax_weights,
}


MODES_WITHOUT_GROUP = {"rewards"}  # they compare a response with no other


def compute_deltas(rewards: Tensor, mode: str) -> Tensor:
    """Turn the rewards of each group into deltas. [batch trial] -> [batch trial]

    A group is one row: the G responses to one prompt. `mode` is a key of
    DELTA_MODES. Except for "rewards", "max_rewards" and "softmax_rewards", a group
    whose rewards are tied gets deltas of exactly zero. Leading axes pass through.

    Raises ValueError for an unknown mode, a missing axis, a reward that is not
    finite, and a group of one where the mode compares responses.
    """
    require_known("mode", mode, DELTA_MODES)
    require_axes("rewards", rewards, "batch trial")
    require_finite("rewards", rewards)
    if rewards.shape[-1] == 1 and mode not in MODES_WITHOUT_GROUP:
        raise ValueError(
            f"rewards has shape {list(rewards.shape)}: a group of one response has "
            f"nothing to be compared with, so mode={mode!r} cannot work. "
            "Sample at least two responses for each prompt."
        )
    return DELTA_MODES[mode](as_floats(rewards))


def deltas_per_token(deltas: Tensor, log_probs: Tensor) -> Tensor:
    """Deltas [... batch trial] as [... batch trial 1]; per-token ones as they are."""
    require_axes("deltas", deltas, "batch trial")
    if deltas.ndim == log_probs.ndim - 1:
        deltas = deltas.unsqueeze(-1)
    if deltas.shape not in (log_probs.shape, (*log_probs.shape[:-1], 1)):
        raise ValueError(
            f"deltas have shape {list(deltas.shape)}, but log_probs have shape "
            f"{list(log_probs.shape)}. Pass one delta per response "
            f"{list(log_probs.shape[:-1])} or one per token."
        )
    # A delta weighs the gradient of log pi; it sends none of its own back to
    # whatever made it (a reward model, a critic).
    return deltas.detach()


# --- Ratio

FARTHEST = 20.0  # nats: e^20 is far beyond any clip, and finite


def compute_ratio(
    log_probs: Tensor,
    old_log_probs: Tensor,
    mask: Tensor | None = None,
    level: str = "token",
) -> Tensor:
    """How much likelier each token is now than when it was sampled: pi / pi_old.

    [... batch trial pos] each -> the same. A quotient of probabilities is the exp of a
    difference of log-probabilities. It is cut off at 20 nats: far above them exp
    overflows, and zero times infinity makes a gradient that is not a number. In half
    precision that would be at 11, so a ratio is float32 at least.

    With level "sequence" all tokens of a response have one ratio, the geometric mean of
    theirs, which sends its gradient to each of them. With one delta a response that is
    GSPO-token's gradient too; with deltas per token it is not, since verl's form,
    sg[s] * pi / sg[pi], keeps each delta to its own token.
    GSPO: Zheng et al. 2025, arXiv 2507.18071.
    """
    log_ratio = as_floats(hide(log_probs - old_log_probs, mask))
    if level == "sequence":
        tokens = torch.ones_like(log_ratio) if mask is None else mask
        lengths = tokens.sum(-1, keepdim=True).clamp(min=1)
        mean = log_ratio.sum(-1, keepdim=True) / lengths
        log_ratio = mean.expand_as(log_ratio)
    return log_ratio.clamp(max=FARTHEST).exp()


RATIO_LEVELS = ("token", "sequence")

# --- Losses

# Each loss takes ratio and deltas and, by keyword, log_probs, old_log_probs, epsilon,
# epsilon_high, dual_clip; `**_` swallows what it does not use. Tensors, and the loss
# that comes out, are [... batch trial pos].

# The course's defaults; whoever else needs one of these numbers takes it from here.
EPSILON = 0.2  # half the width of the clip range: PPO's and TRL's
DUAL_CLIP = 3.0  # upper bound of any ratio, of the dual clip alone: its paper's


def naive_loss(ratio: Tensor, deltas: Tensor, *, log_probs: Tensor, **_) -> Tensor:
    """-delta log pi: the policy gradient (Williams 1992, REINFORCE)."""
    return -deltas * log_probs


def unclipped_loss(ratio: Tensor, deltas: Tensor, **_) -> Tensor:
    """-r delta: right for samples of pi_old too, while pi stays close to it."""
    return -ratio * deltas


def clipped_loss(
    ratio: Tensor, deltas: Tensor, *, epsilon: float, epsilon_high: float, **_
) -> Tensor:
    """-min(r delta, clip(r) delta): no gain from moving r out of the clip range.

    PPO: Schulman et al. 2017, arXiv 1707.06347.
    """
    clipped_ratio = ratio.clamp(1 - epsilon, 1 + epsilon_high)
    return -torch.minimum(ratio * deltas, clipped_ratio * deltas)


def dual_clipped_loss(
    ratio: Tensor,
    deltas: Tensor,
    *,
    epsilon: float,
    epsilon_high: float,
    dual_clip: float,
    **_,
) -> Tensor:
    """-min(min(r, c) delta, clip(r) delta): with c = dual_clip, a second upper bound.

    PPO's clip lets r grow without limit where delta < 0, and the loss with it. Beyond
    c such a token stops pulling. Ye et al. 2019, arXiv 1912.09729; TRL's `delta`.
    """
    clipped_ratio = ratio.clamp(1 - epsilon, 1 + epsilon_high)
    return -torch.minimum(ratio.clamp(max=dual_clip) * deltas, clipped_ratio * deltas)


def cispo_loss(
    ratio: Tensor, deltas: Tensor, *, log_probs: Tensor, epsilon_high: float, **_
) -> Tensor:
    """-sg[min(r, 1 + epsilon_high)] delta log pi: the clip bounds a weight.

    sg stops the gradient. No token loses its gradient, however far its ratio went.
    There is no lower bound, as in the paper's experiments: `epsilon` is not read.
    CISPO: MiniMax 2025, arXiv 2506.13585.
    """
    weight = ratio.clamp(max=1 + epsilon_high)
    return -weight.detach() * deltas * log_probs


SAPO_TEMPERATURES = (1.0, 1.05)  # for positive and negative deltas, as in the paper


def sapo_loss(ratio: Tensor, deltas: Tensor, **_) -> Tensor:
    """-(4 / tau) sigmoid(tau (r - 1)) delta: a smooth gate in place of the clip.

    At r = 1 it has the gradient of -r delta, and the less the farther r is from 1.
    tau is larger for negative deltas. SAPO: Gao et al. 2025, arXiv 2511.20347.
    """
    positive, negative = SAPO_TEMPERATURES
    tau = torch.where(deltas > 0, positive, negative).to(ratio)
    return -torch.sigmoid(tau * (ratio - 1)) * 4 / tau * deltas


# A loss of your own is one more entry: LOSS_MODES["mine"] = my_loss.
LOSS_MODES: dict[str, Callable[..., Tensor]] = {
    "naive": naive_loss,
    "unclipped": unclipped_loss,
    "clipped": clipped_loss,
    "dual_clipped": dual_clipped_loss,
    "cispo": cispo_loss,
    "sapo": sapo_loss,
}
MODES_WITHOUT_OLD = {"naive"}
NEVER_CUT = (naive_loss, unclipped_loss, cispo_loss, sapo_loss)


class TokenLoss(NamedTuple):
    """The loss of each token, and what it was made of: [... batch trial pos] each.

    Padding is zero in all of them, but for the ratio, which is one.
    """

    loss: Tensor
    ratio: Tensor
    deltas: Tensor
    log_probs: Tensor
    old_log_probs: Tensor
    mask: Tensor | None
    mode: str
    bounds: dict[str, float]  # epsilon, epsilon_high, dual_clip


def compute_loss(
    log_probs: Tensor,
    deltas: Tensor,
    mode: str,
    old_log_probs: Tensor | None = None,
    *,
    mask: Tensor | None = None,
    aggregation: str = "sequence_mean",
    max_length: int | None = None,
    **clip,
) -> Tensor:
    """The policy loss to minimize: [...], a scalar without leading axes.

    log_probs, old_log_probs and mask are [... batch trial pos] (nats), deltas are
    [... batch trial], or [... batch trial pos] where each token has its own. `clip` may
    name epsilon=EPSILON and epsilon_high=None for the clip range [1 - epsilon,
    1 + epsilon_high], dual_clip=DUAL_CLIP, and ratio_level="token". An epsilon of 1 or
    more leaves no lower bound, since no ratio is below 0.

    Raises ValueError for an unknown mode, aggregation or setting, for old log-probs
    that are missing or carry a gradient, for shapes that do not line up, and for values
    that cannot be log-probabilities.
    """
    tokens = token_loss(log_probs, deltas, mode, old_log_probs, mask=mask, **clip)
    return aggregate(tokens.loss, mask, aggregation, max_length=max_length)


def token_loss(
    log_probs: Tensor,
    deltas: Tensor,
    mode: str,
    old_log_probs: Tensor | None = None,
    *,
    mask: Tensor | None = None,
    **clip,
) -> TokenLoss:
    """The loss before the mean over tokens; arguments and errors as `compute_loss`.

    The loop trains on it too, and notes what `clip_report` says of it.
    """
    require_known("mode", mode, LOSS_MODES)
    level, bounds = clip_settings(mode, **clip)
    require_axes("log_probs", log_probs, "batch trial pos")
    deltas = deltas_per_token(deltas, log_probs)
    old = old_log_probs
    if old is None and mode in MODES_WITHOUT_OLD:
        old = log_probs.detach()
    old = require_old_log_probs(old, log_probs, mode)
    if mask is not None:
        mask = as_bool_mask(mask, log_probs)
    new, deltas, old = (hide(each, mask) for each in (log_probs, deltas, old))
    require_log_probs(log_probs=new, old_log_probs=old)
    ratio = compute_ratio(new, old, mask, level)
    loss = LOSS_MODES[mode](ratio, deltas, log_probs=new, old_log_probs=old, **bounds)
    return TokenLoss(loss, ratio, deltas, new, old, mask, mode, bounds)


def clip_settings(
    mode: str,
    epsilon: float = EPSILON,
    epsilon_high: float | None = None,
    ratio_level: str = "token",
    dual_clip: float = DUAL_CLIP,
) -> tuple[str, dict[str, float]]:
    """The level of the ratio, and its bounds, checked and filled in."""
    high = epsilon if epsilon_high is None else epsilon_high
    require_known("ratio_level", ratio_level, RATIO_LEVELS)
    require_inside("epsilon", epsilon, {"above": 0})
    require_inside("epsilon_high", high, {"above": 0})
    if mode == "dual_clipped" and not dual_clip > 1 + high:
        raise ValueError(
            f"dual_clip={dual_clip} is inside the clip range: it must be above "
            f"1 + epsilon_high = {1 + high:g}. Usual are 3 to 10."
        )
    bounds = {"epsilon": epsilon, "epsilon_high": high, "dual_clip": dual_clip}
    return ratio_level, bounds


@torch.no_grad()
def sampler_weights(
    old_log_probs: Tensor,
    sampled_log_probs: Tensor,
    cap: float,
    mask: Tensor | None = None,
) -> Tensor:
    """Truncated importance sampling: min(pi_old / pi_sampler, cap) for each token.

    All [... batch trial pos]; 1 where the mask is False. For a sampler that is not
    quite the policy that scores: another engine, a lower precision, top-k. Every loss
    is linear in the size of its deltas, so the weights multiply these, and no loss
    needs to know. Yao et al. 2025, fengyao.notion.site/off-policy-rl.

    Raises ValueError for a cap that is not above 0 and shapes that do not line up.
    """
    require_inside("cap", cap, {"above": 0}, "; usual are 2 to 5")
    require_same_shape(
        "sampled_log_probs", sampled_log_probs, "old_log_probs", old_log_probs
    )
    mask = as_bool_mask(mask, old_log_probs)
    old, sampled = hide(old_log_probs, mask), hide(sampled_log_probs, mask)
    require_log_probs(old_log_probs=old, sampled_log_probs=sampled)
    return (old - sampled).exp().clamp(max=cap)


# --- KL to the reference, in nats, of any shape: a number for each token


def k1(log_probs: Tensor, ref_log_probs: Tensor, **_) -> Tensor:
    """log(pi / ref). Unbiased, noisy, often negative; as a loss it teaches nothing."""
    return log_probs - ref_log_probs


def k2(log_probs: Tensor, ref_log_probs: Tensor, **_) -> Tensor:
    """Half of log(pi / ref) squared. Biased, but the gradient of KL(pi||ref)."""
    return (log_probs - ref_log_probs) ** 2 / 2


def k3(log_probs: Tensor, ref_log_probs: Tensor, **_) -> Tensor:
    """ref/pi - 1 - log(ref/pi). Unbiased, never negative; gradient of KL(ref||pi).

    As expm1(d) - d: exp(d) - 1 - d would lose small d to rounding. Above d = 88 nats
    float32 overflows to inf, left to be seen.
    """
    difference = ref_log_probs - log_probs
    return torch.expm1(difference) - difference


def corrected_k3(
    log_probs: Tensor, ref_log_probs: Tensor, *, old_log_probs: Tensor | None = None
) -> Tensor:
    """(pi / pi_old) k3: for samples of pi_old, with the gradient of KL(pi||ref).

    Unbiased for each token given those before it. It is not for whole responses: which
    tokens came before was still pi_old's choice. The ratio is that of the token,
    whatever the loss takes; it is 1 on the policy's own samples, but must carry its
    gradient. DeepSeek-V3.2: 2025, arXiv 2512.02556.
    """
    old = log_probs.detach() if old_log_probs is None else old_log_probs
    return compute_ratio(log_probs, old) * k3(log_probs, ref_log_probs)


KL_ESTIMATORS: dict[str, Callable[..., Tensor]] = {
    "k1": k1,
    "k2": k2,
    "k3": k3,
    "corrected_k3": corrected_k3,
}


def kl_values(
    log_probs: Tensor,
    ref_log_probs: Tensor,
    estimator: str = "k3",
    mask: Tensor | None = None,
    *,
    old_log_probs: Tensor | None = None,
) -> Tensor:
    """Estimate KL(pi||ref) in nats from the sampled tokens alone, one value each.

    Any shape, the same for all; `old_log_probs` is read by "corrected_k3" only and
    is the policy itself unless given. Under a mask, [... batch trial pos], padding is
    zero. k1, k2, k3: Schulman 2020, joschu.net/blog/kl-approx.html. Their gradients:
    Tang and Munos 2025, arXiv 2506.09477.

    Raises ValueError for an unknown estimator, for shapes that do not line up, for
    a reference or old log-probs that carry a gradient.
    """
    require_known("estimator", estimator, KL_ESTIMATORS)
    require_ref_log_probs(ref_log_probs, log_probs)
    if mask is not None:
        mask = as_bool_mask(mask, log_probs)
    new, ref, old = hide(log_probs, mask), hide(ref_log_probs, mask), old_log_probs
    require_log_probs(log_probs=new, ref_log_probs=ref)
    if old is not None:
        old = hide(require_old_log_probs(old, log_probs, estimator), mask)
        require_log_probs(old_log_probs=old)
    return KL_ESTIMATORS[estimator](new, ref, old_log_probs=old)


def compute_kl_penalty(
    log_probs: Tensor,
    ref_log_probs: Tensor,
    estimator: str = "k3",
    mask: Tensor | None = None,
    *,
    aggregation: str = "sequence_mean",
    max_length: int | None = None,
    old_log_probs: Tensor | None = None,
) -> Tensor:
    """The KL estimate of a rollout, to be added to the loss times beta: [...].

    log_probs, ref_log_probs and mask are [... batch trial pos]. It is a mean over
    positions: a sum over them would need a beta that is smaller by the length.
    Raises as `kl_values` and `aggregate`.
    """
    require_axes("log_probs", log_probs, "batch trial pos")
    values = kl_values(
        log_probs, ref_log_probs, estimator, mask, old_log_probs=old_log_probs
    )
    return aggregate(values, mask, aggregation, max_length=max_length)


def exact_kl(log_probs: Tensor, ref_log_probs: Tensor) -> Tensor:
    """KL(pi||ref) in nats from whole distributions: [... vocab] to [...].

    An outcome that pi never takes adds zero, whatever the reference says; one that
    only the reference never takes makes it infinite. Raises ValueError if a row
    does not sum to one, as logits do not.
    """
    require_ref_log_probs(ref_log_probs, log_probs)
    for name, rows in (("log_probs", log_probs), ("ref_log_probs", ref_log_probs)):
        totals = rows.detach().logsumexp(-1)
        if not (totals.abs() < CERTAIN).all():
            raise ValueError(
                f"{name} are not log-probabilities: a row sums to "
                f"{totals.exp().max().item():.3g}, not 1. Apply log_softmax(-1)."
            )
    probs = log_probs.exp()
    # where, not 0 * inf: an impossible outcome has log-probability -inf
    gap = torch.where(probs > 0, log_probs - ref_log_probs, 0.0)
    return (probs * gap).sum(-1)


@torch.no_grad()
def kl_reward(
    rewards: Tensor,
    log_probs: Tensor,
    ref_log_probs: Tensor,
    coefficient: float | Tensor,
    mask: Tensor | None = None,
) -> Tensor:
    """KL in the reward: R - beta log(pi/ref) of the whole response, no gradient.

    rewards [... batch trial], log-probs and mask [... batch trial pos]; beta is a
    number, or [seed] where seeds train together. In the reward, k1 has the gradient
    of KL(pi||ref), through the score function. Ziegler et al. 2019, arXiv 1909.08593.
    """
    require_axes("log_probs", log_probs, "batch trial pos")
    require_one_each("rewards", rewards, log_probs)
    require_ref_log_probs(ref_log_probs, log_probs)
    mask = as_bool_mask(mask, log_probs)
    new, ref = hide(log_probs, mask), hide(ref_log_probs, mask)
    require_log_probs(log_probs=new, ref_log_probs=ref)
    beta = as_beta(coefficient, new)[..., None, None]
    return as_floats(rewards) - beta * (new - ref).sum(-1)


def as_beta(
    coefficient: float | Tensor, like: Tensor, argument: str = "coefficient"
) -> Tensor:
    """A KL coefficient in the precision of log-probabilities, [] or [seed].

    Raises TypeError if it is no number, ValueError if it is below 0 or not finite.
    """
    require_number(argument, coefficient)
    beta = torch.as_tensor(coefficient, dtype=like.dtype, device=like.device)
    if not ((beta >= 0) & beta.isfinite()).all():
        raise ValueError(
            f"{argument}={coefficient} is out of range: beta is 0 or more; a negative "
            "one would reward the policy for leaving its reference."
        )
    return beta


# --- Means over tokens: values and mask [... batch trial pos] -> [...]


def sequence_mean(kept: Tensor, mask: Tensor, max_length: int) -> Tensor:
    """Mean over the tokens of each response, then over the responses.

    Every response weighs the same, so a token of a long response weighs less.
    GRPO: Shao et al. 2024, arXiv 2402.03300.
    """
    lengths = mask.sum(-1).clamp(min=1)  # an empty response is 0/1, not 0/0
    return (kept.sum(-1) / lengths).mean((-2, -1))


def token_mean(kept: Tensor, mask: Tensor, max_length: int) -> Tensor:
    """Mean over all tokens: every token weighs the same.

    DAPO: Yu et al. 2025, arXiv 2503.14476.
    """
    return kept.sum(TOKEN_AXES) / mask.sum(TOKEN_AXES).clamp(min=1)


def constant(kept: Tensor, mask: Tensor, max_length: int) -> Tensor:
    """Sum over all tokens, divided by a number that no response can change.

    Dr. GRPO: Liu et al. 2025, arXiv 2503.20783.
    """
    num_responses = mask.shape[-3] * mask.shape[-2]
    return kept.sum(TOKEN_AXES) / (num_responses * max_length)


def sequence_sum(kept: Tensor, mask: Tensor, max_length: int) -> Tensor:
    """Sum over the tokens of each response, then mean over the responses.

    "constant" without its divisor, so the loss grows with the length. LUSPO is this
    with one ratio a response: arXiv 2602.05261.
    """
    return kept.sum(-1).mean((-2, -1))


AGGREGATIONS = {
    "sequence_mean": sequence_mean,
    "token_mean": token_mean,
    "constant": constant,
    "sequence_sum": sequence_sum,
}


def aggregate(
    per_token: Tensor,
    mask: Tensor | None = None,
    aggregation: str = "sequence_mean",
    *,
    max_length: int | None = None,
) -> Tensor:
    """Reduce [... batch trial pos] to [...]: a scalar without leading axes.

    `mask` is True (or 1) on the tokens that count. Without it all count, and the
    modes are the plain mean, but for "sequence_sum". `max_length` is the divisor of
    "constant" in tokens; it is the pos axis unless given, and no other mode reads it.

    A response whose mask is empty adds zero. It stays in the number of responses
    ("sequence_mean", "constant"): leaving it out would make the weight of the
    others depend on it. TRL counts it too, verl leaves it out.

    Sums are taken in float32 at least. Raises ValueError for an unknown mode, for
    shapes that do not line up, for a mask that is not 0/1 and for a max_length below 1.
    """
    require_known("aggregation", aggregation, AGGREGATIONS)
    require_axes("per_token", per_token, "batch trial pos")
    mask = as_bool_mask(mask, per_token)
    if max_length is None:
        max_length = per_token.shape[-1]
    else:
        require_at_least("max_length", max_length, 1)
    kept = hide(as_floats(per_token), mask)
    return AGGREGATIONS[aggregation](kept, mask, max_length)


def as_floats(values: Tensor) -> Tensor:
    """Half precision, whole numbers and booleans as float32; the rest as it is.

    In half precision a sum overflows at 65504, and its mean is infinite.
    """
    return values if values.dtype in (torch.float32, torch.float64) else values.float()


def hide(values: Tensor, mask: Tensor | None) -> Tensor:
    """Zero in value and in gradient where the mask is False.

    [... batch trial pos] -> the same.
    Not `values * mask`: padding may hold inf or NaN, and 0 * NaN is NaN.
    """
    return values if mask is None else torch.where(mask, values, values.new_zeros(()))


def as_bool_mask(mask: Tensor | None, like: Tensor) -> Tensor:
    """The mask as booleans; all True when it is None. -> bool [... batch trial pos]

    Raises ValueError if it has not the shape of `like`, and if it is not 0/1.
    """
    if mask is None:
        return torch.ones_like(like, dtype=torch.bool)
    require_axes("mask", mask, "batch trial pos")
    require_same_shape("mask", mask, "what it masks", like)
    if mask.dtype != torch.bool and not ((mask == 0) | (mask == 1)).all():
        raise ValueError(
            f"mask holds values from {mask.min().item():g} to {mask.max().item():g}, "
            "but it says which tokens count: pass booleans, or 0 and 1."
        )
    return mask.bool()


def or_nan(seen: Tensor, mask: Tensor | None) -> Tensor:
    """What was seen of the tokens under the mask, [...], or NaN where there is none."""
    return seen if mask is None else torch.where(mask.any(TOKEN_AXES), seen, torch.nan)


# --- What the ratio and the clip did


@torch.no_grad()
def loss_report(
    log_probs: Tensor,
    deltas: Tensor,
    old_log_probs: Tensor,
    *,
    mode: str = "clipped",
    mask: Tensor | None = None,
    **clip,
) -> dict[str, Tensor]:
    """What ratio and clip do, as `clip_report`; arguments as `compute_loss`."""
    tokens = token_loss(log_probs, deltas, mode, old_log_probs, mask=mask, **clip)
    return clip_report(tokens)


@torch.no_grad()
def clip_report(tokens: TokenLoss) -> dict[str, Tensor]:
    """What the ratio and the clip did, as a flat dict of [...].

    `clip_fraction_low` and `clip_fraction_high` count the tokens that lost their
    gradient, with a ratio below the range and above it. `gradient_fraction` counts
    those that still pull: delta is not zero and nothing was clipped. Fractions are of
    the tokens under the mask; without any, all of it is NaN.
    `old_kl` is how far the inner steps went: KL(pi_old||pi) in nats a token, k3, each
    token's log-ratio cut off as in the ratio.
    """
    ratio, counts = tokens.ratio, as_bool_mask(tokens.mask, tokens.ratio)
    log_ratio = as_floats(tokens.log_probs - tokens.old_log_probs).clamp(max=FARTHEST)
    low, high = clipped_tokens(tokens)
    pulls = (tokens.deltas != 0) & ~low & ~high
    seen = {
        "ratio_mean": ratio,
        "old_kl": torch.expm1(log_ratio) - log_ratio,
        "clip_fraction_low": low.to(ratio),
        "clip_fraction_high": high.to(ratio),
        "gradient_fraction": pulls.to(ratio),
    }
    least = torch.where(counts, ratio, torch.inf).amin(TOKEN_AXES)
    most = torch.where(counts, ratio, -torch.inf).amax(TOKEN_AXES)
    # All of it in one tensor, so that the mask is looked at once.
    hidden = hide(as_floats(torch.stack([*seen.values()])), counts)
    report = torch.stack([least, most, *token_mean(hidden, counts, 1)])
    names = ("ratio_min", "ratio_max", *seen)
    return dict(zip(names, or_nan(report, counts), strict=True))


def clipped_tokens(tokens: TokenLoss) -> tuple[Tensor, Tensor]:
    """Which tokens lost their gradient: ratio too low, ratio too high. bool each.

    PPO's clip takes it where the ratio is below the range with delta < 0 or above it
    with delta > 0, the dual clip also above `dual_clip` with delta < 0. The course's
    other losses take it from nobody. Of a loss of your own the gradient is looked at.
    """
    loss, ratio, deltas = LOSS_MODES[tokens.mode], tokens.ratio, tokens.deltas
    low = high = torch.zeros_like(ratio, dtype=torch.bool)
    if loss in (clipped_loss, dual_clipped_loss):
        low = (ratio < 1 - tokens.bounds["epsilon"]) & (deltas < 0)
        high = (ratio > 1 + tokens.bounds["epsilon_high"]) & (deltas > 0)
        if loss is dual_clipped_loss:
            high = high | ((ratio > tokens.bounds["dual_clip"]) & (deltas < 0))
    elif loss not in NEVER_CUT:
        cut = (deltas != 0) & (slope_of(tokens) == 0)
        low, high = cut & (ratio < 1), cut & (ratio >= 1)
    return low, high


@torch.enable_grad()
def slope_of(tokens: TokenLoss) -> Tensor:
    """The gradient of each token's loss by its log-probability, alone and in the ratio.

    -> [... batch trial pos]
    """
    ratio = tokens.ratio.detach().requires_grad_()
    log_probs = tokens.log_probs.detach().requires_grad_()
    given = {"log_probs": log_probs, "old_log_probs": tokens.old_log_probs}
    loss = LOSS_MODES[tokens.mode](ratio, tokens.deltas, **given, **tokens.bounds)
    if not loss.requires_grad:
        return torch.zeros_like(ratio)
    by_ratio, by_log_prob = torch.autograd.grad(
        loss.sum(), (ratio, log_probs), materialize_grads=True
    )
    return by_ratio * ratio + by_log_prob
