"""The loop: what is sampled, judged and compared, and the steps that follow.

    settings     a line for each knob
    what flows   a rollout, the batch it becomes, the history of what was seen
    GRPO         the algorithm, from a rollout to the optimizer step, for any policy
    Trainer      GRPO with every knob: each method below its name in GRPO
    the parts of those knobs, in the order of the loop
    train        one call

A policy is anything with `sample(prompts, num_responses)` and `log_probs(rollout)`. The
formulas are in `formulas`; here is no task, no text and no plot. Where several seeds
train side by side, every tensor has a seed axis in front, [seed batch trial pos].
"""

import copy
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import reduce
from math import nan
from typing import TYPE_CHECKING, Annotated, Any, Literal, Protocol

import torch
from einops import rearrange
from pydantic import Field
from torch import Generator, Tensor, nn
from torch.nn.functional import pad

from grpo_course.checks import (
    one_of,
    require_axes,
    require_finite,
    require_inside,
    require_known,
    require_same_shape,
    require_tensor,
    settings,
    unknown_name,
)
from grpo_course.formulas import (
    AGGREGATIONS,
    DELTA_MODES,
    DUAL_CLIP,
    EPSILON,
    KL_ESTIMATORS,
    LOSS_MODES,
    MODES_WITHOUT_GROUP,
    RATIO_LEVELS,
    aggregate,
    as_beta,
    as_bool_mask,
    as_floats,
    clip_report,
    clip_settings,
    compute_deltas,
    compute_kl_penalty,
    deltas_per_token,
    hide,
    kl_reward,
    or_nan,
    sampler_weights,
    token_loss,
)
from grpo_course.long_work import counted

if TYPE_CHECKING:
    from pandas import DataFrame  # slow to load, and only tables need it

# --- Settings

# Of the rule that adapts beta: Ziegler et al. 2019, arXiv 1909.08593, 2.2.
KL_GAIN, LARGEST_KL_ERROR = 0.1, 0.2


@settings()
class TrainConfig:
    """What the loop does with each rollout; the names are those of the symbol sheet.

    An epoch is one rollout and the steps taken on it. (Elsewhere the word is used for
    a pass over a rollout, as in PPO's own paper, or for a pass over a data set.)

    Raises ValueError for a name that is not known, a wrong type, a number out of range
    and knobs that contradict each other.
    """

    # The loop

    num_epochs: int = Field(default=100, ge=0)  # rollouts
    # mu: passes over each rollout, each one step
    num_steps_per_epoch: int = Field(default=10, ge=1)
    num_responses: int = Field(default=10, ge=1)  # G: responses to each prompt

    # Deltas, ratio and loss

    # how rewards become deltas; PPO's critic makes its own
    deltas_mode: Annotated[str, one_of(DELTA_MODES)] = "normalized_rewards"
    # "token", or "sequence" for one ratio a response (GSPO)
    ratio_level: Annotated[str, one_of(RATIO_LEVELS)] = "token"
    # what the ratio does in the loss
    loss_mode: Annotated[str, one_of(LOSS_MODES)] = "clipped"
    # clip range below 1; from 1 on there is none, since a ratio is never below 0
    epsilon: float = Field(default=EPSILON, gt=0)
    # clip range above 1; None: the same (DAPO: Yu et al. 2025, arXiv 2503.14476)
    epsilon_high: float | None = Field(default=None, gt=0)
    # upper bound of any ratio, read by loss_mode "dual_clipped"; usual are 3 to 10
    dual_clip: float = Field(default=DUAL_CLIP, gt=1)
    # from a number a token to one number
    aggregation: Annotated[str, one_of(AGGREGATIONS)] = "sequence_mean"
    # tokens, the divisor of aggregation "constant"; None: the pos axis
    max_length: int | None = Field(default=None, ge=1)

    # KL

    # beta; 0 means that no reference policy is kept
    kl_penalty: float = Field(default=0.0, ge=0)
    # of the penalty in the loss
    kl_estimator: Annotated[str, one_of(KL_ESTIMATORS)] = "k3"
    # "loss", or "reward" for -beta * k1 in each reward
    kl_place: Literal["loss", "reward"] = "loss"
    # adapt beta until the KL is this; None: keep it
    kl_target: float | None = Field(default=None, gt=0)
    # K_beta: share of the error of the KL by which beta moves after an epoch
    kl_gain: float = Field(default=KL_GAIN, gt=0, le=1)
    # epochs between two copies of the policy
    compute_ref_model_period: int = Field(default=10, ge=1)
    # share of the policy in its next reference; 1: a copy
    ref_mixture: float = Field(default=1.0, gt=0, le=1)

    # Sampling

    # times that a tied group is asked again, with the same prompt
    num_resamples: int = Field(default=0, ge=0)
    # drop the tokens of responses that did not finish
    mask_truncated: bool = False
    # of pi_old / pi_sampler (TIS); None: trust the sampler
    sampler_cap: float | None = Field(default=None, gt=0)

    # Steps

    # responses a step; None: all, one step a pass
    minibatch_size: int | None = Field(default=None, ge=1)
    # of the shuffling
    minibatch_seed: int = Field(default=0, ge=0, lt=2**63)
    # a longer gradient is scaled down to it; None: no limit
    max_gradient_norm: float | None = Field(default=None, gt=0)
    # nats a token: an epoch ends after the step that sees KL(pi_old||pi), `old_kl` in
    # the record, above this (PPO's early stop, for one seed); None: all steps
    stop_kl: float | None = Field(default=None, gt=0)

    # Memory and time

    # where pi_old is from: a forward pass of its own, what the sampler noted, or, where
    # each rollout gets one step, that step's forward pass
    old_log_probs_from: Literal["policy", "sampler", "first_step"] = "policy"
    # a forward pass holds so many prompts with all their responses, so many single
    # responses where minibatch_size is set; None: all at once
    micro_batch_size: int | None = Field(default=None, ge=1)
    # no forward pass for groups without any delta
    skip_tied_groups: bool = False

    @property
    def clip(self) -> dict[str, Any]:
        """The ratio and its range, as the loss takes them."""
        return {
            "epsilon": self.epsilon,
            "epsilon_high": self.epsilon_high,
            "dual_clip": self.dual_clip,
            "ratio_level": self.ratio_level,
        }

    @property
    def mean(self) -> dict[str, Any]:
        """How tokens become one number, as loss and KL take it."""
        return {"aggregation": self.aggregation, "max_length": self.max_length}

    @property
    def one_step(self) -> bool:
        """Whether a rollout gets a single optimizer step."""
        return self.num_steps_per_epoch == 1 and self.minibatch_size is None

    def __post_init__(self) -> None:
        clip_settings(self.loss_mode, **self.clip)
        if self.num_responses == 1 and self.deltas_mode not in MODES_WITHOUT_GROUP:
            raise ValueError(
                f"num_responses=1 with deltas_mode={self.deltas_mode!r}: a group of "
                "one response has nothing to be compared with. Sample at least two, "
                "or choose deltas_mode='rewards'."
            )
        if self.stop_kl is not None and self.one_step:
            raise ValueError(
                f"stop_kl={self.stop_kl} with num_steps_per_epoch=1 and no "
                "minibatch_size: an epoch is one step, which is always taken. Take "
                "more steps, or use stop_kl=None."
            )
        if self.kl_target is not None and not self.kl_penalty:
            raise ValueError(
                f"kl_target={self.kl_target} with kl_penalty={self.kl_penalty}: both "
                "must be above 0, since the target moves the penalty from there."
            )
        source = self.old_log_probs_from
        if source == "first_step" and not (
            self.one_step and self.kl_place == "loss" and self.sampler_cap is None
        ):
            raise ValueError(
                "old_log_probs_from='first_step' needs num_steps_per_epoch=1, no "
                "minibatch_size, no sampler_cap and the KL in the loss: else pi_old is "
                "asked for after the policy has moved, or before its first step. With "
                f"num_steps_per_epoch={self.num_steps_per_epoch}, "
                f"minibatch_size={self.minibatch_size}, kl_place={self.kl_place!r} and "
                f"sampler_cap={self.sampler_cap}, set old_log_probs_from='policy'."
            )
        if source == "sampler" and self.sampler_cap is not None:
            raise ValueError(
                f"sampler_cap={self.sampler_cap} compares pi_old with the sampler; "
                "with old_log_probs_from='sampler' they are the same. Choose 'policy'."
            )


