"""Answers to the exercises of 06_training_loop, as learners write them.

Each function is named after its exercise. It yields every answer with words that
`check` must print: those of a wrong answer's hint, or that it "is right".
"""

import copy
from functools import partial

import torch

from grpo_course import (
    compute_deltas,
    compute_kl_penalty,
    compute_log_probs,
    compute_loss,
    compute_reward,
    generate_responses,
    sort_distance_reward,
)


def inner_step_loss():
    def clipped(new, old, deltas):
        r, d = torch.exp(new - old), deltas.unsqueeze(2)
        return -torch.min(r * d, r.clip(0.8, 1.2) * d).mean()

    def k3(new, other):
        gap = other - new
        return gap.exp() - gap - 1

    def unclipped(log_probs, old_log_probs, ref_log_probs, deltas, beta):
        r, d = torch.exp(log_probs - old_log_probs), deltas.unsqueeze(2)
        return (beta * k3(log_probs, ref_log_probs) - r * d).mean()

    def cut_off(log_probs, old_log_probs, ref_log_probs, deltas, beta):
        with torch.no_grad():
            kl = k3(log_probs, ref_log_probs).mean()
        return clipped(log_probs, old_log_probs, deltas) + beta * kl

    yield (
        "You subtract the KL",
        lambda new, old, ref, d, beta: (
            clipped(new, old, d) - beta * k3(new, ref).mean()
        ),
    )
    yield (
        "sum the KL over",
        lambda new, old, ref, d, beta: (
            clipped(new, old, d) + beta * k3(new, ref).sum(dim=-1).mean()
        ),
    )
    yield (
        "compares with pi_old",
        lambda new, old, ref, d, beta: (
            clipped(new, old, d) + beta * k3(new, old).mean()
        ),
    )
    yield (
        "divides by pi_ref",
        lambda new, old, ref, d, beta: (
            clipped(new, ref, d) + beta * k3(new, ref).mean()
        ),
    )
    yield (
        "are swapped",
        lambda new, old, ref, d, beta: (
            clipped(new, ref, d) + beta * k3(new, old).mean()
        ),
    )
    yield (
        "pi itself as pi_old",
        lambda new, old, ref, d, beta: (
            clipped(new, new.detach(), d) + beta * k3(new, ref).mean()
        ),
    )
    yield "Nothing is clipped", unclipped
    yield (
        "upside down",
        lambda new, old, ref, d, beta: (
            clipped(new, old, d) + beta * k3(ref, new).mean()
        ),
    )
    yield (
        "This KL is k1",
        lambda new, old, ref, d, beta: (
            clipped(new, old, d) + beta * torch.mean(new - ref)
        ),
    )
    yield (
        "beta is not used",
        lambda new, old, ref, d, beta: clipped(new, old, d) + k3(new, ref).mean(),
    )
    yield "The KL is missing", lambda new, old, ref, d, beta: clipped(new, old, d)
    yield "the KL is cut off", cut_off

    def answer(log_probs, old_log_probs, ref_log_probs, deltas, beta):
        total, count = 0.0, 0
        for b in range(log_probs.shape[0]):
            for t in range(log_probs.shape[1]):
                for p in range(log_probs.shape[2]):
                    r = (log_probs[b, t, p] - old_log_probs[b, t, p]).exp()
                    d = deltas[b, t]
                    kept = torch.minimum(r * d, r.clamp(0.8, 1.2) * d)
                    gap = ref_log_probs[b, t, p] - log_probs[b, t, p]
                    total = total - kept + beta * (gap.exp() - 1 - gap)
                    count += 1
        return total / count

    yield "is right", answer


def refresh_epochs():
    yield "Epoch 0 is", lambda n, k: [e for e in range(1, n) if e % k == 0]

    def answer(num_epochs, period):
        found, e = [], 0
        while e <= num_epochs:
            found.append(e)
            e += period
        return found

    yield "up to num_epochs", answer
    yield "Off by", lambda n, k: [e for e in range(n) if e % k == k - 1]
    yield "the period is not used", lambda n, k: [e for e in range(n)]
    yield "These are flags", lambda n, k: [not e % k for e in range(n)]
    yield "num_epochs copies", lambda n, k: [k * e for e in range(n)]

    def answer(num_epochs, period):
        epochs = []
        for epoch in range(num_epochs):
            if epoch % period == 0:
                epochs.append(epoch)
        return epochs

    yield "is right", answer


def bytes_kept():
    def answer(num_parameters, with_reference, with_critic):
        one = num_parameters * 2 + num_parameters * 8
        return one * (1 + with_critic) + 2 * num_parameters * with_reference

    yield "The gradient is missing", answer

    def answer(num_parameters, with_reference, with_critic):
        one = num_parameters * (2 + 2 + 2 * 2)
        return one * (1 + with_critic) + 2 * num_parameters * with_reference

    yield "two moments, each in 4", answer
    yield "Adam is missing", lambda n, r, c: n * 4 * (1 + c) + 2 * n * r
    yield "optimizer for the reference", lambda n, r, c: 12 * (1 + r + c) * n

    def answer(num_parameters, with_reference, with_critic):
        total = 12 * num_parameters
        if with_reference:
            total += 2 * num_parameters
        if with_critic:
            total *= 2
        total += 2 * num_parameters
        return total

    yield "full copy for pi_old", answer

    def answer(num_parameters, with_reference, with_critic):
        total = 12 * num_parameters
        if with_reference:
            total += 2 * num_parameters
        if with_critic:
            total += 2 * num_parameters
        return total

    yield "only weights for the critic", answer
    yield "The reference is missing", lambda n, r, c: 12 * n * (2 if c else 1)
    yield "always", lambda n, r, c: 26 * n

    def answer(num_parameters, with_reference, with_critic):
        per_weight = {"weight": 2, "gradient": 2, "first": 4, "second": 4}
        total = sum(per_weight.values()) * num_parameters
        if with_critic:
            total += sum(per_weight.values()) * num_parameters
        if with_reference:
            total += per_weight["weight"] * num_parameters
        return total

    yield "is right", answer


