"""The exercises of 00_welcome."""

import torch
from torch.distributions import Categorical

from grpo_course.classroom.check import case, exercise
from grpo_course.lessons.exercises.shared import numbers, pick
from grpo_course.sort import exact_sorted_probability


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


class Dice(torch.nn.Module):
    """Logits for each of a few prompts, whatever these are."""

    def __init__(self, logits):
        super().__init__()
        self.logits = torch.nn.Parameter(logits.clone())

    def forward(self, prompts):
        return 1.0 * self.logits


def dice_of(batch, shift):
    def start():
        return Dice(numbers(batch, 3, 5, scale=0.5, shift=shift))

    start.__name__ = f"logits for {batch} prompt{'s' * (batch > 1)}"
    return start


def drawing(num_responses):
    """A `draw` without chance: another policy is answered by other responses."""

    def draw(policy, prompts):
        logits = policy(prompts).detach()[:, None]  # [batch 1 pos vocab]
        noise = numbers(num_responses, *logits.shape[-2:])
        return (logits + (20 * logits + 3 * noise).sin()).argmax(dim=-1)

    draw.__name__ = f"draw, {num_responses} responses"
    return draw


def chance_of_right(policy, prompts):
    with torch.no_grad():
        return exact_sorted_probability(policy, prompts)


def went(function, start, prompts, draw, num_steps, step_size):
    """What a training loop returns, each half by its name."""
    history = function(start(), prompts, draw, num_steps, step_size)
    if not isinstance(history, tuple):
        return history
    return dict(zip(("P(right answer)", "rewards"), history, strict=True))


def with_one_group(policy, prompts, draw, num_steps, step_size):
    """-> P(right answer) [step batch], rewards [step batch trial]"""
    right, seen, earned = prompts.sort(dim=-1).values, [], []
    optimizer = torch.optim.SGD(policy.parameters(), lr=step_size)
    responses = draw(policy, prompts)
    rewards = (responses == right[:, None]).float().sum(dim=-1)
    for _ in range(num_steps):
        loss = grpo_loss(policy(prompts), responses, rewards)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        seen.append(chance_of_right(policy, prompts))
        earned.append(rewards)
    return torch.stack(seen), torch.stack(earned)


@exercise("0.3", use=went, draft=with_one_group)
def train(policy, prompts, draw, num_steps, step_size):
    """-> P(right answer) [step batch], rewards [step batch trial]"""
    right, seen, earned = prompts.sort(dim=-1).values, [], []
    optimizer = torch.optim.SGD(policy.parameters(), lr=step_size)
    for _ in range(num_steps):
        responses = draw(policy, prompts)
        rewards = (responses == right[:, None]).float().sum(dim=-1)
        loss = grpo_loss(policy(prompts), responses, rewards)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        seen.append(chance_of_right(policy, prompts))
        earned.append(rewards)
    return torch.stack(seen), torch.stack(earned)


train.insight = (
    "Here the data are made by what is trained: whenever the weights change, so do the "
    "responses to learn from."
)
train.cases = (
    case(
        "three steps",
        policy=dice_of(1, 0.0),
        prompts=[[1, 0, 2]],
        draw=drawing(6),
        num_steps=3,
        step_size=2.0,
    ),
    case(
        "two prompts",
        policy=dice_of(2, 1.0),
        prompts=[[3, 2, 4], [1, 0, 1]],
        draw=drawing(5),
        num_steps=4,
        step_size=3.0,
    ),
    case(
        "short steps",
        policy=dice_of(1, 2.0),
        prompts=[[2, 0, 3]],
        draw=drawing(9),
        num_steps=6,
        step_size=0.5,
    ),
)
STILL = (
    "No step changes the policy. The order is zero_grad, backward, step: what would a "
    "zero_grad between backward and step take away?"
)
train.mistakes = f"""
responses = draw(policy, prompts) => responses = responses if seen else \
draw(policy, prompts) | All your steps learn from the same responses, which the \
policy wrote before its first step. Let it write new ones in each step.
rewards = (responses == right[:, None]).float().sum(dim=-1) => rewards = rewards if \
seen else (responses == right[:, None]).float().sum(dim=-1) | Your responses are new, but their \
rewards are still those of the first group. Judge each group itself: the line with \
rewards belongs into the loop, too.
optimizer.zero_grad() => | The gradients of all steps add up, so each step repeats \
all those before it. Zero them in each step, before backward().
loss.backward() => loss.backward(); optimizer.zero_grad() | {STILL}
range(num_steps) => range(1) | Your loop ends after its first step. Is the `return` \
indented too far?
earned.append(rewards) => earned.append((draw(policy, prompts) == \
right[:, None]).float().sum(dim=-1)) | The rewards that you note are those of the \
next group. Draw at the beginning of a step, and note what this step has learned from.
policy(prompts), responses => policy(prompts).detach().requires_grad_(), responses | \
{STILL}
"""