# --- What flows


@dataclass(frozen=True)
class Rollout:
    """The responses sampled for a batch of prompts.

    prompts: whatever the policy reads; int [batch pos] in the sort world.
    responses: int [batch trial pos], the sampled tokens.
    mask: bool [batch trial pos], True where a token counts; None if all do.
    sampled_log_probs: [batch trial pos], what the sampler itself said of its tokens;
        None if it did not note it.
    finished: bool [batch trial], False where a response was cut off before it ended;
        None if nobody looked.
    written: bool [batch trial pos], the mask before `mask_truncated` took tokens out
        of it; None if it did not.
    """

    prompts: Tensor
    responses: Tensor
    mask: Tensor | None = None
    sampled_log_probs: Tensor | None = None
    finished: Tensor | None = None
    written: Tensor | None = None


@dataclass(frozen=True)
class Batch:
    """What the inner steps need to know about one rollout; nothing here has a graph."""

    rollout: Rollout
    rewards: Tensor  # [batch trial]
    deltas: Tensor  # [batch trial] or [batch trial pos]
    old_log_probs: Tensor | None = None  # [batch trial pos]; None: those of step one
    ref_log_probs: Tensor | None = None  # [batch trial pos]
    targets: Tensor | None = None  # [batch trial ...], of a critic


class Policy(Protocol):
    """Anything that can answer prompts and say how likely its answers were."""

    def sample(self, prompts: Tensor, num_responses: int) -> Rollout:
        """Answer each prompt num_responses times."""

    def log_probs(self, rollout: Rollout) -> Tensor:
        """Log-probability of each token of the rollout. -> [batch trial pos]"""


PLACE = ("epoch", "step")  # whole numbers; all else in a record is a tensor


@dataclass
class History:
    """The records of a run; a value is a tensor, [seed] where seeds train together."""

    records: list[dict[str, Any]] = field(default_factory=list)

    def add(self, epoch: int, step: int, record: dict) -> None:
        """One more optimizer step."""
        self.records.append({"epoch": epoch, "step": step} | record)

    def curve(self, name: str) -> Tensor:
        """All values of one column in order, on the CPU. -> [step] or [step seed]"""
        values = [record[name] for record in self.records if name in record]
        if not values:
            known = sorted({key for record in self.records for key in record})
            raise unknown_name("name", name, known)
        return torch.stack([torch.as_tensor(value).cpu() for value in values])

    def epochs(self, name: str) -> Tensor:
        """One column at the first step of each epoch, and of the last look after
        training, if there is one. -> [epoch] or [epoch + 1], then [seed] if any
        """
        return History([r for r in self.records if r.get("step", 0) == 0]).curve(name)

    def final(self, name: str) -> Tensor:
        """The last value of one column. -> [] or [seed]"""
        return self.curve(name)[-1]

    def frame(self, names: Sequence[str] = ()) -> "DataFrame":
        """The records as a pandas table, a row a step; the mean where there are seeds.

        Columns are epoch, step and `names`, or all that are one number a seed.
        Raises ValueError for a name that no record has.
        """
        from pandas import DataFrame

        rows = []
        for record in (r for r in self.records if "step" in r):
            values = {k: torch.as_tensor(v) for k, v in record.items()}
            means = {
                k: v.double().mean().item() for k, v in values.items() if v.ndim < 2
            }
            rows.append(means | {name: record[name] for name in PLACE})
        in_order = dict.fromkeys(name for row in rows for name in row)
        known = [name for name in in_order if name not in PLACE]
        for name in names:
            require_known("name", name, known)
        frame = DataFrame(rows, columns=[*PLACE, *(names or known)])
        return frame.set_index(list(PLACE))


