"""The exercises of 00_welcome."""

import torch
from torch.distributions import Categorical

from grpo_course.classroom.check import case, exercise
from grpo_course.lessons.exercises.shared import pick


@exercise("0.1", tolerance=1e-3)  # with or without the small number
def group_deltas(rewards):
    """float [batch trial] -> float [batch trial]"""
    mean = rewards.mean(dim=-1, keepdim=True)
    spread = rewards.std(dim=-1, keepdim=True)
    return (rewards - mean) / (spread + 1e-4)


group_deltas.insight = (
    "Axes have names in this course: one row of rewards is one group, the responses to "
    "one prompt, and each row is compared with itself alone."
)
group_deltas.cases = (
    case("two groups", rewards=[[0.0, 1.0, 2.0], [4.0, 4.0, 7.0]]),
    case("as many groups as responses", rewards=[[1.0, 3.0], [5.0, -1.0]]),
    case("four responses", rewards=[[0.0, 0.0, 0.0, 3.0]]),
    case(
        "a group in which all earn the same",
        "All of this group earn the same, so its spread is zero, and zero divided by "
        "zero is not a number. Add a small number to the spread.",
        rewards=[[2.0, 2.0, 2.0], [0.0, 1.0, 2.0]],
    ),
)
group_deltas.mistakes = """
return (rewards - rewards.mean()) / (rewards.std() + 1e-4) | You compare with the mean \
and the spread of the whole batch, across prompts. Each row is a group of its own: say \
along which axis, and keep it.
mean(dim=-1, keepdim=True) => mean() | You subtract the mean of the whole batch, \
across prompts. Each row is a group with its own mean: say along which axis.
std(dim=-1, keepdim=True) => std() | You divide by the spread of the whole batch, \
across prompts. Each row is a group with its own spread: say along which axis.
return rewards - rewards.mean(-1, keepdim=True) | The division is missing: subtract \
the mean, then divide by the group's standard deviation.
return rewards / (rewards.std(-1, keepdim=True) + 1e-4) | The mean is missing: \
subtract the group's mean before you divide by its spread.
(rewards - mean) / => rewards - mean / | Brackets are missing: only the mean is \
divided by the spread. Subtract the mean first, and divide the difference.
rewards - mean => mean - rewards | The sign is wrong: who earns more than the mean has \
a positive delta.
/ (spread + 1e-4) => / spread + 1e-4 | The first group has a spread of zero, and you \
divide by it. Add the small number to the spread, inside brackets.
std(dim=-1 => std(correction=0, dim=-1 | You divide the squares by G, as correction=0 \
or unbiased=False does. The standard deviation of step 5 divides them by G - 1, as \
rewards.std does by itself.
"""


@exercise("0.2", gradient="logits", tolerance=1e-3)
def grpo_loss(logits, responses, rewards):
    """[batch pos vocab], int [batch trial pos], [batch trial] -> scalar"""
    deltas = group_deltas(rewards)
    log_probs = Categorical(logits=logits[:, None]).log_prob(responses)
    return -(deltas[..., None] * log_probs).mean()


def some(seed, batch, trial, pos=3, vocab=4):
    """Logits, responses and rewards of several groups."""
    generator = torch.Generator().manual_seed(seed)
    return {
        "logits": torch.randn(batch, pos, vocab, generator=generator),
        "responses": torch.randint(vocab, (batch, trial, pos), generator=generator),
        "rewards": torch.randint(4, (batch, trial), generator=generator).float(),
    }


def _scored_along(axis, logits, responses):
    """The logits of the responses, normalized along a wrong axis."""
    tables = logits.log_softmax(axis)[:, None].expand(*responses.shape, -1)
    return pick(tables, responses)


grpo_loss.insight = (
    "Each response is weighed with its delta, and only the gradient of the result has "
    "a meaning: it lifts the numbers of responses that beat their group. (The logits "
    "in place of log-probabilities would give the same, because the deltas of a group "
    "add up to zero.)"
)
grpo_loss.cases = (
    case("two prompts, five responses each", **some(0, 2, 5)),
    case("as many prompts as responses", **some(1, 3, 3)),
    case("one prompt", **some(2, 1, 6)),
    case(
        "a group in which all earn the same",
        "All of one group earn the same, so its spread is zero. Use group_deltas, "
        "which adds a small number.",
        **some(3, 2, 4) | {"rewards": torch.tensor([[1.0] * 4, [0.0, 1.0, 2.0, 1.0]])},
    ),
)
grpo_loss.mistakes = """
-(deltas => (deltas | The sign is wrong. An optimizer lowers the loss, so good \
responses become likelier only with a minus before it.
deltas[..., None] * => rewards[..., None] * | You weigh with the rewards. Weigh with \
the deltas, which compare each response with its group.
log_probs).mean() => log_probs).sum() | You take the sum. Take the mean, so that the \
size of a step does not depend on how many responses there are.
log_probs).mean() => log_probs.exp()).mean() | You push the probabilities. Push their \
logarithms, which log_prob gives you.
deltas[..., None] * log_probs => deltas * log_probs.sum(-1) | You add the three \
log-probabilities of a response before you take the mean, which makes the loss three \
times as large. Give the deltas an axis for pos, and take the mean over all numbers.
return -(group_deltas(rewards)[..., None] * _scored_along(1, logits, \
responses)).mean() | You normalize the logits along pos. The numbers that one position \
may hold are the last axis: Categorical does it there, or log_softmax(-1).
group_deltas(rewards) => rewards - rewards.mean(dim=-1, keepdim=True) | Your deltas \
are not divided by the spread of their group. Use group_deltas, as you wrote it.
-(deltas[..., None] * log_probs).mean() => -(deltas.mean() * log_probs.mean()) | You \
take both means before you multiply. The deltas of a group add up to zero, so nothing \
is left. Multiply first, each response by its own delta.
logits[:, None] => logits[None] | The logits need an axis of size 1 for trial, after \
batch. As it is, the dice of one prompt meet the responses of another.
"""
