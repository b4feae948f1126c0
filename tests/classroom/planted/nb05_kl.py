"""Answers to the exercises of 05_kl, as learners write them.

Each function is named after its exercise. It yields every answer with words that
`check` must print: those of a wrong answer's hint, or that it "is right".
"""

import torch
import torch.nn.functional as F
from einops import reduce


def exact_kl_of():
    def answer(log_probs, ref_log_probs):
        ref = torch.exp(ref_log_probs)
        return torch.sum(ref * (ref_log_probs - log_probs), dim=-1)

    yield "the other direction", answer

    def answer(log_probs, ref_log_probs):
        kl = F.kl_div(log_probs, ref_log_probs, reduction="none", log_target=True)
        return kl.sum(dim=1)

    yield "the other direction", answer

    def answer(log_probs, ref_log_probs):
        ratio = log_probs - ref_log_probs
        return torch.einsum("bv,bv->b", ref_log_probs.exp(), ratio)

    yield "weigh with the reference", answer
    yield "weights are missing", lambda new, ref: torch.sum(new - ref, dim=1)

    def answer(log_probs, ref_log_probs):
        probs = log_probs.exp()
        return torch.mean(probs * (log_probs - ref_log_probs), dim=1)

    yield "the size of the vocabulary", answer

    def answer(log_probs, ref_log_probs):
        ratio = log_probs.exp() / ref_log_probs.exp()
        return (log_probs * ratio.log()).sum(1)

    yield "weigh with log-probabilities", answer

    def answer(log_probs, ref_log_probs):
        probs, ref = log_probs.exp(), ref_log_probs.exp()
        return torch.sum(probs * torch.log(ref / probs), dim=-1)

    yield "minus the KL", answer

    def answer(log_probs, ref_log_probs):
        terms = torch.exp(log_probs) * (log_probs - ref_log_probs)
        return terms.sum()

    yield "sum over the batch too", answer
    yield (
        "the cross-entropy",
        lambda new, ref: -torch.einsum("bv,bv->b", new.exp(), ref),
    )

    def answer(log_probs, ref_log_probs):
        with torch.no_grad():
            weights = log_probs.exp()
        return torch.einsum("bv,bv->b", weights, log_probs - ref_log_probs)

    yield "froze the weights", answer

    def answer(log_probs, ref_log_probs):
        totals = []
        for p, q in zip(log_probs, ref_log_probs):
            total = 0
            for x, y in zip(p, q):
                total = total + x.exp() * (x - y)
            totals.append(total)
        return torch.stack(totals)

    yield "is right", answer


def k3_estimate():
    def answer(log_probs, ref_log_probs):
        d = log_probs - ref_log_probs
        return torch.exp(d) - d - 1

    yield "k3 is upside down", answer

    def answer(log_probs, ref_log_probs):
        ratio = log_probs.exp() / ref_log_probs.exp()
        return ratio - 1 + ratio.log()

    yield "Only half of it", answer
    yield "That is k2", lambda new, ref: 0.5 * (ref - new).square()
    yield "That is k1", lambda new, ref: torch.sub(new, ref)

    def answer(log_probs, ref_log_probs):
        r = (ref_log_probs - log_probs).exp()
        return r - torch.log(r)

    yield "-1 is missing", answer

    def answer(log_probs, ref_log_probs):
        ratio = ref_log_probs.exp() / log_probs.exp()
        return ratio - 1 + ratio.log()

    yield "sign of the logarithm", answer

    def answer(log_probs, ref_log_probs):
        d = ref_log_probs - log_probs
        return -(torch.expm1(d) - d)

    yield "never negative", answer

    def answer(log_probs, ref_log_probs):
        ratio = ref_log_probs / log_probs
        return ratio - torch.log(ratio) - 1

    yield "quotient of log-probabilities", answer

    def answer(log_probs, ref_log_probs):
        d = (ref_log_probs - log_probs).detach()
        return torch.expm1(d) - d

    yield "no gradient reaches `log_probs`", answer

    def answer(log_probs, ref_log_probs):
        d = ref_log_probs - log_probs
        return torch.mean(d.exp() - d - 1)

    yield "average already", answer

    def answer(log_probs, ref_log_probs):
        ratio = ref_log_probs.exp() / log_probs.exp()
        return ratio - 1 - ratio.log()

    yield "exp comes last", answer

    def answer(log_probs, ref_log_probs):
        ratio = torch.exp(ref_log_probs - log_probs)
        return ratio - 1 - ratio.log()

    yield "is right", answer