def rollout_report(batch: Batch) -> dict[str, Tensor]:
    """What can be read off a rollout before any step; each value is [] or [seed].

    `tied_groups` is the share of groups that teach nothing, `truncated` that of the
    responses that were cut off, where the rollout says so. Lengths are of all that was
    sampled, also of what `mask_truncated` drops. `sampled_entropy` is minus the mean
    log-probability of the sampled tokens, if pi_old or, of dropped ones, the sampler
    noted it: in nats a token, right on average, and all that can be had where responses
    cannot be enumerated. NaN where no token is known.
    """
    rollout, rewards = batch.rollout, batch.rewards
    mask = rollout.mask if rollout.written is None else rollout.written
    mask = as_bool_mask(mask, rollout.responses)
    report = {
        "mean_reward": rewards.mean(dim=(-2, -1)),
        "tied_groups": tied_groups(rewards).float().mean(dim=-1),
        "mean_length": mask.float().sum(dim=-1).mean(dim=(-2, -1)),
    }
    if rollout.finished is not None:
        cut_off = ~rollout.finished.bool()
        report["truncated"] = cut_off.float().mean(dim=(-2, -1))
    known, noted = batch.old_log_probs, rollout.sampled_log_probs
    if known is None:
        known = noted
    elif rollout.written is not None and rollout.mask is not None:
        if noted is None:  # of the dropped tokens no log-prob is known
            mask = rollout.mask
        else:
            known = torch.where(rollout.mask, known, noted)
    if known is None:
        return report
    entropy = -aggregate(known, mask, "token_mean")
    return report | {"sampled_entropy": or_nan(entropy, mask)}


def tied_groups(rewards: Tensor) -> Tensor:
    """Where all rewards of a group are equal. [... batch trial] -> bool [... batch]"""
    return rewards.amax(dim=-1) == rewards.amin(dim=-1)


ENOUGH = 2.0  # standard errors; seeds alone differ by as many in one case of twenty


def mean_and_error(values: Tensor | Sequence[float]) -> tuple[Tensor, Tensor]:
    """The mean over the seeds and its standard error. [... seed] -> two of [...]"""
    results = torch.as_tensor(values).detach().double()
    return results.mean(dim=-1), results.std(dim=-1) / results.shape[-1] ** 0.5


# How many standard errors hold 95 % of the means of n seeds: Student's t with n - 1
# degrees of freedom, from n = 2.
STUDENT = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262)


def half_width(values: Iterable[float]) -> float:
    """Half of the 95 % interval of a mean over a few seeds; NaN for a single one."""
    seeds = torch.tensor([float(value) for value in values], dtype=torch.float64)
    n, free = len(seeds), len(seeds) - 1
    if free < 1:
        return nan
    # Beyond the table, the first terms in 1 / free, good to 0.003.
    t = STUDENT[n - 2] if n - 2 < len(STUDENT) else 1.96 + 2.372 / free + 2.82 / free**2
    return t * mean_and_error(seeds)[1].item()


# --- The doors: what a person passes in is looked at once, here


def require_policy(policy: object) -> None:
    """Check that something can sample and score. Raises TypeError."""
    for name in ("sample", "log_probs"):
        if not callable(getattr(policy, name, None)):
            raise TypeError(
                f"policy is a {type(policy).__name__} without {name}(...). Wrap the "
                "model in a policy, such as SortPolicy or SequencePolicy."
            )


def checked_rollout(rollout: object) -> Rollout:
    """What a policy sampled; its mask, if it has one, as booleans."""
    if not isinstance(rollout, Rollout):
        raise TypeError(
            f"policy.sample returned a {type(rollout).__name__}, not a Rollout. Return "
            "Rollout(prompts, responses). Is its `return` missing?"
        )
    require_axes("responses", rollout.responses, "batch trial pos")
    if rollout.mask is None:
        return rollout
    return replace(rollout, mask=as_bool_mask(rollout.mask, rollout.responses))


def checked_rewards(
    reward_fn: Callable[[Rollout], Tensor], rollout: Rollout, epoch: int
) -> Tensor:
    """What a reward function says of a rollout, as floats [... batch trial].

    Raises TypeError if it is no tensor; ValueError if it is not one finite number for
    each response. The message names the epoch.
    """
    rewards, expected = reward_fn(rollout), list(rollout.responses.shape[:-1])
    if not isinstance(rewards, Tensor):
        raise TypeError(
            f"in epoch {epoch}, reward_fn returned a {type(rewards).__name__}, not a "
            f"tensor. Return one number for each response, shape {expected}: "
            "torch.tensor(...). Is its `return` missing?"
        )
    if list(rewards.shape) != expected:
        raise ValueError(
            f"in epoch {epoch}, reward_fn returned shape {list(rewards.shape)}, but "
            f"responses has shape {list(rollout.responses.shape)}: return one number "
            f"for each response, {expected}."
        )
    require_finite(f"in epoch {epoch}, rewards", rewards)
    return as_floats(rewards.detach())


