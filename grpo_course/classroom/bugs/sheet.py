"""All bugs in the order of the hunt, which is that of the debugging sheet."""

from grpo_course.classroom.bugs import loss_bugs, reward_bugs, token_bugs

BUGS = (
    loss_bugs.QUOTIENT,
    loss_bugs.WRONG_SIDE,
    token_bugs.UNSHIFTED,
    loss_bugs.DROPOUT,
    token_bugs.EOS_MASK,
    token_bugs.ROW_ORDER,
    reward_bugs.REGEX,
    reward_bugs.TINY_EPSILON,
    reward_bugs.SPREAD,
    loss_bugs.UPSIDE_DOWN_K3,
    loss_bugs.K1_AS_LOSS,
    token_bugs.MEAN_OF_MEANS,
    reward_bugs.UNBOUND,
)
