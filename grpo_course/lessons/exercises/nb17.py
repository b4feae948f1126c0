"""The exercises of 17_judges_and_teachers."""

import torch

from grpo_course.classroom.check import case, exercise
from grpo_course.lessons.exercises.shared import numbers


@exercise("17.1", gradient="chosen rejected")
def bradley_terry_loss(chosen, rejected):
    """float [pair], float [pair] -> float []"""
    return -torch.nn.functional.logsigmoid(chosen - rejected).mean()


NO_LOG = (
    "The logarithm is missing. The sigmoid is the probability of the choice; the loss "
    "is minus its logarithm, which does not stop pulling at a wrong pair."
)
SEPARATE = (
    "You take a sigmoid of each reward by itself. A person only said which of the two "
    "is better, so only their difference counts: one sigmoid of chosen - rejected for "
    "each pair."
)
HINGE = (
    "This is a hinge: from some difference on a pair pulls no more. Take -log sigmoid "
    "of the difference."
)
DIVIDED = (
    "You divide the rewards, which may be 0 or negative. The choice depends on their "
    "difference."
)
ROUNDED = (
    "The sigmoid of a very negative number rounds to 0, and its logarithm is infinite. "
    "A small number added inside the logarithm, or a clamp, makes it finite, but "
    "wrong, and takes the pull away where it should be strongest. "
    "torch.nn.functional.logsigmoid takes both in one."
)

bradley_terry_loss.insight = (
    "Only the difference counts, so a constant added to all rewards changes nothing, "
    "and pairs that are right already pull little."
)
bradley_terry_loss.cases = (
    case("three pairs", chosen=[1.0, 0.5, -1.0], rejected=[0.0, 1.5, -3.0]),
    case("rewards that tie", chosen=[2.0, 2.0], rejected=[2.0, 2.0]),
    case("one pair", chosen=[0.5], rejected=[0.25]),
    case(
        "a pair that the model gets very wrong",
        ROUNDED,
        chosen=[-200.0],
        rejected=[200.0],
    ),
)
bradley_terry_loss.mistakes = f"""
nn.functional.logsigmoid => sigmoid | {NO_LOG}
return (1 - (chosen - rejected).sigmoid()).mean() | {NO_LOG}
return -(chosen.sigmoid().log() - rejected.sigmoid().log()).mean() | {SEPARATE}
return -(torch.nn.functional.logsigmoid(chosen) + \
torch.nn.functional.logsigmoid(-rejected)).mean() | {SEPARATE}
return -(chosen - rejected).mean() | This is the mean difference, which can grow for \
ever. The probability of the choice is its sigmoid; the loss is minus the logarithm of \
that.
return -torch.nn.functional.logsigmoid(chosen / rejected).mean() | {DIVIDED}
return -(chosen / (chosen + rejected)).log().mean() | You take the rewards themselves \
for strengths, and they may be negative. The strengths are e to the rewards; chosen \
over both is then the sigmoid of the difference.
return (1 - (chosen - rejected)).relu().mean() | {HINGE}
return -torch.sigmoid((chosen - rejected).mean()).log() | You average the differences \
before the loss: a pair that is very right hides one that is wrong. Each pair has a \
loss of its own, and the mean comes last.
"""


@exercise("17.2", gradient="chosen rejected")
def dpo_loss(chosen, rejected, ref_chosen, ref_rejected, beta):
    """log pi of whole responses: float [pair] each, float -> float []"""
    reward_chosen = beta * (chosen - ref_chosen)
    reward_rejected = beta * (rejected - ref_rejected)
    return bradley_terry_loss(reward_chosen, reward_rejected)


NO_REFERENCE = (
    "The reference is missing. The reward of a response is beta times the log-ratio of "
    "policy to reference: how likely it was before earns nothing."
)
NO_RATIO = (
    "You take the probabilities, or their ratio, for the reward. It is beta times the "
    "logarithm of the ratio: the difference of the two log-probabilities."
)
dpo_loss.insight = (
    "beta log Z is gone: it is the same for both responses of a pair. And the policy "
    "is its own reward model."
)
dpo_loss.cases = (
    case(
        "three pairs",
        chosen=[-1.0, -2.0, -0.5],
        rejected=[-1.5, -1.0, -3.0],
        ref_chosen=[-1.25, -1.5, -1.0],
        ref_rejected=[-1.0, -1.75, -2.5],
        beta=0.5,
    ),
    case(
        "the policy is still the reference",
        chosen=[-1.0, -4.0],
        rejected=[-2.0, -0.5],
        ref_chosen=[-1.0, -4.0],
        ref_rejected=[-2.0, -0.5],
        beta=0.1,
    ),
    case(
        "one pair, and a large beta",
        chosen=[-0.5],
        rejected=[-2.0],
        ref_chosen=[-0.75],
        ref_rejected=[-1.0],
        beta=2.0,
    ),
    case(
        "a pair that the policy gets very wrong",
        ROUNDED,
        chosen=[-400.0],
        rejected=[-1.0],
        ref_chosen=[-1.0],
        ref_rejected=[-300.0],
        beta=1.0,
    ),
)
dpo_loss.mistakes = f"""
(chosen - ref_chosen) => chosen && (rejected - ref_rejected) => rejected | \
{NO_REFERENCE}
(chosen - ref_chosen) => (chosen - ref_chosen).exp() && (rejected - ref_rejected) => \
(rejected - ref_rejected).exp() | {NO_RATIO}
(chosen - ref_chosen) => (chosen / ref_chosen) && (rejected - ref_rejected) => \
(rejected / ref_rejected) | You divide logarithms. The logarithm of a ratio is the \
difference of the two logs.
reward_chosen, reward_rejected => reward_chosen, 0 * reward_rejected | The rejected \
response is missing. The person said which of two is better: the loss needs both \
rewards.
reward_chosen, reward_rejected => reward_rejected, reward_chosen | This teaches that \
the rejected response is better: the two rewards are exchanged, or the reference \
stands where the policy belongs.
(rejected - ref_rejected) => (rejected + ref_rejected) | A bracket is missing: of the \
rejected response, too, the reference is taken away, so its log-probability comes back \
with a plus.
beta * (chosen - ref_chosen) => chosen - ref_chosen && beta * (rejected - \
ref_rejected) => rejected - ref_rejected | beta is missing: the reward is beta times \
the log-ratio.
bradley_terry_loss => beta * bradley_terry_loss && beta * (chosen - ref_chosen) => \
chosen - ref_chosen && beta * (rejected - ref_rejected) => rejected - ref_rejected | \
beta stands outside the sigmoid. It belongs to the reward, inside.
beta * (chosen - ref_chosen) => beta * chosen - ref_chosen && beta * (rejected - \
ref_rejected) => beta * rejected - ref_rejected | beta weights the policy alone. It \
weights the whole log-ratio.
"""