def score(policy: Policy, rollout: Rollout) -> Tensor:
    """What a policy says of each token: [... batch trial pos], zero on padding.

    Raises ValueError if that is not one log-probability for each token.
    """
    log_probs = policy.log_probs(rollout)
    require_tensor("what policy.log_probs returned", log_probs, "batch trial pos")
    if log_probs.shape != rollout.responses.shape:
        raise ValueError(
            f"policy.log_probs returned shape {list(log_probs.shape)}, but responses "
            f"has shape {list(rollout.responses.shape)}: return one number a token."
        )
    return hide(log_probs, rollout.mask)


# --- The algorithm


class GRPO:
    """Responses in groups, deltas within a group, several steps on each rollout.

    DeepSeekMath: Shao et al. 2024, arXiv 2402.03300. `prompts` int [batch pos] are the
    same in each epoch, or a function of the epoch that draws them. `reward_fn` maps a
    rollout to rewards [batch trial]. `observe` sees the policy before each epoch, and
    what it returns joins the record of the first step; `watch` sees the history after
    each epoch. Raises TypeError for a policy that cannot sample or score.

    This is the plain loop: of the settings it reads those of deltas, ratio, loss and
    KL. `Trainer` reads the rest.
    """

    def __init__(
        self,
        policy: Policy,
        prompts: Tensor | Callable[[int], Tensor],
        reward_fn: Callable[[Rollout], Tensor],
        optimizer: torch.optim.Optimizer,
        config: TrainConfig,
        observe: Callable[[Any], dict | None] | None = None,
        watch: Callable[[History], None] | None = None,
    ):
        require_policy(policy)
        self.policy, self.reward_fn = policy, reward_fn
        self.prompts = prompts if callable(prompts) else lambda epoch: prompts
        self.optimizer, self.config = optimizer, config
        self.observe = observe or (lambda policy: None)
        self.watch = watch or (lambda history: None)
        # Where the run stands. A run that is to go on must know this, the policy with
        # its random numbers, and the optimizer.
        self.epoch = 0
        self.beta: float | Tensor = config.kl_penalty
        self.ref_policy: Policy | None = None
        self.shuffle = torch.Generator().manual_seed(config.minibatch_seed)
        self.history = History()

    def __repr__(self) -> str:
        """What runs: the class, and the settings that differ from their defaults."""
        plain, now = type(self.config)(), self.config
        values = {f.name: getattr(now, f.name) for f in fields(now)}
        changed = [f"{k}={v!r}" for k, v in values.items() if v != getattr(plain, k)]
        return f"{type(self).__name__}({', '.join(changed)})"

    def train(self) -> History:
        """The outer loop makes new responses, the inner one takes steps on them."""
        while self.epoch < self.config.num_epochs:
            self.renew_reference()
            seen = self.observe(self.policy) or {}
            batch = self.collect(self.prompts(self.epoch))
            sampled = rollout_report(batch)
            for step, part in enumerate(self.inner_batches(batch)):
                record = self.improve(part, step) | sampled | seen
                self.history.add(self.epoch, step, record)
                seen = {}
            self.end_epoch()
        return self.history

    # Outer: sample, judge, compare; note what pi_old and pi_ref say.

    def renew_reference(self) -> None:
        """At times pi_ref becomes a frozen copy of pi; without a KL there is none."""
        is_time = self.epoch % self.config.compute_ref_model_period == 0
        if self.config.kl_penalty and is_time:
            self.ref_policy = copy.deepcopy(self.policy)

    def collect(self, prompts: Tensor) -> Batch:
        """int [batch pos] -> a batch of [... batch trial] and [... batch trial pos]."""
        rollout, rewards = self.sample(prompts)
        with torch.no_grad():
            old = self.old_log_probs(rollout)
            ref = score(self.ref_policy, rollout) if self.ref_policy else None
        deltas = self.compare(rollout, rewards, old, ref)
        return Batch(rollout, rewards, deltas, old, ref)

    def sample(self, prompts: Tensor) -> tuple[Rollout, Tensor]:
        """A group of responses to each prompt, and their rewards [... batch trial]."""
        rollout = self.policy.sample(prompts, self.config.num_responses)
        rollout = checked_rollout(rollout)
        return rollout, checked_rewards(self.reward_fn, rollout, self.epoch)

    def old_log_probs(self, rollout: Rollout) -> Tensor | None:
        """What the policy says of its samples before any step: pi_old."""
        return score(self.policy, rollout)

    def compare(
        self, rollout: Rollout, rewards: Tensor, old: Tensor | None, ref: Tensor | None
    ) -> Tensor:
        """Deltas [... batch trial]: each response against its group."""
        return compute_deltas(rewards, self.config.deltas_mode)

    # Inner: ratio, clip, mean, KL; then the gradient and a step, several times.

    def inner_batches(self, batch: Batch) -> Iterator[Batch]:
        """What each step of this epoch sees: all of the batch, mu times."""
        return itertools.repeat(batch, self.config.num_steps_per_epoch)

    def improve(self, batch: Batch, step: int = 0) -> dict:
        """One optimizer step; returns what was seen, each value [] or [seed]."""
        place = f"epoch {self.epoch}, step {step}"
        self.optimizer.zero_grad()
        record = self.backward(batch, place)
        seed_axes = batch.rewards.ndim - 2  # one where seeds train side by side
        longest = self.config.max_gradient_norm
        norm = take_step(self.optimizer, seed_axes, longest, place)
        return {"gradient_norm": norm} | record

    def backward(self, batch: Batch, place: str) -> dict:
        """The gradient of the loss. Seeds are added: none of them sees another."""
        loss, record = self.loss(batch)
        require_finite_loss(loss, place)
        loss.sum().backward()
        return record

    def loss(self, batch: Batch) -> tuple[Tensor, dict]:
        """The policy loss plus beta times the KL, [...], and what to record of it."""
        config, mask, ref = self.config, batch.rollout.mask, batch.ref_log_probs
        log_probs, old = score(self.policy, batch.rollout), batch.old_log_probs
        if old is None:  # there is one step, and pi is still pi_old
            old = log_probs.detach()

        tokens = token_loss(
            log_probs, batch.deltas, config.loss_mode, old, mask=mask, **config.clip
        )
        loss = aggregate(tokens.loss, mask, **config.mean)
        record = {"loss": loss.detach(), "policy_loss": loss.detach()}
        if ref is not None:
            kl = compute_kl_penalty(
                log_probs,
                ref,
                config.kl_estimator,
                mask,
                old_log_probs=old,
                **config.mean,
            )
            beta = torch.zeros_like(kl.detach()) + self.beta
            if config.kl_place == "loss":  # else the reward has paid for it
                loss = loss + beta * kl
            kl = or_nan(kl.detach(), mask)
            record |= {"loss": loss.detach(), "kl": kl, "beta": beta}
        return loss, record | clip_report(tokens)

    def end_epoch(self) -> None:
        """Count, and let somebody look."""
        self.epoch += 1
        self.watch(self.history)


