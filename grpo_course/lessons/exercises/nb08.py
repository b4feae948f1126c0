"""The exercises of 08_ppo_bridge."""

import torch

from grpo_course.classroom.check import case, exercise
from grpo_course.lessons.exercises.shared import numbers

KNOBS = (
    "Only the knobs are new here. Is one of their numbers written into your function? "
    "Use the arguments."
)
RESPONSES = (
    ("a reward at the end", "", 0.9, 0.6, [[0.0, 0.0, 0.5]], [[0.25, 0.4, 0.3]]),
    (
        "as many responses as tokens",
        "",
        0.9,
        0.6,
        [[0.0, 1.0, 2.0], [0.5, 0.0, 1.0], [0.0, 0.0, 3.0]],
        [[0.5, 1.5, 1.0], [1.0, 0.2, 0.7], [2.0, 0.4, 0.9]],
    ),
    ("other knobs", KNOBS, 0.7, 1.0, [[0.0, 0.0, 0.5]], [[0.25, 0.4, 0.3]]),
    ("one token", "", 0.7, 0.5, [[2.0], [1.0]], [[0.5], [1.5]]),
)


@exercise("8.1")
def generalized_advantages(rewards, values, gamma, lam):
    """float [trial pos], float [trial pos], float, float -> float [trial pos]"""
    after = torch.zeros_like(values)
    after[:, :-1] = values[:, 1:]
    errors = rewards + gamma * after - values
    deltas, delta = torch.zeros_like(rewards), 0.0
    for t in reversed(range(rewards.shape[1])):
        delta = errors[:, t] + gamma * lam * delta
        deltas[:, t] = delta
    return deltas


generalized_advantages.insight = (
    "One pass from the end: each token's TD error plus gamma times lam of the "
    "advantage after it."
)
generalized_advantages.cases = tuple(
    case(description, hint, rewards=rewards, values=values, gamma=gamma, lam=lam)
    for description, hint, gamma, lam, rewards, values in RESPONSES
)
generalized_advantages.mistakes = """
errors[:, t] + gamma * lam * delta => gamma * lam * (errors[:, t] + delta) | You \
shrink the token's own TD error too. It counts in full: only the sum of what comes \
later is multiplied by gamma times lam.
lam * delta => delta | lam is missing: this is return minus value, which is lam = 1. \
Each step back multiplies the sum by gamma times lam.
gamma * lam * delta => lam * delta | You forgot gamma in the recursion: each step \
back multiplies the sum by gamma times lam.
range(rewards.shape[1]) => range(1, rewards.shape[1]) | Your loop leaves out the \
first token: range(last, 0, -1) stops before 0.
+ gamma * lam * delta => | These are the TD errors, which is lam = 0. Add what comes \
later, gamma times lam as much for each step.
reversed(range(rewards.shape[1])) => range(rewards.shape[1]) | Your sum runs forward: \
a token collects the errors before it. A token is answerable for what comes after; \
start at the end.
zeros_like(values) => clone(values) | You bootstrap beyond the end: after the last \
token there is no next value. Its TD error is reward minus value.
errors[:, t] + => rewards[:, t] + | You add up the rewards themselves. GAE adds up TD \
errors: what each token changed, next to what the critic expected.
deltas[:, t] = delta => deltas[:, t] = delta + values[:, t] | You return advantage \
plus value: that is the return, which is what the critic learns. The policy needs the \
advantage.
"""


# What torch says of a usual mistake, and what the learner reads in its place.
MEANING = {
    "scalar outputs": "a loss of several numbers",
    "'function'": "a function where its values belong",
}


def stepped(function, samples, num_steps):
    """The loss of each of a few steps on the same samples: what an answer is good \
for."""
    given, losses = samples(), []
    for _ in range(num_steps):
        try:
            loss = function(*given)
        except (RuntimeError, TypeError) as error:
            for text, meaning in MEANING.items():
                if text in str(error):
                    return meaning
            raise
        if isinstance(loss, float):
            return "a plain number"
        if not isinstance(loss, torch.Tensor) or loss.ndim:
            return loss
        if loss.requires_grad:
            return "a loss that still carries its graph"
        losses.append(loss.clone())
    return torch.stack(losses)


def samples_of(rate, optimizer, scale=1.0, shared=False):
    """What one rollout of two prompts, three responses, four tokens leaves behind."""

    def samples():
        logits = torch.nn.Parameter(numbers(2, 3, 4, 5))
        guesses = logits if shared else torch.nn.Parameter(numbers(2, 3, 4) - 0.3)
        tokens = (torch.arange(24) * 7 % 5).reshape(2, 3, 4, 1)

        def actor():
            return logits.log_softmax(-1).gather(-1, tokens).squeeze(-1)

        def critic():
            return guesses.sum(-1) if shared else 1.0 * guesses

        weights = [logits] if shared else [logits, guesses]
        # Neither is exactly where it was when the responses were sampled.
        with torch.no_grad():
            old = actor() + numbers(2, 3, 4, scale=0.3, shift=rate)
            old_values = critic() + numbers(3, 2, 4, scale=0.4).reshape(2, 3, 4)
        deltas = scale * numbers(4, 3, 2).reshape(2, 3, 4)
        return actor, critic, optimizer(weights, lr=rate), old, old_values, deltas

    sizes = "2 prompts, 3 responses to each, 4 tokens"
    samples.__name__ = f"{sizes}; optimizer {optimizer.__name__}, rate {rate:g}"
    return samples


