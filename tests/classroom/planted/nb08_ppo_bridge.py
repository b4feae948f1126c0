"""Answers to the exercises of 08_ppo_bridge, as learners write them.

Each function is named after its exercise. It yields every answer with words that
`check` must print: those of a wrong answer's hint, or that it "is right".
"""

from functools import partial

import torch
import torch.nn.functional as F


def td_errors():
    def answer(rewards, values, gamma):
        errors = rewards - values
        errors[:, :-1] += gamma * values[:, 1:]
        errors[:, -1] += gamma * values[:, -1]
        return errors

    yield "bootstrap beyond the end", answer

    def answer(rewards, values, gamma):
        last = rewards.shape[1]
        after = [values[:, (t + 1) % last] for t in range(last)]
        return rewards + gamma * torch.stack(after, dim=1) - values

    yield "sees the first value", answer

    def answer(rewards, values, gamma):
        errors = rewards - values
        errors[:, :-1] += values[:, 1:]
        return errors

    yield "gamma is missing", answer
    yield "next value is missing", lambda r, v, gamma: torch.sub(r, v)

    def answer(rewards, values, gamma):
        errors = values - rewards
        errors[:, :-1] -= gamma * values[:, 1:]
        return errors

    yield "sign is reversed", answer

    def answer(rewards, values, gamma):
        errors = gamma * rewards - values
        errors[:, :-1] += gamma * values[:, 1:]
        return errors

    yield "the token's own reward too", answer

    def answer(rewards, values, gamma):
        errors = rewards - gamma * values
        errors[:, :-1] += gamma * values[:, 1:]
        return errors

    yield "the token's own value too", answer

    def answer(rewards, values, gamma):
        errors = rewards + gamma * values
        errors[:, :-1] -= values[:, 1:]
        return errors

    yield "swapped the two values", answer

    def answer(rewards, values, gamma):
        before = torch.zeros_like(values)
        before[:, 1:] = values[:, :-1]
        return rewards + gamma * before - values

    yield "shifted the wrong way", answer

    def answer(rewards, values, gamma):
        errors = rewards - values
        errors[:, :-1] += 0.9 * values[:, 1:]
        return errors

    yield "written into your function", answer

    def answer(rewards, values, gamma):
        errors = torch.zeros_like(rewards)
        for i in range(len(rewards)):
            after = 0.0
            for t in reversed(range(rewards.shape[1])):
                errors[i, t] = rewards[i, t] + gamma * after - values[i, t]
                after = values[i, t]
        return errors

    yield "is right", answer


def generalized_advantages():
    def backwards(rewards, values, gamma, factor):
        """Each token's sum, found from the last token to the first."""
        found, total, after = [], 0, 0
        for t in reversed(range(rewards.shape[1])):
            error = rewards[:, t] + gamma * after - values[:, t]
            total, after = error + factor * total, values[:, t]
            found.append(total)
        return found

    def summed(rewards, values, gamma, factor):
        return torch.stack(backwards(rewards, values, gamma, factor)[::-1], dim=1)

    def answer(rewards, values, gamma, lam):
        out, total = torch.zeros_like(rewards), 0
        for t in range(rewards.shape[1]):
            error = rewards[:, t] - values[:, t]
            if t + 1 < rewards.shape[1]:
                error = error + gamma * values[:, t + 1]
            total = error + gamma * lam * total
            out[:, t] = total
        return out

    yield "runs forward", answer
    yield (
        "forgot gamma in the recursion",
        lambda r, v, gamma, lam: summed(r, v, gamma, lam),
    )
    yield "lam is missing", lambda r, v, gamma, lam: summed(r, v, gamma, gamma)
    yield (
        "the TD errors in it lack their gamma",
        lambda r, v, gamma, lam: summed(r, v, 1, gamma * lam),
    )

    def answer(rewards, values, gamma, lam):
        out, total = torch.zeros_like(rewards), 0
        last = rewards.shape[1] - 1
        for t in reversed(range(last + 1)):
            after = values[:, min(t + 1, last)]
            total = rewards[:, t] + gamma * after - values[:, t] + gamma * lam * total
            out[:, t] = total
        return out

    yield "bootstrap beyond the end", answer
    yield (
        "advantage plus value",
        lambda r, v, gamma, lam: summed(r, v, gamma, gamma * lam) + v,
    )

    def answer(rewards, values, gamma, lam):
        errors = rewards - values
        errors[:, :-1] += gamma * values[:, 1:]
        return errors

    yield "which is lam = 0", answer

    def answer(rewards, values, gamma, lam):
        left = rewards.clone()
        for t in reversed(range(rewards.shape[1] - 1)):
            left[:, t] += gamma * left[:, t + 1]
        return left - values

    yield "return minus value", answer
    yield (
        "Reverse them",
        lambda r, v, gamma, lam: torch.stack(
            backwards(r, v, gamma, gamma * lam), dim=1
        ),
    )

    def answer(rewards, values, gamma, lam):
        left = rewards.clone()
        for t in reversed(range(rewards.shape[1] - 1)):
            left[:, t] += left[:, t + 1]
        return left - values

    yield "without a discount", answer

    def answer(rewards, values, gamma, lam):
        out = summed(rewards, values, gamma, gamma * lam)
        return (out - out.mean()) / out.std()

    yield "deltas are whitened", answer
    yield (
        "written into your function",
        lambda r, v, gamma, lam: summed(r, v, 0.9, 0.9 * 0.6),
    )

    def answer(rewards, values, gamma, lam):
        out = torch.zeros_like(rewards)
        last = rewards.shape[1]
        for t in range(last):
            for later in range(t, last):
                error = rewards[:, later] - values[:, later]
                if later + 1 < last:
                    error = error + gamma * values[:, later + 1]
                out[:, t] += (gamma * lam) ** (later - t) * error
        return out

    yield "is right", answer


