"""The exercises of 08_ppo_bridge."""

import torch

from grpo_course import ppo
from grpo_course.classroom.check import case, exercise
from grpo_course.lessons.exercises.shared import numbers

KNOBS = (
    "Only the knobs are new here. Is one of their numbers written into your function? "
    "Use the arguments."
)
RESPONSES = (
    ("a reward at the end", "", [[0.0, 0.0, 0.5]], [[0.25, 0.4, 0.3]]),
    (
        "as many responses as tokens",
        "",
        [[0.0, 1.0, 2.0], [0.5, 0.0, 1.0], [0.0, 0.0, 3.0]],
        [[0.5, 1.5, 1.0], [1.0, 0.2, 0.7], [2.0, 0.4, 0.9]],
    ),
    ("other knobs", KNOBS, [[0.0, 0.0, 0.5]], [[0.25, 0.4, 0.3]]),
    ("nothing is discounted", "", [[0.0, 2.0, 0.0, 1.0]], [[0.3, 1.2, 0.8, 0.1]]),
    ("one token", "", [[2.0], [1.0]], [[0.5], [1.5]]),
)


def token_cases(**knobs):
    """The same responses for two exercises; of each knob one number a case."""
    settings = [dict(zip(knobs, each)) for each in zip(*knobs.values())]
    return tuple(
        case(description, hint, rewards=rewards, values=values, **setting)
        for (description, hint, rewards, values), setting in zip(RESPONSES, settings)
    )


@exercise("8.1")
def td_errors(rewards, values, gamma):
    """float [trial pos], float [trial pos], float -> float [trial pos]"""
    after = torch.zeros_like(values)
    after[:, :-1] = values[:, 1:]
    return rewards + gamma * after - values


td_errors.insight = (
    "Each token is judged by what it changed: what it was paid, plus what is expected "
    "after it, minus what was expected before."
)
td_errors.cases = token_cases(gamma=(0.9, 0.9, 0.6, 1.0, 0.8))
td_errors.mistakes = """
zeros_like(values) => clone(values) | You bootstrap beyond the end: after the last \
token there is no next value. Its TD error is reward minus value.
zeros_like(values) => ones_like(values) | After the last token nothing is expected: the \
next value is 0 there, and not 1.
rewards + gamma * after - values => gamma * (rewards + after - values) | \
You discount everything. Only the next value is multiplied by gamma.
return rewards + gamma * values.roll(-1, 1) - values | Your last token sees the first \
value: roll and index -1 wrap around. After the last token the next value is zero.
after[:, :-1] = values[:, 1:] => after[:, 1:] = values[:, :-1] | You shifted the \
wrong way: this adds the value of the token before. What is still to come is judged \
at the next token.
return rewards + gamma * values.roll(1, 1) - values | You shifted the wrong way: this \
adds the value of the token before, and the first token sees the last value. The next \
value of token t stands at t + 1.
return rewards + gamma * values - torch.nn.functional.pad(values[:, :-1], (1, 0)) | \
You compare with the value of the token before. A token is judged by what follows: \
gamma times the next value, minus its own.
gamma * after => after | gamma is missing: the next value is one token away and \
counts gamma times itself.
+ gamma * after => | The next value is missing. The reward still to come is judged by \
what the critic says one token later.
gamma * after => gamma * values | You add the token's own value, where the value of \
the next token belongs.
- values => | The token's own value is missing: subtract what the critic expected \
before.
rewards + gamma * after - values => rewards + gamma * values - after | You swapped \
the two values: add the next one, subtract the token's own.
rewards + gamma * after - values => gamma * after - values | The reward is missing: \
what was paid for the token counts, too.
rewards + gamma * after => gamma * (rewards + after) | You discount the token's own \
reward too. It is paid now: only the next value is multiplied by gamma.
gamma * after - values => gamma * (after - values) | You discount the token's own \
value too. Only the next value is multiplied by gamma.
return rewards + gamma * values.roll(-1) - values | roll without an axis runs over \
the whole batch: the last token of a response sees the first value of the next one. \
After the last token the next value is zero.
return gamma * torch.cat([values[:, 1:], rewards[:, -1:]], -1) - values | You took \
the last reward for a next value. A reward belongs to its own token: it is not \
discounted, and a token in the middle may be paid, too.
rewards + gamma * after - values => torch.cat([(rewards + gamma * after - values)[:, \
:-1], rewards[:, -1:]], -1) | Your last token keeps the whole reward. Nothing is \
expected after it, but something was before it: subtract its value, too.
after[:, :-1] = values[:, 1:] => after[:-1] = values[1:] | You shifted along the \
wrong axis: this adds the value of the next response. The next token stands along \
pos, the last axis.
zeros_like(values) => clone(values) && after[:, :-1] = values[:, 1:] => after[:, :-1] \
= values[:, 1:]; after[:, -1] = (values - rewards)[:, -1] / gamma | The last token is \
left at 0. Nothing is expected after it, so its TD error is reward minus value.
return rewards.flip(1).cumsum(1).flip(1) - values | This is return minus value: all \
later rewards count. A TD error looks one token ahead; what comes after that is in \
the next value.
rewards + gamma => torch.nn.functional.pad(rewards[:, 1:], (0, 1)) + gamma | You add \
the reward of the next token. A token's own reward is what was paid for it.
rewards + gamma => rewards.sum(-1, keepdim=True) + gamma | You pay the whole sum of the \
rewards to every token. A token's own reward is what was paid for it.
after[:, :-1] = values[:, 1:] => after[:, :-1] = values[:, 1:]; after[:, -1] = \
rewards[:, -1] | You put the last reward after the last token as well, so it counts \
twice. Nothing is expected there.
gamma * after => gamma ** torch.arange(1, rewards.shape[1] + 1) * after | You discount \
by the place of the token, gamma to the power of t. The next value is always one token \
away: multiply it by gamma.
return rewards[:, :-1] + gamma * values[:, 1:] - values[:, :-1] | The last token is \
missing. Nothing is expected after it, so its TD error is reward minus value.
"""