def require_finite_loss(loss: Tensor, place: str) -> None:
    """Check a loss [] or [seed] before anything is learned from it.

    Raises ValueError for one that is not finite, and for one that reaches no weight.
    """
    if not loss.isfinite().all():
        culprit = loss[~loss.isfinite()].flatten()[0].item()
        raise ValueError(
            f"the loss is {culprit} in {place}. This step was not taken. "
            "Try a smaller learning rate."
        )
    if not loss.requires_grad:
        raise ValueError(
            f"the loss has no gradient in {place}: the model is frozen, or its "
            "log-probs were detached. Let its weights require a gradient, and compute "
            "log-probs outside of torch.no_grad()."
        )


def take_step(
    optimizer: torch.optim.Optimizer,
    seed_axes: int = 0,
    max_norm: float | None = None,
    place: str = "this step",
) -> Tensor:
    """One step along the gradients there are; returns their norm before clipping.

    The norm is [], or [seed] where the weights have one leading seed axis. Where it is
    above `max_norm`, that seed's gradient is scaled down to it; the direction stays
    (Pascanu et al. 2013, arXiv 1211.5063). Raises ValueError, and takes no step, where
    no weight has a gradient and where one is not finite.
    """
    weights = [w for group in optimizer.param_groups for w in group["params"]]
    moved = [w for w in weights if w.grad is not None]
    if not moved:
        raise ValueError(
            f"the loss reaches none of the optimizer's {len(weights)} weights: the "
            "model is frozen, or the optimizer belongs to another model. Make it from "
            "policy.model.parameters(), and let them require a gradient."
        )
    squares = [w.grad.square().flatten(seed_axes).sum(-1) for w in moved]
    norm = torch.stack(squares).sum(0).sqrt()
    if not norm.isfinite().all():
        raise ValueError(
            f"the gradient is not finite in {place}, though the loss is. This step was "
            "not taken. Try a smaller learning rate, and look for log-probabilities "
            "far from those of the policy that sampled."
        )
    if max_norm is not None:
        scale = max_norm / norm.clamp(min=max_norm)
        for weight in moved:
            after = [1] * (weight.ndim - scale.ndim)
            weight.grad *= scale.reshape(*scale.shape, *after)
    optimizer.step()
    return norm


# --- Every knob