def penalized_reward():
    def answer(rewards, log_probs, ref_log_probs, kl_penalty):
        gap = log_probs.detach() - ref_log_probs
        return rewards + kl_penalty * gap.sum(dim=2)

    yield "sign is wrong", answer

    def answer(rewards, log_probs, ref_log_probs, kl_penalty):
        gap = (log_probs - ref_log_probs).detach()
        return rewards - kl_penalty * reduce(gap, "b t p -> b t", "mean")

    yield "average over pos", answer

    def answer(rewards, log_probs, ref_log_probs, kl_penalty):
        d = (ref_log_probs - log_probs).detach()
        return rewards - kl_penalty * (d.exp() - d - 1).sum(dim=2)

    yield "put k3 into the reward", answer

    def answer(rewards, log_probs, ref_log_probs, kl_penalty):
        d = log_probs.detach() - ref_log_probs
        return rewards - kl_penalty * d.square().div(2).sum(dim=-1)

    yield "put k2 into the reward", answer

    def answer(rewards, log_probs, ref_log_probs, kl_penalty):
        with torch.no_grad():
            kl = log_probs.exp() * (log_probs - ref_log_probs)
            return rewards - kl_penalty * kl.sum(dim=2)

    yield "weigh by probability", answer

    def answer(rewards, log_probs, ref_log_probs, kl_penalty):
        with torch.no_grad():
            return rewards - (log_probs - ref_log_probs).sum(dim=2)

    yield "beta is missing", answer

    def answer(rewards, log_probs, ref_log_probs, kl_penalty):
        kl = torch.einsum("btp->bt", log_probs - ref_log_probs)
        return rewards - kl_penalty * kl

    yield "a gradient flows through the reward", answer

    def answer(rewards, log_probs, ref_log_probs, kl_penalty):
        judged = rewards.clone()
        batch, trial, pos = log_probs.shape
        for b in range(batch):
            for t in range(trial):
                for p in range(pos):
                    gap = log_probs[b, t, p] - ref_log_probs[b, t, p]
                    judged[b, t] -= kl_penalty * gap.item()
        return judged

    yield "is right", answer


def next_beta():
    def answer(beta, kl, target, gain):
        error = (target / kl - 1).clamp(-0.2, 0.2)
        return beta * (1 + gain * error)

    yield "pside down", answer

    def answer(beta, kl, target, gain):
        return beta * (1 + gain * (kl - target) / target)

    yield "not held back", answer

    def answer(beta, kl, target, gain):
        error = torch.clamp((kl - target) / target, -0.2, 0.2)
        return beta * (1 - error * gain)

    yield "The wrong way", answer

    def answer(beta, kl, target, gain):
        return beta * (1 + gain * torch.clip(kl - target, -0.2, 0.2))

    yield "The error is relative", answer

    def answer(beta, kl, target, gain):
        return beta + gain * torch.clip(kl / target - 1, -0.2, 0.2)

    yield "You add the error", answer

    def answer(beta, kl, target, gain):
        return beta * torch.clamp(kl / target, min=0.8, max=1.2)

    yield "The gain is missing", answer
    yield "beta grows in every step", lambda beta, kl, target, gain: beta * (1 + gain)

    def answer(beta, kl, target, gain):
        move = gain * (kl - target) / target
        return beta + beta * move.clip(-0.2, 0.2)

    yield "Clamp the error first", answer

    def answer(beta, kl, target, gain):
        return beta + beta * gain * torch.clip(kl / target, -0.2, 0.2)

    yield "The -1 is missing", answer

    def answer(beta, kl, target, gain):
        factor = torch.clamp(kl / target, min=0.8, max=1.2)
        return beta * (factor * gain + 1 - gain)

    yield "is right", answer