# The draft: minus k3 pushes no token up, and what is not finite stays so, times 0.
def drafted_deltas(log_probs, teacher_log_probs, mask):
    """float, float, bool [batch trial pos] -> float [batch trial pos], a constant"""
    gap = (teacher_log_probs - log_probs).detach()
    k3 = torch.expm1(gap) - gap
    return -k3 * mask


@exercise("17.3", gradient="log_probs teacher_log_probs", draft=drafted_deltas)
def distillation_deltas(log_probs, teacher_log_probs, mask):
    """float, float, bool [batch trial pos] -> float [batch trial pos], a constant"""
    deltas = (teacher_log_probs - log_probs).detach()
    return torch.where(mask, deltas, 0.0)


distillation_deltas.insight = (
    "A teacher's delta asks no reward and no group: each token is pushed up as far as "
    "the teacher finds it likelier than the student does."
)
distillation_deltas.cases = (
    case(
        "two responses of three tokens",
        log_probs=-numbers(1, 2, 3).square() - 0.1,
        teacher_log_probs=-numbers(1, 2, 3, shift=1.0).square() - 0.2,
        mask=torch.ones(1, 2, 3, dtype=torch.bool),
    ),
    case(
        "the second response ends after one token",
        log_probs=-numbers(2, 2, 3, shift=0.5).square() - 0.1,
        teacher_log_probs=-9 * numbers(2, 2, 3, shift=2.0).square() - 0.3,
        mask=torch.tensor([[[1, 1, 1], [1, 0, 0]], [[1, 1, 0], [1, 1, 1]]]).bool(),
    ),
    case(
        "the padding holds what nobody would write",
        "Padding may hold -inf. -inf less -inf is NaN, also times 0. Choose with "
        "torch.where.",
        log_probs=[[[-0.5, -1.0, -float("inf")]]],
        teacher_log_probs=[[[-0.1, -2.0, -float("inf")]]],
        mask=[[[True, True, False]]],
    ),
)
CENTERED = (
    "You center the deltas within the response. The teacher judges each token by "
    "itself, and a response may be right throughout."
)
ONE_SIGN = (
    "k3 has one sign for all tokens: with a minus no token is pushed up, without it "
    "none down. A delta stands before the gradient of log pi. What stands there in the "
    "gradient of the KL?"
)
distillation_deltas.mistakes = f"""
(teacher_log_probs - log_probs).detach() => (teacher_log_probs - log_probs - \
torch.expm1(teacher_log_probs - log_probs)).detach() | {ONE_SIGN}
(teacher_log_probs - log_probs).detach() => (torch.expm1(teacher_log_probs - \
log_probs) - (teacher_log_probs - log_probs)).detach() | {ONE_SIGN}
(teacher_log_probs - log_probs).detach() => torch.expm1(teacher_log_probs - \
log_probs).detach() | This part of k3 makes another KL smaller, that of the teacher to \
the student. Which factor has the gradient of the KL of the student to the teacher?
mask, deltas, => mask, deltas - deltas.mean(dim=-1, keepdim=True), | {CENTERED}
torch.where(mask, deltas, 0.0) => torch.where(mask, deltas, 0.0) - torch.where(mask, \
deltas, 0.0).mean(dim=-2, keepdim=True) | You center the deltas within the group. The \
teacher judges each token by itself, and no group is asked.
 - log_probs => | You take the teacher's log-probability alone. The KL also holds the \
student's: without it, nothing keeps the student close to its teacher.
torch.where(mask, deltas, 0.0) => torch.where(mask, deltas, 0.0).sum(-1, \
keepdim=True).expand_as(log_probs) | Every token of a response gets the same \
delta. The teacher judges each by itself.
(teacher_log_probs - log_probs) => (log_probs - teacher_log_probs) | This is k1 \
itself: it pushes up what the teacher finds less likely than the student does, so the \
KL grows.
return (teacher_log_probs - log_probs).detach() | Padding gets a delta, too. \
Nobody wrote it: it gets 0.
"""