class Trainer(GRPO):
    """GRPO with every knob of its settings: a method adds to its namesake in GRPO."""

    def renew_reference(self) -> None:
        """The first reference is a copy; with `ref_mixture` later ones are mixed.

        The next one is `ref_mixture` * pi + (1 - `ref_mixture`) * pi_ref, weight by
        weight. TR-DPO: Gorbatovski et al. 2024, arXiv 2404.09656.
        """
        last = self.ref_policy
        super().renew_reference()
        if last is None or self.ref_policy is last or self.config.ref_mixture == 1:
            return
        with torch.no_grad():
            for old, new in zip(weights(last), weights(self.policy), strict=True):
                if old.is_floating_point():
                    old.lerp_(new.to(old), self.config.ref_mixture)
        self.ref_policy = last

    def sample(self, prompts: Tensor) -> tuple[Rollout, Tensor]:
        """Ask tied groups again; judge what was cut off, but do not learn from it.

        A group whose rewards are all equal teaches nothing. Up to `num_resamples` times
        new responses to the same prompt take its place; what is tied after that stays.
        DAPO (Yu et al. 2025, arXiv 2503.14476) replaces the prompt as well. A reward
        function must find all it needs in the rollout: it sees some prompts only.
        """
        rollout, rewards = super().sample(prompts)
        for _ in range(self.config.num_resamples):
            tied = tied_groups(rewards)
            asked = tied.reshape(-1, tied.shape[-1]).any(dim=0).nonzero().squeeze(-1)
            if not len(asked):
                break
            fresh, again = super().sample(prompts[asked])
            rollout = replace_groups(rollout, fresh, tied, asked)
            rewards = put(rewards, again, tied[..., None], asked, axis=-2)
        if self.config.mask_truncated:
            rollout = drop_truncated(rollout)
        return rollout, rewards

    def old_log_probs(self, rollout: Rollout) -> Tensor | None:
        """From a forward pass, from the sampler's notes, or from the first step's pass.

        Raises ValueError if the sampler noted nothing.
        """
        if self.config.old_log_probs_from == "first_step":
            return None
        if self.config.old_log_probs_from == "policy":
            return super().old_log_probs(rollout)
        if rollout.sampled_log_probs is None:
            raise ValueError(
                "old_log_probs_from='sampler', but this policy's rollouts have no "
                "sampled_log_probs. Choose 'policy': one more forward pass."
            )
        return hide(rollout.sampled_log_probs.detach(), rollout.mask)

    def compare(
        self, rollout: Rollout, rewards: Tensor, old: Tensor | None, ref: Tensor | None
    ) -> Tensor:
        """With the KL in the reward, deltas of what is left after paying."""
        if self.config.kl_place == "reward" and old is not None and ref is not None:
            rewards = kl_reward(rewards, old, ref, self.beta, rollout.mask)
        return super().compare(rollout, rewards, old, ref)

    def collect(self, prompts: Tensor) -> Batch:
        """int [batch pos] -> a batch, its deltas weighed by `correct`."""
        return self.correct(super().collect(prompts))

    def correct(self, batch: Batch) -> Batch:
        """With `sampler_cap`, each token's delta times its weight."""
        cap, old = self.config.sampler_cap, batch.old_log_probs
        if cap is None or old is None:
            return batch
        return replace(
            batch, deltas=correct_deltas(batch.deltas, batch.rollout, old, cap)
        )

    def inner_batches(self, batch: Batch) -> Iterator[Batch]:
        """All of the batch, or minibatches shuffled anew each time, mu times over.

        With `stop_kl` an epoch ends after a step that sees KL(pi_old||pi) too large:
        PPO's brake. The KL is measured before a step, so the step that is seen above
        the limit was taken too. Raises ValueError for a size above the batch's.
        """
        size, limit = self.config.minibatch_size, self.config.stop_kl
        passes = super().inner_batches(batch)
        if size is not None:
            buffer = ExperienceBuffer()
            buffer.add(batch)
            passes = (
                minibatch
                for _ in passes
                for minibatch in buffer.minibatches(size, self.shuffle)
            )
        for seen in passes:
            yield seen
            if limit is None:
                continue
            kl = self.history.records[-1]["old_kl"]
            if kl.numel() > 1:  # an optimizer with momentum moves a stopped seed too
                raise ValueError(
                    f"stop_kl={limit}, but {kl.numel()} seeds train together, and each "
                    "would stop at another step. Train them one by one, or use "
                    "stop_kl=None."
                )
            if kl.item() > limit:
                return

    def backward(self, batch: Batch, place: str) -> dict:
        """The gradient of the whole batch's loss, in parts that fit the memory."""
        if self.config.micro_batch_size is None and not self.config.skip_tied_groups:
            return super().backward(batch, place)
        parts, records = split(batch, self.config), []
        for part in counted(parts, "learning", "part"):
            loss, record = self.loss(part.batch)
            require_finite_loss(loss, place)
            (part.weight * loss).sum().backward()
            records.append(record)
        return join(parts, records)

    def end_epoch(self) -> None:
        """With `kl_target` beta moves, until the KL of the last step is the target.

        Before anybody looks, so that a checkpoint has the beta of the next epoch.
        """
        target = self.config.kl_target
        if target is not None:
            kl = self.history.records[-1]["kl"]
            kl = torch.where(kl.isnan(), target, kl)  # no token was seen: beta stays
            self.beta = adapted_beta(self.beta, kl, target, self.config.kl_gain)
        super().end_epoch()


def train(
    policy: Policy,
    prompts: Tensor | Callable[[int], Tensor],
    reward_fn: Callable[[Rollout], Tensor],
    optimizer: torch.optim.Optimizer,
    config: TrainConfig,
    observe: Callable[[Any], dict | None] | None = None,
    watch: Callable[[History], None] | None = None,
    *,
    kind: type[Trainer] = Trainer,
    **more: Any,
) -> History:
    """Train a policy on groups of its own responses; arguments as `GRPO`.

    `kind` is another trainer, such as ppo.PPO, and `more` what it takes.
    """
    trainer = kind(
        policy, prompts, reward_fn, optimizer, config, observe, watch, **more
    )
    return trainer.train()


def collect(
    policy: Policy,
    prompts: Tensor,
    reward_fn: Callable[[Rollout], Tensor],
    config: TrainConfig,
) -> Batch:
    """One batch of int [batch pos], as the first epoch of a run would collect it."""
    nothing_moves = torch.optim.SGD([torch.zeros(1)])
    return Trainer(policy, prompts, reward_fn, nothing_moves, config).collect(prompts)


# --- The parts of the knobs, in the order of the loop


def weights(policy: Policy) -> Iterator[Tensor]:
    """All weights and buffers of a policy, or of the modules among its attributes.

    A wrapper, as StaleSampler, scores with its `policy`: the weights are that one's.
    """
    while hasattr(policy, "policy") and not isinstance(policy, nn.Module):
        policy = policy.policy
    members = [policy] if isinstance(policy, nn.Module) else vars(policy).values()
    modules = [member for member in members if isinstance(member, nn.Module)]
    if not modules:
        raise TypeError(
            f"a {type(policy).__name__} holds no torch module, so its weights cannot "
            "be mixed. Keep the model as an attribute, or use ref_mixture=1."
        )
    for module in modules:
        yield from module.state_dict(keep_vars=True).values()