def _whitened(deltas):
    return (deltas - deltas.mean()) / (deltas.std() + 1e-8)


@exercise("8.2")
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
generalized_advantages.cases = token_cases(
    gamma=(0.9, 0.9, 0.7, 1.0, 0.7), lam=(0.6, 0.6, 1.0, 0.0, 0.5)
)
generalized_advantages.mistakes = """
errors[:, t] + gamma * lam * delta => gamma * lam * (errors[:, t] + delta) | You \
shrink the token's own TD error too. It counts in full: only the sum of what comes \
later is multiplied by gamma times lam.
lam * delta => delta | lam is missing: this is return minus value, which is lam = 1. \
Each step back multiplies the sum by gamma times lam.
gamma * lam * delta => lam * delta | You forgot gamma in the recursion: each step \
back multiplies the sum by gamma times lam.
gamma * lam * delta => delta | Nothing shrinks: this is the plain sum of the errors \
from each token on. Each step back multiplies it by gamma times lam.
gamma * after => gamma * lam * after | You put lam on the next value, too. Inside an \
error that value counts gamma times, whatever lam is: lam multiplies the errors ahead.
reversed(range(rewards.shape[1])) => range(rewards.shape[1]) && delta = errors[:, t] \
+ gamma * lam * delta => delta = errors[:, t] + gamma * lam * deltas[:, (t + 1) % \
rewards.shape[1]] | You walk forward, so the delta of the next token is still 0 when \
you ask for it, and only the errors are left. Start at the end.
range(rewards.shape[1]) => range(1, rewards.shape[1]) | Your loop leaves out the \
first token: range(last, 0, -1) stops before 0.
range(rewards.shape[1]) => range(rewards.shape[1] - 1) | Your loop leaves out the \
last token. Nothing comes after it, so its delta is its own error.
+ gamma * lam * delta => | These are the TD errors, which is lam = 0. Add what comes \
later, gamma times lam as much for each step.
gamma * after => after | Your recursion is right, but the TD errors in it lack their \
gamma.
reversed(range(rewards.shape[1])) => range(rewards.shape[1]) | Your sum runs forward: \
a token collects the errors before it. A token is answerable for what comes after; \
start at the end.
deltas[:, t] = delta => deltas[:, -1 - t] = delta | The numbers are right, but still \
in the order in which you found them, from the last token to the first. Reverse them.
gamma * after - values => gamma * after - values; errors[:, -1] += values[:, -1] | The \
error of the last token lacks its own value. Nothing is expected after it, but its \
value is subtracted all the same.
zeros_like(values) => clone(values) | You bootstrap beyond the end: after the last \
token there is no next value. Its TD error is reward minus value.
deltas, delta = torch.zeros_like(rewards), 0.0 => deltas, delta = errors.clone(), 0.0 \
&& range(rewards.shape[1]) => range(1, rewards.shape[1]) | Your loop leaves out the \
first token: range(last, 0, -1) stops before 0.
errors[:, t] + gamma => errors[:, t].mean() + gamma | You take the mean over the \
responses. Each response is a row of its own: carry on one delta for each.
errors[:, t] + gamma => (1 - gamma * lam) * errors[:, t] + gamma | You weigh the \
token's own error by 1 - gamma * lam, as in a moving average. In the recursion over TD \
errors it counts in full.
errors[:, t] + gamma => (1 - lam) * errors[:, t] + gamma | You weigh the token's own \
error by 1 - lam, as in a mean of returns. In the recursion over TD errors it counts \
in full.
errors[:, t] + => rewards[:, t] + | You add up the rewards themselves. GAE adds up TD \
errors: what each token changed, next to what the critic expected.
gamma * after => after && gamma * lam * delta => delta | This is return minus value \
without a discount, which is gamma = lam = 1. Build it from TD errors, so that both \
knobs can act.
deltas[:, t] = delta => deltas[:, t] = delta + values[:, t] | You return advantage \
plus value: that is the return, which is what the critic learns. The policy needs the \
advantage.
deltas[:, t] = delta => deltas[:, t] = delta; delta = errors[:, t] | You add the next \
error only. What comes later is a sum that grows on the way back: carry on the delta \
of the next token, not its error.
return (ppo.td_errors(rewards, values, gamma) * (gamma * lam) ** \
torch.arange(rewards.shape[1])).flip(1).cumsum(1).flip(1) | Your weights count from \
the first token. They count from the token that is judged: its own error counts in full.
range(rewards.shape[1]) => range(rewards.shape[0]) | Your loop walks over the \
responses, shape[0]. Walk over the tokens, shape[1].
return (found := ppo.generalized_advantages(rewards, values, gamma, lam)) - \
found.mean() | Your deltas are centered: their mean is zero. Nothing asks for it here: \
the critic's targets need them as they are.
return _whitened(ppo.generalized_advantages(rewards, values, gamma, lam)) | Your \
deltas are whitened: mean zero, spread one. Nothing asks for it here: the critic's \
targets need them as they are.
"""