def masked_advantages():
    def backwards(rewards, values, gamma, lam, mask, bootstrap, step=1.0, anew=False):
        """One response after another; `step` is what a hidden token costs."""
        out = torch.zeros_like(rewards)
        for i in range(len(rewards)):
            total, after = 0.0, bootstrap[i]
            for t in reversed(range(rewards.shape[1])):
                if mask[i, t]:
                    error = rewards[i, t] + gamma * after - values[i, t]
                    total, after = error + gamma * lam * total, values[i, t]
                    out[i, t] = total
                elif anew:
                    total, after = 0.0, bootstrap[i]
                else:
                    total = step * total
        return out

    yield "is right", backwards

    def answer(rewards, values, gamma, lam, mask, bootstrap):
        out = torch.zeros_like(rewards)
        for i, keep in enumerate(mask):
            kept = torch.cat([values[i, keep], bootstrap[i : i + 1]])
            errors = rewards[i, keep] + gamma * kept[1:] - kept[:-1]
            power = torch.arange(len(errors))
            sums = [
                ((gamma * lam) ** power[: len(errors) - t] * errors[t:]).sum()
                for t in range(len(errors))
            ]
            if sums:
                out[i, keep] = torch.stack(sums)
        return out

    yield "is right", answer

    def answer(rewards, values, gamma, lam, mask, bootstrap):
        return backwards(rewards, values, gamma, lam, mask, 0 * bootstrap)

    yield "bootstrap is missing where a response was cut off", answer

    def answer(rewards, values, gamma, lam, mask, bootstrap):
        everything = torch.ones_like(mask)
        return mask * backwards(rewards, values, gamma, lam, everything, bootstrap)

    yield "A hidden token is a step", answer

    def answer(rewards, values, gamma, lam, mask, bootstrap):
        rewards, values = rewards * mask, values * mask
        everything = torch.ones_like(mask)
        return mask * backwards(rewards, values, gamma, lam, everything, bootstrap)

    yield "A hidden token is a step", answer

    def answer(rewards, values, gamma, lam, mask, bootstrap):
        return backwards(rewards, values, gamma, lam, mask, bootstrap, gamma * lam)

    yield "costs a factor of gamma times lam", answer

    def answer(rewards, values, gamma, lam, mask, bootstrap):
        return backwards(rewards, values, gamma, lam, mask, bootstrap, anew=True)

    yield "begins anew at a hole", answer

    def answer(rewards, values, gamma, lam, mask, bootstrap, after=None):
        delta = bootstrap
        after = bootstrap if after is None else after
        out = torch.zeros_like(rewards)
        for t in reversed(range(rewards.shape[1])):
            new = rewards[:, t] + gamma * after - values[:, t] + gamma * lam * delta
            delta = torch.where(mask[:, t], new, delta)
            after = torch.where(mask[:, t], values[:, t], after)
            out[:, t] = delta
        return torch.where(mask, out, torch.zeros(()))

    yield "enters twice", answer
    yield "sum begins with the bootstrap", partial(answer, after=torch.zeros(()))

    def answer(rewards, values, gamma, lam, mask, bootstrap):
        return backwards(rewards, values, gamma, 1.0, mask, bootstrap)

    yield "lam", answer


def bradley_terry_loss():
    yield "sign is missing", lambda good, bad: F.logsigmoid(good - bad).mean()
    yield "swapped the two", lambda good, bad: F.softplus(good - bad).mean()

    def answer(chosen, rejected):
        p = 1 / (1 + torch.exp(rejected - chosen))
        return -p.mean()

    yield "logarithm is missing", answer
    yield (
        "logarithm is missing",
        lambda good, bad: torch.mean(1 - torch.sigmoid(good - bad)),
    )
    yield "squared the difference", lambda good, bad: torch.mean((bad - good) ** 2)
    yield "minus the difference alone", lambda good, bad: (bad - good).mean()
    yield "sum over the pairs", lambda good, bad: F.softplus(bad - good).sum()
    yield "one number for each pair", lambda good, bad: F.softplus(bad - good)
    yield (
        "does both in one",
        lambda good, bad: -torch.log(torch.sigmoid(good - bad)).mean(),
    )

    def answer(chosen, rejected):
        total = 0
        for good, bad in zip(chosen, rejected):
            total = total + torch.logaddexp(torch.zeros(()), bad - good)
        return total / len(chosen)

    yield "is right", answer