def replace_groups(
    rollout: Rollout, fresh: Rollout, tied: Tensor, asked: Tensor
) -> Rollout:
    """The rollout with the groups of `fresh`, int [asked], where bool [batch] is True.

    The shorter of the two is padded; padding is masked. Raises ValueError if one of
    the two lacks a column that the other has.
    """
    width = max(rollout.responses.shape[-1], fresh.responses.shape[-1])
    rollout, fresh = padded(rollout, width), padded(fresh, width)
    if (rollout.mask is None) != (fresh.mask is None):  # None: all tokens count
        rollout, fresh = masked(rollout), masked(fresh)
    columns = {}
    for name in (f.name for f in fields(Rollout) if f.name != "prompts"):
        old, new = getattr(rollout, name), getattr(fresh, name)
        if old is None and new is None:
            continue
        if old is None or new is None:
            raise ValueError(
                f"of two rollouts of this policy, one has {name} and one has None, so "
                "no group of one can take the place of another's. Return it from each "
                "policy.sample, or from none."
            )
        trailing = old.ndim - tied.ndim
        where = tied.reshape(*tied.shape, *[1] * trailing)
        columns[name] = put(old, new, where, asked, axis=-1 - trailing)
    return replace(rollout, **columns)


def put(old: Tensor, new: Tensor, where: Tensor, asked: Tensor, axis: int) -> Tensor:
    """`old` with rows `asked` of an axis taken from `new`, where that is True."""
    return torch.where(where, old.index_copy(axis, asked, new), old)


def padded(rollout: Rollout, width: int) -> Rollout:
    """The rollout with responses of that many positions."""
    extra, full = width - rollout.responses.shape[-1], rollout.responses.ndim
    if extra == 0:
        return rollout
    columns = {
        name: pad(column, (0, extra))
        for name, column in vars(masked(rollout)).items()
        if name != "prompts" and column is not None and column.ndim == full
    }
    return replace(rollout, **columns)


def masked(rollout: Rollout) -> Rollout:
    """The rollout with a mask, also where all tokens count."""
    return replace(rollout, mask=as_bool_mask(rollout.mask, rollout.responses))


def drop_truncated(rollout: Rollout) -> Rollout:
    """The rollout without the tokens of responses that did not finish.

    Their reward says little: the answer may have been one token away. They still
    count in the mean of their group and in the number of responses. DAPO calls it
    overlong filtering. Raises ValueError if the rollout does not say what finished.
    """
    if rollout.finished is None:
        raise ValueError(
            "mask_truncated=True needs rollout.finished, bool [batch trial]: False "
            "where a response was cut off before it ended. Fill it in policy.sample, "
            "or use mask_truncated=False."
        )
    mask = as_bool_mask(rollout.mask, rollout.responses)
    first = rollout.responses[..., 0]
    require_same_shape("finished", rollout.finished, "responses[..., 0]", first)
    kept = mask & rollout.finished[..., None].to(torch.bool)
    return replace(rollout, mask=kept, written=mask)


def correct_deltas(
    deltas: Tensor, rollout: Rollout, old_log_probs: Tensor, cap: float
) -> Tensor:
    """Deltas times the `sampler_weights` of their tokens: [... batch trial pos].

    Raises ValueError if the rollout does not say what its sampler thought.
    """
    sampled = rollout.sampled_log_probs
    if sampled is None:
        raise ValueError(
            f"sampler_cap={cap}, but this policy's rollouts have no sampled_log_probs. "
            "Note them in policy.sample, or use sampler_cap=None."
        )
    weight = sampler_weights(old_log_probs, sampled, cap, rollout.mask)
    return deltas_per_token(deltas, weight) * weight


def columns_of(batch: Batch) -> dict[str, Tensor]:
    """The tensors of a batch and its rollout by name, but for those that are None."""
    held = vars(batch.rollout) | vars(batch)
    return {k: v for k, v in held.items() if v is not None and k != "rollout"}


def as_batch(columns: dict[str, Tensor]) -> Batch:
    """The other way round."""
    of_rollout = {f.name for f in fields(Rollout)}
    rollout: dict[str, Any] = {k: v for k, v in columns.items() if k in of_rollout}
    others: dict[str, Any] = {k: v for k, v in columns.items() if k not in of_rollout}
    return Batch(Rollout(**rollout), **others)


def row_axis(name: str, columns: dict[str, Tensor]) -> int:
    """Where the rows are: prompts have them first, the others after the seeds."""
    return 0 if name == "prompts" else columns["rewards"].ndim - 2


def choose(batch: Batch, chosen: Tensor) -> Batch:
    """Some rows of the batch axis. int [chosen]"""
    columns = columns_of(batch)
    return as_batch(
        {k: v.index_select(row_axis(k, columns), chosen) for k, v in columns.items()}
    )