@exercise("8.2", use=stepped)
def ppo_step(actor, critic, optimizer, old_log_probs, old_values, deltas):
    """function, function, optimizer, float [batch trial pos] three times -> loss []"""
    ratio = torch.exp(actor() - old_log_probs)
    clipped = ratio.clamp(0.8, 1.2)
    gain = torch.minimum(ratio * deltas, clipped * deltas).mean()
    targets = old_values + deltas
    value_loss = (critic() - targets).square().mean() / 2
    loss = -gain + 0.5 * value_loss
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.detach()


ppo_step.insight = (
    "One step moves two networks: the actor by GRPO's own clipped loss, with a delta "
    "for each token, the critic by regression on what turned out."
)
ppo_step.cases = (
    case("the loss of a step", samples=samples_of(0.1, torch.optim.SGD), num_steps=1),
    case(
        "the loss of each of four steps on the same samples",
        samples=samples_of(0.5, torch.optim.SGD),
        num_steps=4,
    ),
    case(
        "the loss of each of four steps of Adam",
        samples=samples_of(0.1, torch.optim.Adam),
        num_steps=4,
    ),
    case(
        "the loss of each of three steps with large deltas",
        samples=samples_of(0.05, torch.optim.Adam, scale=5.0),
        num_steps=3,
    ),
    case(
        "the loss of each of three steps, actor and critic on shared weights",
        samples=samples_of(0.05, torch.optim.Adam, shared=True),
        num_steps=3,
    ),
)
STILL = (
    "The loss is the same at each step, so no weight has moved. First zero the "
    "gradients, then loss.backward(), then optimizer.step(): is one missing, or out of "
    "order?"
)

SEVERAL = (
    "backward() needs a loss of one number, and yours has one for each token. Take the "
    "mean over all tokens in both parts, and mind the brackets: in "
    "ratio * deltas.mean() the mean is that of the deltas alone."
)
CALLED = (
    "actor and critic are functions without arguments. Call them: actor() gives the "
    "log-probabilities, and critic() the values."
)

ppo_step.mistakes = f"""
loss = -gain => loss = gain | You minimize the gain: the actor is trained backwards. \
What an optimizer minimizes is minus the gain.
old_values + deltas => critic() + deltas | Your target moves along with the critic: \
value and target differ by the delta, whatever the critic says, and it learns \
nothing. The target is made of the old values.
targets = old_values + deltas => targets = deltas | The critic would learn the \
deltas. It should learn what turned out: its old value plus the delta.
clipped * deltas).mean() => clipped * deltas) | {SEVERAL}
critic() => critic | {CALLED}
torch.minimum(ratio * deltas, clipped * deltas) => (ratio * deltas) | Nothing is \
clipped: take the smaller of the two products, ratio and clipped ratio, each times \
the delta.
optimizer.zero_grad() => | The gradients of all steps add up. Call \
optimizer.zero_grad() before each backward.
optimizer.step() => | {STILL}
.square().mean() / 2 => .square().mean() | One half is missing. The value loss is half \
of the mean squared difference, and c_V = 0.5 halves it once more.
torch.minimum => torch.maximum | You take the larger of the two products, so the clip \
lets through what it should stop. Take the smaller.
loss.detach() => loss | The loss still carries the graph that made it. Return \
loss.detach(), which keeps the number and lets go of the graph.
"""


# The draft: all prompts move by the same amount, and before they are compared.
def hasty_memory(rewards, usual):
    """float [seed batch trial], float [seed batch] -> the deltas, and the new usual"""
    usual = usual + 0.1 * (rewards - usual[..., None]).mean()
    return rewards - usual[..., None], usual


@exercise("8.3", draft=hasty_memory)
def remember(rewards, usual):
    """float [seed batch trial], float [seed batch] -> the deltas, and the new usual"""
    deltas = rewards - usual[..., None]
    return deltas, usual + 0.1 * deltas.mean(dim=-1)


remember.insight = (
    "A baseline that knows the prompt, and no network: each reward is compared with "
    "what its prompt usually earned, before it enters the memory."
)
remember.cases = (
    case("a response to each", rewards=[[[1.0], [3.0]]], usual=[[0.5, 2.0]]),
    case("several", rewards=[[[1.0, 2.0, 0.0], [3.0, 1.0, 2.0]]], usual=[[0.5, 2.5]]),
    case("two seeds", rewards=numbers(2, 2, 2), usual=numbers(2, 2, shift=1.0)),
)
remember.mistakes = """
deltas, usual => deltas - 0.1 * deltas.mean(dim=-1)[..., None], usual | Your memory \
already holds the reward that it is to judge, so a part of the surprise is lost. \
Compare first, remember afterwards.
rewards - usual[..., None] => rewards - usual[..., None, :] | usual lines up with the \
wrong axis. Give it an axis of length one for trial, at the end.
deltas.mean(dim=-1) => deltas.mean() | All prompts are remembered by the same amount. \
Each prompt of each seed has its own memory: take the mean over trial alone.
deltas.mean(dim=-1) => deltas.sum(dim=-1) | The more responses, the further your \
memory moves. Take the mean over trial.
usual + 0.1 * deltas => usual - 0.1 * deltas | Your memory moves away from what was \
earned. Add a tenth of the surprise.
0.1 * deltas => 0.1 * rewards | Your memory grows with every reward, even one that is \
as usual. Add a tenth of the surprise, not of the reward.
0.1 * deltas => deltas | Your memory holds the last rewards alone. Move it a tenth of \
the way.
deltas = rewards - usual[..., None] => deltas = rewards - rewards.mean(dim=(-2, -1), \
keepdim=True) | You subtract the mean of the batch. Subtract what each prompt usually \
earned.
0.1 * deltas => 0.9 * deltas | Your memory keeps a tenth of what it held. It should \
keep nine tenths, and move a tenth of the way.
"""