# What torch says of a usual mistake, and what the learner reads in its place.
MEANING = {
    "scalar outputs": "a loss of several numbers",
    "'function'": "a function where its values belong",
}


def stepped(function, samples, num_steps):
    """The loss of each of a few steps on the same samples: what an answer is good for."""
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


@exercise("8.3", use=stepped)
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
+ 0.5 * value_loss => - 0.5 * value_loss | You subtract the value loss, so the critic \
is pushed away from its targets. In the objective it stands with a minus; in the loss \
it is added.
+ 0.5 * value_loss => + value_loss | The critic's part is twice what is asked: half \
of the mean squared error, and that times c_V = 0.5.
+ 0.5 * value_loss => | The value loss is missing, so the critic never learns.
old_values + deltas => critic() + deltas | Your target moves along with the critic: \
value and target differ by the delta, whatever the critic says, and it learns \
nothing. The target is made of the old values.
targets = old_values + deltas => targets = deltas | The critic would learn the \
deltas. It should learn what turned out: its old value plus the delta.
targets = old_values + deltas => targets = old_values | The critic would learn to \
stay as it was. What turned out is its old value plus the delta.
old_values + deltas => old_values - deltas | The sign is reversed: a positive delta \
means that more came than the critic had expected.
torch.minimum => torch.maximum | You take the larger of the two products. Take the \
smaller one: it is what stops the push on a token that has moved enough.
torch.minimum(ratio * deltas, clipped * deltas) => (clipped * deltas) | You take the \
clipped product alone. Take the smaller of both products. The clipped one has no \
gradient outside the range, so a bad token that has risen could never come back.
square().mean() => mean().square() | You square the mean, so errors of opposite sign \
cancel before the square. Square each error, then take the mean.
clipped * deltas).mean() => clipped * deltas).sum(-1).mean() | In the actor's part \
you add up the tokens of each response. Take the mean over all tokens.
clipped * deltas).mean() => clipped * deltas) | {SEVERAL}
square().mean() => square() | {SEVERAL}
torch.minimum(ratio * deltas, clipped * deltas) => ratio * deltas | {SEVERAL}
actor() => actor | {CALLED}
critic() => critic | {CALLED}
square().mean() => square().sum() | In the critic's part you add up all tokens. Take \
the mean over them.
square().mean() => abs().mean() | You take the absolute error. The value loss squares it.
(critic() - targets).square().mean() / 2 => torch.nn.functional.smooth_l1_loss(critic(), \
targets) | smooth_l1_loss squares small errors only. The value loss squares all of them.
clipped * deltas).mean() => clipped * deltas).sum(-1).mean() && square().mean() => \
square().sum(-1).mean() | You add up the tokens of each response. Take the mean over \
all tokens, in both parts.
clipped * deltas).mean() => clipped * deltas).sum() && square().mean() => \
square().sum() | You add up all tokens. Take the mean over them, in both parts.
gain = => targets, deltas = old_values + deltas, _whitened(deltas); gain = && targets \
= old_values + deltas => | You whiten the deltas. Nothing asks for it here: they come \
as they are to be used.
gain = => deltas = _whitened(deltas); gain = | You whiten the deltas. Nothing asks \
for it here: they come as they are to be used.
(critic() - targets).square().mean() => torch.maximum((critic() - targets).square(), \
(old_values + (critic() - old_values).clamp(-0.2, 0.2) - targets).square()).mean() | \
You clip the values, too, as some PPO code does. Here only the ratio is clipped: the \
value loss is half the mean squared error.
targets = old_values + deltas => targets = old_values + noted && gain = => noted, \
deltas = deltas, old_values + deltas - critic(); gain = | You make new deltas from \
the present critic. They were noted when the responses were sampled, and stay as they \
are: only the value loss asks critic().
torch.minimum(ratio * deltas, clipped * deltas) => (ratio * deltas) | Nothing is \
clipped: take the smaller of the two products, ratio and clipped ratio, each times \
the delta.
torch.minimum(ratio * deltas, clipped * deltas) => (torch.minimum(ratio, clipped) * \
deltas) | Multiply by the delta before you take the minimum: a negative delta turns \
the order round.
clamp(0.8, 1.2) => clamp(max=1.2) | You clip above only. A bad token whose ratio has \
fallen below 0.8 has moved enough, too: clip to 0.8 and 1.2.
clamp(0.8, 1.2) => clamp(-0.2, 0.2) | You clip the ratio to a range around 0. It is 1 \
where nothing has changed: clip it to 0.8 and 1.2.
torch.exp(actor() - old_log_probs) => torch.exp((actor() - old_log_probs).sum(-1, \
keepdim=True)) | You make one ratio of a whole response. Here each token has its own: \
leave out the sum.
gain = => deltas = deltas.mean(-1, keepdim=True); gain = | You give all tokens of a \
response the same delta. Here each token has its own, as it was noted.
clamp(0.8, 1.2) => clamp(0.8) | You clip below only. A good token whose ratio has risen \
above 1.2 has moved enough, too: clip to 0.8 and 1.2.
torch.exp(actor() - old_log_probs) => (actor() - old_log_probs) | The exp is missing: \
this is the logarithm of the ratio.
torch.exp(actor() - old_log_probs) => (actor() / old_log_probs) | You divide \
log-probabilities. The ratio is exp of their difference.
torch.exp(actor() - old_log_probs) => torch.exp(old_log_probs - actor()) | Your ratio \
is upside down: it is the new probability over the old one.
optimizer.zero_grad() => | The gradients of all steps add up. Call \
optimizer.zero_grad() before each backward.
optimizer.step() => | {STILL}
optimizer.step() => && optimizer.zero_grad() => optimizer.step(); \
optimizer.zero_grad() | {STILL}
torch.exp(actor() - old_log_probs) => torch.exp(actor().detach() - old_log_probs) | \
No gradient reaches the actor, so only the critic learns: neither actor() nor the \
ratio may be detached.
critic() - targets => critic().detach() - targets | The critic's values are detached, \
so only the actor learns. It is the targets that stay as they are.
actor() - old_log_probs => (now := actor()) - now.detach() | You compare the policy \
with itself, so every ratio is 1, and nothing is ever clipped. The old \
log-probabilities are the argument old_log_probs, noted when the responses were sampled.
torch.minimum(ratio * deltas, clipped * deltas) => (actor() * deltas) | This is the \
naive loss, delta times log pi. PPO's has the ratio in its place, and clips it.
loss.detach() => (-gain).detach() | You return the actor's part alone. Return the \
whole loss, without its graph.
loss.detach() => gain.detach() | You return the gain, the actor's part alone. Return \
the whole loss, without its graph.
loss = -gain + 0.5 * value_loss => loss = gain - 0.5 * value_loss | This is the \
objective, which is to grow. An optimizer makes a loss small: the loss is minus the \
objective.
loss = -gain + 0.5 * value_loss => loss = 0.5 * (value_loss - gain) | You halve the \
actor's part, too. c_V belongs to the value loss alone.
optimizer.step() => optimizer.step(); optimizer.step() | You step twice with the same \
gradient. One call of the function takes one step.
loss.backward() => loss.backward(); optimizer.zero_grad() | {STILL}
loss.detach() => loss.item() | .item() takes the number out of its tensor. Return \
loss.detach(), a tensor without the graph.
torch.minimum(ratio * deltas, clipped * deltas) => torch.minimum(ratio * deltas, \
(ratio * deltas).clamp(0.8, 1.2)) | You clip the product. Clip the ratio alone, then \
multiply it by the delta.
clipped * deltas).mean() => clipped * deltas).sum() | In the actor's part you add up \
all tokens. Take the mean over them.
clamp(0.8, 1.2) => clamp(0.9, 1.1) | You clip to 0.9 and 1.1. With an epsilon of 0.2 \
the range is 0.8 to 1.2.
targets = old_values + deltas => targets = old_values.add_(deltas) | add_ changes \
old_values itself, so the target is another at each step. Write old_values + deltas.
optimizer.zero_grad() => optimizer.zero_grad(); (-gain).backward(retain_graph=True); \
optimizer.step(); optimizer.zero_grad() && loss.backward() => (0.5 * \
value_loss).backward() | You take a step for each part. Add them up to one loss, and \
take one step.
return loss.detach() => return (-torch.minimum((now := torch.exp(actor() - \
old_log_probs)) * deltas, now.clamp(0.8, 1.2) * deltas).mean() + (critic() - \
targets).square().mean() / 4).detach() | You compute the loss once more, after the step. \
Return the one that the step was taken on.
loss.detach() => loss | The loss still carries the graph that made it. Return \
loss.detach(), which keeps the number and lets go of the graph.
"""
