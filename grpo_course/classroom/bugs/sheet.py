"""All bugs in the order of the hunt, which is that of the debugging sheet."""

from grpo_course.classroom.bugs import losses, rewards, tokens

BUGS = (
    losses.QUOTIENT,
    losses.WRONG_SIDE,
    tokens.UNSHIFTED,
    losses.DROPOUT,
    tokens.EOS_MASK,
    tokens.ROW_ORDER,
    rewards.REGEX,
    rewards.TINY_EPSILON,
    rewards.SPREAD,
    losses.UPSIDE_DOWN_K3,
    losses.K1_AS_LOSS,
    tokens.MEAN_OF_MEANS,
    rewards.UNBOUND,
)
