"""Answers to the exercises of 02_policy, as learners write them.

Each function is named after its exercise. It yields every answer with words that
`check` must print: those of a wrong answer's hint, or that it "is right".
"""

from functools import partial

import torch

from grpo_course import (
    SortModel,
    compute_log_probs,
    compute_reward,
    generate_responses,
    sort_distance_reward,
    sort_exact_reward,
    sort_inclusion_ordering_reward,
)


def gather_log_probs():
    def pick(table, responses):
        full = table[:, None].expand(-1, responses.shape[1], -1, -1)
        return full.gather(3, responses[..., None])[..., 0]

    def softmax(logits):
        return logits.exp() / logits.exp().sum(-1, keepdim=True)

    def log_softmax(logits):
        return logits - logits.exp().sum(-1, keepdim=True).log()

    logp = torch.log_softmax
    yield "Without a trial axis", lambda x, ids: torch.gather(logp(x, 2), 2, ids)
    yield "raw logits", pick
    yield "normalize over pos", lambda x, ids: pick(logp(x, dim=1), ids)
    yield "softmax without the log", lambda x, ids: pick(softmax(x), ids)
    yield (
        "use log_softmax, which never leaves",
        lambda x, ids: torch.log(pick(torch.softmax(x, dim=2), ids)),
    )
    yield "log_softmax, which never leaves", lambda x, ids: pick(log_softmax(x), ids)
    yield "You sum over pos", lambda x, ids: pick(logp(x, dim=-1), ids).sum(dim=2)
    yield "no gradient reaches `logits`", lambda x, ids: pick(logp(x, -1).detach(), ids)

    def answer(logits, responses):
        table = logits - logits.logsumexp(-1, keepdim=True)
        rows = []
        for scores, group in zip(table, responses):
            places = torch.arange(len(scores))
            rows.append(torch.stack([scores[places, row] for row in group]))
        return torch.stack(rows)

    yield "is right", answer


def expected_reward():
    yield "A matrix product", lambda p, r: torch.matmul(p, r.t())
    yield "keeps an axis of size 1", lambda p, r: torch.sum(p * r, 1, True)
    yield "without weights", lambda p, r: r.sum(dim=1) / r.shape[1]
    yield "mixes prompts", lambda p, r: torch.einsum("br,br->r", p, r)
    yield "divide by the number of responses", lambda p, r: (r * p).sum(1) / r.shape[1]
    yield "does not depend on `response_probs`", lambda p, r: r.amax(dim=-1)

    def answer(response_probs, rewards):
        best = response_probs.argmax(1)
        return rewards[torch.arange(len(best)), best]

    yield "most likely response", answer
    yield (
        "is right",
        lambda response_probs, rewards: torch.stack(
            [
                sum(p * r for p, r in zip(ps, rs))
                for ps, rs in zip(response_probs, rewards)
            ]
        ),
    )


def naive_loss():
    def answer(log_probs, deltas):
        deltas = deltas.unsqueeze(-1)
        return torch.mean(log_probs * deltas)

    yield "minus sign is missing", answer
    yield (
        "You sum. The loss is the mean",
        lambda new, d: -torch.einsum("bt,btp->", d, new),
    )
    yield "wrong axis", lambda new, d: (-new * d).mean()
    yield "wrong axis", lambda new, d: -(d.unsqueeze(1).expand_as(new) * new).mean()

    def answer(log_probs, deltas):
        probs = torch.exp(log_probs)
        return -(probs * deltas[:, :, None]).mean()

    yield "You weight probabilities", answer

    def answer(log_probs, deltas):
        total = torch.tensor(log_probs.tolist())
        return -(total * deltas[..., None]).mean()

    yield "no gradient reaches `log_probs`", answer

    def answer(log_probs, deltas):
        each = (log_probs * deltas[..., None]).sum(dim=2)
        return -each.mean()

    yield "a long response counts more", answer

    def answer(log_probs, deltas):
        total, count = 0.0, 0
        for group, ds in zip(log_probs, deltas):
            for row, d in zip(group, ds):
                for logp in row:
                    total, count = total - d * logp, count + 1
        return total / count

    yield "is right", answer


def update(
    start,
    prompts,
    num_responses,
    *,
    sign=-1,
    paid=True,
    whole=True,
    seeded=True,
    reward_fn=sort_distance_reward,
):
    """An update as a learner may write it, with a knob for each mistake."""
    model, generator, optimizer = start()
    generator = generator if seeded else None
    responses = generate_responses(prompts, model, num_responses, generator)
    rewards = compute_reward(prompts, responses, reward_fn)
    deltas = rewards if paid else torch.ones_like(rewards)
    log_probs = compute_log_probs(prompts, responses, model)
    loss = sign * (deltas[..., None] * log_probs).mean()
    if not whole:
        return loss
    loss.backward()
    optimizer.step()
    return model(prompts).detach()


def group_loss():
    yield "sign", partial(update, whole=False, sign=1)
    exact = partial(update, reward_fn=sort_exact_reward)
    yield "You pay with another reward", partial(exact, whole=False)
    inclusion = partial(update, reward_fn=sort_inclusion_ordering_reward)
    yield "You pay with another reward", partial(inclusion, whole=False)
    yield "The rewards do not count", partial(update, whole=False, paid=False)
    yield (
        "nothing can be learned from it",
        torch.no_grad()(partial(update, whole=False)),
    )
    yield "other responses", partial(update, whole=False, seeded=False)

    def answer(start, prompts, num_responses):
        _, generator, optimizer = start()
        model = SortModel(5, 10, 3, 3, init_scale=0.1)  # of a cell above
        parts = (model, generator, optimizer)
        return update(lambda: parts, prompts, num_responses, whole=False)

    yield "not those of a cell above", answer

    def answer(start, prompts, num_responses):
        model, generator, _ = start()
        logits = model(prompts)
        rows = logits.softmax(dim=-1).flatten(0, 1)
        drawn = torch.multinomial(rows, num_responses, True, generator=generator)
        responses = drawn.T.reshape(num_responses, *prompts.shape).transpose(0, 1)
        rewards = compute_reward(prompts, responses, sort_distance_reward)
        table = logits.softmax(dim=-1).log_softmax(dim=-1)
        picked = table[:, None].expand(-1, num_responses, -1, -1)
        scores = picked.gather(-1, responses[..., None])[..., 0]
        return -(rewards[..., None] * scores).mean()

    yield "probabilities where logits belong", answer
    yield "is right", partial(update, whole=False)


def one_update():
    yield "sign", partial(update, sign=1)
    yield "The rewards do not count", partial(update, paid=False)

    def answer(start, prompts, num_responses):
        return start()[0](prompts).detach()

    yield "Nothing has moved", answer

    def answer(start, prompts, num_responses):
        loss = update(start, prompts, num_responses, whole=False)
        loss.backward()
        model, _, optimizer = start()
        optimizer.step()
        return model(prompts).detach()

    yield "each makes a new model", answer
    yield (
        "You return probabilities",
        lambda *given: update(*given).softmax(dim=-1),
    )
    yield "is right", update