class ExperienceBuffer:
    """Batches of responses, as one batch in which every response stands alone.

    Deltas compare a response with its group, so they are made before a response
    comes here, from the whole group. Inside, [... batch trial pos] becomes
    [... (batch trial) 1 pos]: a minibatch may cut through a group.
    """

    def __init__(self) -> None:
        self.batches: list[Batch] = []

    def __len__(self) -> int:
        """How many responses it holds."""
        return sum(batch.rewards.shape[-2] for batch in self.batches)

    def add(self, batch: Batch) -> None:
        """Take in a batch [... batch trial pos].

        Raises ValueError where it has not the columns of what is there already, or not
        one row of each for each response.
        """
        columns = columns_of(batch)
        trial, full = batch.rewards.shape[-1], columns["responses"].ndim
        flat = {"prompts": columns.pop("prompts").repeat_interleave(trial, dim=0)}
        for name, column in columns.items():
            pos = " pos" if column.ndim == full else ""
            pattern = f"... batch trial{pos} -> ... (batch trial) 1{pos}"
            flat[name] = rearrange(column, pattern)
        rows = {name: each.shape[row_axis(name, flat)] for name, each in flat.items()}
        held = columns_of(self.batches[0]) if self.batches else rows
        if len({*rows.values()}) > 1 or rows.keys() != held.keys():
            raise ValueError(
                f"a batch has so many rows of each column: {rows}. Each needs one for "
                f"each response, and the buffer takes {', '.join(held)}: collect all "
                "its batches with the same settings."
            )
        self.batches.append(as_batch(flat))

    def get(self) -> Batch:
        """All of it, in the order of coming. Raises ValueError if there is nothing."""
        if not self.batches:
            raise ValueError(
                "the buffer is empty: there is nothing to train on. Call "
                "buffer.add(batch) with what trainer.collect returned, before get."
            )
        held = [columns_of(batch) for batch in self.batches]
        return as_batch(
            {
                name: torch.cat([each[name] for each in held], row_axis(name, held[0]))
                for name in held[0]
            }
        )

    def clear(self) -> None:
        """Forget everything: the next rollout comes from a newer policy."""
        self.batches = []

    def minibatches(
        self, size: int, generator: Generator | None = None
    ) -> Iterator[Batch]:
        """Shuffle once; each response comes exactly once, `size` of them at a time.

        The last minibatch is smaller if `size` does not divide the number. Equal
        generators give equal minibatches. Raises ValueError for an empty buffer,
        and for a size below 1 or above the number of responses.
        """
        everything = self.get()
        if not 1 <= size <= len(self):
            raise ValueError(
                f"size={size}, but the buffer holds {len(self)} responses. "
                "Choose a smaller minibatch, or add more responses first."
            )
        order = torch.randperm(len(self), generator=generator)
        return (choose(everything, chosen) for chosen in order.split(size))


@dataclass(frozen=True)
class Part:
    """Some rows of a batch, and their shares."""

    batch: Batch
    weight: Tensor | float  # of the loss, [] or [seed]
    token_weight: Tensor | float  # of the tokens that are looked at, [] or [seed]


def split(batch: Batch, config: TrainConfig) -> list[Part]:
    """The parts whose weighed losses have the gradient of the whole batch's loss.

    At most `micro_batch_size` rows of the batch axis each: prompts with all their
    responses, or single responses in a minibatch. With `skip_tied_groups` rows without
    any delta are left out, unless a KL still pulls on them. One is always kept: an
    optimizer with momentum moves on a zero gradient too.
    Raises ValueError where a critic's loss would have to be split too.
    """
    if batch.targets is not None:
        raise ValueError(
            "micro_batch_size and skip_tied_groups split the policy's loss only. "
            "Leave both out where a critic has a loss of its own, as in PPO."
        )
    row = batch.rewards.ndim - 2
    rows = torch.arange(batch.rewards.shape[row], device=batch.rewards.device)
    if config.skip_tied_groups and batch.ref_log_probs is None:
        pulls = (batch.deltas != 0).movedim(row, 0).flatten(1).any(dim=1)
        rows = rows[pulls] if pulls.any() else rows[:1]

    def tokens(some: Batch) -> Tensor:
        return as_bool_mask(some.rollout.mask, some.rollout.responses).sum((-3, -2, -1))

    whole, kept = tokens(batch).clamp(min=1), tokens(choose(batch, rows)).clamp(min=1)
    parts = []
    for chosen in rows.split(config.micro_batch_size or len(rows)):
        part = choose(batch, chosen)
        weight: Tensor | float = tokens(part) / whole
        if config.aggregation != "token_mean":
            weight = len(chosen) / batch.rewards.shape[row]
        parts.append(Part(part, weight, tokens(part) / kept))
    return parts


# What a record holds as a mean over tokens; the rest is weighed as the loss is.
TOKEN_MEANS = {"ratio_mean", "old_kl", "gradient_fraction"}
TOKEN_MEANS |= {"clip_fraction_low", "clip_fraction_high"}


def join(parts: list[Part], records: list[dict]) -> dict:
    """One record from those of the parts. Skipped rows are in the loss, as zeros.

    A part without a token has NaN, which is left out; of nothing but those, NaN comes.
    """
    joined = {}
    for name in records[0]:
        values = [record[name] for record in records]
        if name in ("ratio_min", "ratio_max", "beta"):
            # These two leave NaN out, where a part has no token.
            most = torch.fmax if name == "ratio_max" else torch.fmin
            joined[name] = reduce(most, values)
            continue
        share = "token_weight" if name in TOKEN_MEANS else "weight"
        shares = [getattr(part, share) for part in parts]
        known = [torch.where(value.isnan(), 0.0, value) for value in values]
        total = sum(a * b for a, b in zip(shares, known, strict=True))
        nothing = torch.stack(values).isnan().all(0)
        joined[name] = torch.where(nothing, nan, total)
    return joined


def adapted_beta(
    beta: float | Tensor,
    kl: float | Tensor,
    target: float,
    gain: float = KL_GAIN,
) -> float | Tensor:
    """beta (1 + gain clip(kl / target - 1, -0.2, 0.2)).

    kl and target in nats; with a kl for each seed, [seed], beta becomes [seed] too. The
    default moves it by at most 2 %: Ziegler et al. 2019, arXiv 1909.08593, 2.2. Where
    a program has a horizon, as verl's controller, gain is the samples of a step over
    that horizon. Raises ValueError for a kl that is not finite, a gain outside (0, 1].
    """
    kl = kl if isinstance(kl, Tensor) else torch.tensor(kl, dtype=torch.float64)
    require_finite("kl", kl)
    as_beta(beta, kl, "beta")  # refuses one below 0
    require_inside("target", target, {"above": 0, "below": float("inf")})
    require_inside("gain", gain, {"above": 0, "at most": 1}, ", or beta would jump")
    error = (kl / target - 1).clamp(-LARGEST_KL_ERROR, LARGEST_KL_ERROR)
    factor = 1 + gain * error
    return beta * (factor if factor.ndim else factor.item())