def epoch(
    start,
    prompts,
    num_steps,
    beta,
    *,
    mode="normalized_rewards",
    sign=1,
    copied=True,
    noted=True,
    fresh=False,
    zero=True,
    size=4,
    seeded=True,
):
    """One epoch as a learner may write it, with a knob for each mistake."""
    model, generator, optimizer = start()
    reference = copy.deepcopy(model) if copied else model
    losses = []
    for step in range(num_steps):
        if step == 0 or fresh:
            random = generator if seeded else None
            responses = generate_responses(prompts, model, size, random)
            rewards = compute_reward(prompts, responses, sort_distance_reward)
            deltas = compute_deltas(rewards, mode)
            old = compute_log_probs(prompts, responses, model).detach()
        new = compute_log_probs(prompts, responses, model)
        with torch.no_grad():
            ref = compute_log_probs(prompts, responses, reference)
        pi_old = old if noted else new.detach()
        loss = compute_loss(new, deltas, "clipped", pi_old)
        loss = loss + sign * beta * compute_kl_penalty(new, ref)
        if zero:
            optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return torch.tensor(losses)


def one_epoch():
    yield "as it is now", partial(epoch, copied=False)
    yield "You subtract the KL", partial(epoch, sign=-1)
    yield "always 1", partial(epoch, noted=False)
    yield "gradients of all steps add up", partial(epoch, zero=False)
    yield "raw rewards", partial(epoch, mode="rewards")
    yield "You sample in every step", partial(epoch, fresh=True)
    yield "draw four responses", partial(epoch, size=10)
    yield "hand the generator", partial(epoch, seeded=False)

    def scored_once(start, prompts, num_steps, beta):
        model, generator, optimizer = start()
        responses = generate_responses(prompts, model, 4, generator)
        rewards = compute_reward(prompts, responses, sort_distance_reward)
        deltas = compute_deltas(rewards, "normalized_rewards")
        new = compute_log_probs(prompts, responses, model)
        loss = compute_loss(new, deltas, "clipped", new.detach())
        losses = []
        for _ in range(num_steps):
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.detach())
        return torch.stack(losses)

    yield "Each backward uses up", scored_once
    yield "returns after the first step", lambda *args: partial(epoch)(*args)[:1]
    yield "is right", partial(epoch)


def train_by_hand():
    def answer(start, prompts, num_epochs, num_steps, period, beta, due=None):
        parts, losses = start(), []
        for number in range(num_epochs):
            if due(number, period) if due else number % period == 0:
                frozen = copy.deepcopy(parts[0])
            losses.append(inner(parts, frozen, prompts, num_steps, beta))
        return torch.cat(losses)

    def inner(parts, frozen, prompts, num_steps, beta):
        model, generator, optimizer = parts
        responses = generate_responses(prompts, model, 4, generator)
        rewards = compute_reward(prompts, responses, sort_distance_reward)
        deltas = compute_deltas(rewards, "normalized_rewards")
        old = compute_log_probs(prompts, responses, model).detach()
        ref = compute_log_probs(prompts, responses, frozen).detach()
        losses = []
        for _ in range(num_steps):
            new = compute_log_probs(prompts, responses, model)
            kl = compute_kl_penalty(new, ref)
            loss = compute_loss(new, deltas, "clipped", old) + beta * kl
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.detach())
        return torch.stack(losses)

    yield "copied once and never", partial(answer, due=lambda epoch, period: epoch == 0)
    yield "when the epoch began", partial(answer, due=lambda epoch, period: True)

    def forgetful(start, prompts, num_epochs, num_steps, period, beta):
        runs = [epoch(start, prompts, num_steps, beta) for _ in range(num_epochs)]
        return torch.cat(runs)

    yield "begins with a new model", forgetful
    yield (
        "one epoch too early",
        partial(answer, due=lambda e, p: e == 0 or (e + 1) % p == 0),
    )
    yield "those that need it", partial(answer, due=lambda e, p: e == 0 or e % p)
    yield (
        "two loops are swapped",
        lambda start, prompts, n, steps, *rest: answer(start, prompts, steps, n, *rest),
    )
    yield "losses of the last epoch", lambda *args: answer(*args)[-args[3] :]
    yield "last loss of each epoch", lambda *args: answer(*args)[args[3] - 1 :: args[3]]

    def once(start, prompts, num_epochs, num_steps, period, beta, noted=False):
        model, generator, optimizer = start()
        losses, old = [], None
        for number in range(num_epochs):
            if number % period == 0:
                frozen = copy.deepcopy(model)
            if number == 0 or noted:
                responses = generate_responses(prompts, model, 4, generator)
            rewards = compute_reward(prompts, responses, sort_distance_reward)
            deltas = compute_deltas(rewards, "normalized_rewards")
            with torch.no_grad():
                if old is None or not noted:
                    old = compute_log_probs(prompts, responses, model)
                ref = compute_log_probs(prompts, responses, frozen)
            for _ in range(num_steps):
                new = compute_log_probs(prompts, responses, model)
                loss = compute_loss(new, deltas, "clipped", old)
                loss = loss + beta * compute_kl_penalty(new, ref)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                losses.append(loss.item())
        return torch.tensor(losses)

    yield "use the responses of the first", once
    yield "Note it anew with each new rollout", partial(once, noted=True)
    yield "is right", answer
