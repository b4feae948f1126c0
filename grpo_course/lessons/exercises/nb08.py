"""The exercises of 08_ppo_bridge."""

import torch

from grpo_course import ppo
from grpo_course.classroom.check import case, exercise

KNOBS = "Only the knobs are new here. Is one of their numbers written into your function? Use the arguments."
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


td_errors.insight = "Each token is judged by what it changed: what it was paid, plus what is expected after it, minus what was expected before."
td_errors.cases = token_cases(gamma=(0.9, 0.9, 0.6, 1.0, 0.8))
td_errors.mistakes = """
zeros_like(values) => clone(values) | You bootstrap beyond the end: after the last token there is no next value. Its TD error is reward minus value.
return rewards + gamma * values.roll(-1, 1) - values | Your last token sees the first value: roll and index -1 wrap around. After the last token the next value is zero.
after[:, :-1] = values[:, 1:] => after[:, 1:] = values[:, :-1] | You shifted the wrong way: this adds the value of the token before. What is still to come is judged at the next token.
return rewards + gamma * values.roll(1, 1) - values | You shifted the wrong way: this adds the value of the token before, and the first token sees the last value. The next value of token t stands at t + 1.
return rewards + gamma * values - torch.nn.functional.pad(values[:, :-1], (1, 0)) | You compare with the value of the token before. A token is judged by what follows: gamma times the next value, minus its own.
gamma * after => after | gamma is missing: the next value is one token away and counts gamma times itself.
+ gamma * after => | The next value is missing. The reward still to come is judged by what the critic says one token later.
gamma * after => gamma * values | You add the token's own value, where the value of the next token belongs.
- values => | The token's own value is missing: subtract what the critic expected before.
rewards + gamma * after - values => rewards + gamma * values - after | You swapped the two values: add the next one, subtract the token's own.
rewards + gamma * after - values => values - rewards - gamma * after | The sign is reversed: a token after which more is to be expected has a positive TD error.
rewards + gamma * after => gamma * (rewards + after) | You discount the token's own reward too. It is paid now: only the next value is multiplied by gamma.
gamma * after - values => gamma * (after - values) | You discount the token's own value too. Only the next value is multiplied by gamma.
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


generalized_advantages.insight = "One pass from the end: each token's TD error plus gamma times lam of the advantage after it."
generalized_advantages.cases = token_cases(
    gamma=(0.9, 0.9, 0.7, 1.0, 0.7), lam=(0.6, 0.6, 1.0, 0.0, 0.5)
)
generalized_advantages.mistakes = """
errors[:, t] + gamma * lam * delta => gamma * lam * (errors[:, t] + delta) | You shrink the token's own TD error too. It counts in full: only the sum of what comes later is multiplied by gamma times lam.
lam * delta => delta | lam is missing: this is return minus value, which is lam = 1. Each step back multiplies the sum by gamma times lam.
gamma * lam * delta => lam * delta | You forgot gamma in the recursion: each step back multiplies the sum by gamma times lam.
gamma * lam * delta => (gamma + lam) * delta | You add gamma and lam. Each step back multiplies the sum by both: gamma times lam.
+ gamma * lam * delta => | These are the TD errors, which is lam = 0. Add what comes later, gamma times lam as much for each step.
gamma * after => after | Your recursion is right, but the TD errors in it lack their gamma.
reversed(range(rewards.shape[1])) => range(rewards.shape[1]) | Your sum runs forward: a token collects the errors before it. A token is answerable for what comes after; start at the end.
deltas[:, t] = delta => deltas[:, -1 - t] = delta | The numbers are right, but still in the order in which you found them, from the last token to the first. Reverse them.
zeros_like(values) => clone(values) | You bootstrap beyond the end: after the last token there is no next value. Its TD error is reward minus value.
errors[:, t] + => rewards[:, t] + | You add up the rewards themselves. GAE adds up TD errors: what each token changed, next to what the critic expected.
gamma * after => after && gamma * lam * delta => delta | This is return minus value without a discount, which is gamma = lam = 1. Build it from TD errors, so that both knobs can act.
deltas[:, t] = delta => deltas[:, t] = delta + values[:, t] | You return advantage plus value: that is the return, which is what the critic learns. The policy needs the advantage.
return _whitened(ppo.generalized_advantages(rewards, values, gamma, lam)) | Your deltas are whitened: mean zero, spread one. That comes later, over the whole batch; the critic's targets need them as they are.
"""


@exercise("8.3")
def masked_advantages(rewards, values, gamma, lam, mask, bootstrap):
    """float [trial pos] twice, float, float, bool [trial pos], float [trial]
    -> float [trial pos]"""
    deltas, delta, after = torch.zeros_like(rewards), torch.tensor(0.0), bootstrap
    for t in reversed(range(rewards.shape[1])):
        error = rewards[:, t] + gamma * after - values[:, t]
        delta = torch.where(mask[:, t], error + gamma * lam * delta, delta)
        after = torch.where(mask[:, t], values[:, t], after)
        deltas[:, t] = delta
    return torch.where(mask, deltas, 0.0)


HOLE = "A hidden token is a step in your recursion. The token before it must see the value and the sum of the next token that counts: carry both on where the mask is False."

masked_advantages.insight = "Only the policy's own tokens are steps. What follows the last one is zero where the response ended, and what the critic expects where it was cut off."
masked_advantages.cases = (
    case(
        "one that ended beside one that was cut off",
        rewards=[[0.0, 0.0, 2.0], [0.0, 0.5, 1.0]],
        values=[[1.0, 0.8, 1.5], [0.7, 1.2, 0.9]],
        gamma=0.9,
        lam=0.6,
        mask=[[True, True, True], [True, True, True]],
        bootstrap=[0.0, 1.4],
    ),
    case(
        "padding after a short response",
        "The second response was cut off behind its third token: there the bootstrap follows, and the padding is no step.",
        rewards=[[0.0, 2.0, 0.0, 0.0], [0.3, 0.0, 1.0, 0.0]],
        values=[[1.0, 0.8, 0.6, 0.2], [0.7, 1.2, 0.9, 5.0]],
        gamma=0.8,
        lam=0.7,
        mask=[[True, True, False, False], [True, True, True, False]],
        bootstrap=[0.0, 1.1],
    ),
    case(
        "the answer of a tool in the middle",
        rewards=[[0.0, 0.0, 0.0, 0.4, 2.0], [0.0, 1.0, 0.0, 0.0, 1.0]],
        values=[[1.0, 3.0, 2.0, 0.8, 1.5], [0.5, 0.6, 0.9, 4.0, 0.3]],
        gamma=0.7,
        lam=0.5,
        mask=[[True, False, False, True, True], [True, True, True, False, True]],
        bootstrap=[0.0, 0.6],
    ),
    case(
        "one response",
        "What stands at a hidden token does not count, neither its value nor its reward.",
        rewards=[[0.0, 1.0, 0.5]],
        values=[[0.4, 0.9, 0.2]],
        gamma=0.9,
        lam=0.8,
        mask=[[True, False, True]],
        bootstrap=[0.7],
    ),
    case(
        "a response without any token",
        rewards=[[0.0, 0.0], [1.0, 0.5]],
        values=[[1.0, 0.8], [0.5, 0.4]],
        gamma=1.0,
        lam=1.0,
        mask=[[False, False], [True, True]],
        bootstrap=[0.0, 2.0],
    ),
)
masked_advantages.mistakes = f"""
torch.tensor(0.0), bootstrap => torch.tensor(0.0), torch.zeros_like(bootstrap) | The bootstrap is missing where a response was cut off: the value after its last token is bootstrap, which is 0 for those that ended.
torch.tensor(0.0), bootstrap => bootstrap, bootstrap | The bootstrap enters twice: as the next value and as the sum to begin with. It is a value; the sum begins with zero.
torch.tensor(0.0), bootstrap => bootstrap, torch.zeros_like(bootstrap) | Your sum begins with the bootstrap. It is a value, which belongs into the last TD error; the sum begins with zero.
torch.where(mask[:, t], error + gamma * lam * delta, delta) => error + gamma * lam * delta && torch.where(mask[:, t], values[:, t], after) => values[:, t] | {HOLE}
torch.where(mask[:, t], error + gamma * lam * delta, delta) => error * mask[:, t] + gamma * lam * delta && torch.where(mask[:, t], values[:, t], after) => values[:, t] | {HOLE}
rewards[:, t] + gamma * after - values[:, t] => gamma * after + mask[:, t] * (rewards[:, t] - values[:, t]) && torch.where(mask[:, t], error + gamma * lam * delta, delta) => error + gamma * lam * delta && torch.where(mask[:, t], values[:, t], after) => mask[:, t] * values[:, t] | {HOLE}
torch.where(mask[:, t], values[:, t], after) => values[:, t] | You carry the sum across a hidden token, but not the value: the token before it sees the hidden token's value as its next one. Carry both on where the mask is False.
torch.where(mask[:, t], error + gamma * lam * delta, delta) => (error + gamma * lam * delta) * mask[:, t] && torch.where(mask[:, t], values[:, t], after) => values[:, t] | At a hidden token your sum falls to zero, and the token before it sees the hidden token's value. Carry the sum and the value on where the mask is False.
lam * delta, delta) => lam * delta, gamma * lam * delta) | A hidden token costs a factor of gamma times lam in your sum. Only tokens that count are steps: carry the sum on as it is.
lam * delta, delta) => lam * delta, 0.0) && values[:, t], after) => values[:, t], bootstrap) | Your recursion begins anew at a hole, as if the response ended before the tool answered. Carry the next value and the sum across it.
gamma * after => after | gamma is missing: what is expected after a token counts gamma times itself, bootstrap included.
torch.tensor(0.0), bootstrap => torch.tensor(0.0), bootstrap / gamma | The bootstrap is not discounted. It is the value that follows the last token, so it counts gamma times itself, as any next value does.
gamma * lam * delta => gamma * delta | lam is missing: each step back to a token that counts multiplies the sum by gamma times lam.
reversed(range(rewards.shape[1])) => range(rewards.shape[1]) | Your recursion runs forward: start at the last token.
torch.where(mask, deltas, 0.0) => deltas | Hidden tokens hold the sum that is carried across them. They were not the policy's choice: give them 0 at the end.
"""


@exercise("8.4", gradient="chosen rejected")
def bradley_terry_loss(chosen, rejected):
    """float [pair], float [pair] -> float []"""
    return -torch.nn.functional.logsigmoid(chosen - rejected).mean()


NO_LOG = "The logarithm is missing. The sigmoid is the probability of the choice; the loss is minus its logarithm, which does not stop pulling at a wrong pair."
SEPARATE = "You take a sigmoid of each reward by itself. A person only said which of the two is better, so only their difference counts: one sigmoid of chosen - rejected for each pair."

bradley_terry_loss.insight = "Only the difference counts, so a constant added to all rewards changes nothing, and pairs that are right already pull little."
bradley_terry_loss.cases = (
    case("three pairs", chosen=[1.0, 0.5, -1.0], rejected=[0.0, 1.5, -3.0]),
    case("rewards that tie", chosen=[2.0, 2.0], rejected=[2.0, 2.0]),
    case("one pair", chosen=[0.5], rejected=[0.25]),
    case(
        "a pair that the model gets very wrong",
        "The sigmoid of a very negative number rounds to 0, whose logarithm is infinite. A small number added inside the logarithm, or a clamp, only bounds the loss where it should pull most. torch.nn.functional.logsigmoid does both in one.",
        chosen=[-200.0],
        rejected=[200.0],
    ),
)
bradley_terry_loss.mistakes = f"""
-torch => torch | The sign is missing: this is the log-likelihood, which should grow. A loss is minus that.
chosen - rejected => rejected - chosen | You swapped the two: this teaches that the rejected response is better. It is chosen minus rejected.
nn.functional.logsigmoid => sigmoid | {NO_LOG}
return (1 - torch.sigmoid(chosen - rejected)).mean() | {NO_LOG}
return -(chosen.sigmoid().log() - rejected.sigmoid().log()).mean() | {SEPARATE}
return -(chosen.sigmoid().log() + (1 - rejected.sigmoid()).log()).mean() | {SEPARATE}
return -(chosen.sigmoid() - rejected.sigmoid()).log().mean() | {SEPARATE}
return -(chosen.sigmoid() - rejected.sigmoid()).mean() | {SEPARATE}
return (rejected - chosen).square().mean() | You squared the difference: this pulls both rewards together. The chosen one should be above the rejected one.
return (rejected - chosen).mean() | This is minus the difference alone: nothing ever stops it from growing. Take -log sigmoid of the difference.
return (1 - (chosen - rejected)).relu().mean() | This is a hinge: a pair with a margin of 1 pulls no more. Take -log sigmoid of the difference.
(chosen - rejected).mean() => ((chosen - rejected).mean()) | You average the differences before the loss: a pair that is very right hides one that is wrong. Each pair has a loss of its own, and the mean comes last.
.mean() => .sum() | You sum over the pairs. Take the mean, or the learning rate would depend on how many pairs there are.
.mean() => | You return one number for each pair. The loss is their mean.
"""
