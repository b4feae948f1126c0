"""How much likelier a token is now than when sampled, and how far that may go."""

from typing import Annotated

import torch
from pydantic import Field
from torch import Tensor

from grpo_course.algorithm.aggregation import as_bool_mask, hide
from grpo_course.algorithm.settings import one_of, settings
from grpo_course.algorithm.validation import require_known


def compute_ratio(log_probs: Tensor, old_log_probs: Tensor) -> Tensor:
    """How much likelier each token is now than when it was sampled: pi / pi_old.

    [...] each -> the same. A quotient of probabilities is the exp of a difference of
    log-probabilities.
    """
    return torch.exp(log_probs - old_log_probs)


def token_level(log_probs: Tensor, old_log_probs: Tensor, mask: Tensor) -> Tensor:
    """Each token has a ratio of its own: the old log-probs as they are.

    [... batch trial pos] each -> the same.
    """
    return old_log_probs


def sequence_level(log_probs: Tensor, old_log_probs: Tensor, mask: Tensor) -> Tensor:
    """One ratio a response: the geometric mean of the ratios of its tokens.

    [... batch trial pos] each -> the same: the old log-probs under which every token
    has that ratio, so that losses need not know. The ratio sends its gradient to all
    tokens of the response. With one delta a response that is GSPO-token's gradient
    too; with deltas per token it is not, since verl's form, sg[s] * pi / sg[pi], keeps
    each delta to its own token.
    GSPO: Zheng et al. 2025, arXiv 2507.18071.
    """
    lengths = mask.sum(-1, keepdim=True).clamp(min=1)
    log_ratio = hide(log_probs - old_log_probs, mask).sum(-1, keepdim=True) / lengths
    return log_probs - log_ratio


RATIO_LEVELS = {"token": token_level, "sequence": sequence_level}


def old_at_level(
    log_probs: Tensor, old_log_probs: Tensor, mask: Tensor | None, level: str
) -> Tensor:
    """The old log-probs that give the ratios of a level; all [... batch trial pos].

    Raises ValueError for an unknown level and for a mask that does not line up.
    """
    require_known("ratio_level", level, RATIO_LEVELS)
    mask = as_bool_mask(mask, log_probs)
    return RATIO_LEVELS[level](log_probs, old_log_probs, mask)


@settings()
class Clip:
    """How far a ratio may go before its token stops pulling; PPO and GRPO take 0.2."""

    # clip range below 1; from 1 on there is none, since a ratio is never below 0
    epsilon: float = Field(default=0.2, gt=0)
    # clip range above 1; None: the same (DAPO: Yu et al. 2025, arXiv 2503.14476)
    epsilon_high: float | None = Field(default=None, gt=0)
    # "token", or "sequence" for one ratio a response (GSPO)
    ratio_level: Annotated[str, one_of(RATIO_LEVELS)] = "token"
    # upper bound of any ratio, read by loss_mode "dual_clipped"; usual are 3 to 10
    dual_clip: float = Field(default=3.0, gt=1)

    @property
    def high(self) -> float:
        """The clip range above 1."""
        return self.epsilon if self.epsilon_high is None else self.epsilon_high
