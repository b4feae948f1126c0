"""Answers to the exercises of 09_sequences, as learners write them.

Each function is named after its exercise. It yields every answer with words that
`check` must print: those of a wrong answer's hint, or that it "is right".
"""

import numpy as np
import torch


def shifted_log_probs():
    def pick(scores, tokens):
        return torch.gather(scores, 2, tokens.unsqueeze(2))[:, :, 0]

    def logp(logits):
        return torch.log_softmax(logits, dim=2)

    yield "No shift", lambda x, ids: pick(logp(x), ids)
    yield (
        "drop the first score but do not shift",
        lambda x, ids: pick(logp(x), ids)[:, 1:],
    )
    yield (
        "drop the last score but do not shift",
        lambda x, ids: pick(logp(x), ids)[:, :-1],
    )
    yield "shift the wrong way", lambda x, ids: pick(logp(x[:, 1:]), ids[:, :-1])
    yield "raw logits", lambda x, ids: pick(x[:, :-1], ids[:, 1:])
    yield (
        "These are probabilities",
        lambda x, ids: pick(torch.softmax(x[:, :-1], dim=2), ids[:, 1:]),
    )
    yield "sum over pos", lambda x, ids: pick(logp(x[:, :-1]), ids[:, 1:]).sum(dim=1)

    def answer(logits, tokens):
        rows = []
        for text, scores in zip(tokens, logits):
            places = range(1, len(text))
            row = [torch.log_softmax(scores[t - 1], 0)[text[t]] for t in places]
            rows.append(torch.stack(row))
        return torch.stack(rows)

    yield "is right", answer


def temperature_log_probs():
    def pick(scores, tokens):
        return scores.gather(2, tokens[:, :, None])[:, :, 0]

    def logp(logits):
        return torch.log_softmax(logits, 2)

    yield "do not depend on the temperature", lambda x, ids, t: pick(logp(x), ids)
    yield "multiply by the temperature", lambda x, ids, t: pick(logp(t * x), ids)
    yield "divide the log-probabilities", lambda x, ids, t: pick(logp(x) / t, ids)
    yield "These are logits", lambda x, ids, t: pick(x / t, ids)
    yield (
        "These are probabilities",
        lambda x, ids, t: pick(torch.softmax(x / t, 2), ids),
    )

    def answer(logits, tokens, temperature):
        scaled = logits / temperature
        total = torch.logsumexp(scaled, dim=-1)
        picked = torch.gather(scaled, -1, tokens[..., None])[..., 0]
        return picked - total

    yield "is right", answer


def response_mask():
    def answer(tokens, eos):
        is_eos = tokens.eq(eos)
        return ~(torch.cumsum(is_eos, dim=2) > 1)

    yield "no second EOS ever comes", answer

    def answer(tokens, eos):
        ended = torch.cumsum((tokens == eos).int(), dim=-1).bool()
        return ~ended

    yield "drop the EOS itself", answer
    yield "keeps padding that is another token", lambda ids, eos: ids.ne(eos)
    yield "not where it stands", lambda ids, eos: ids.ne(0)

    def answer(tokens, eos):
        seen = (tokens == eos).long()
        return torch.cumsum(seen, -1) - seen >= 1

    yield "The other way round", answer

    def answer(tokens, eos):
        first = (tokens == eos).int().argmax(dim=-1)
        return torch.arange(tokens.size(-1)) <= first.unsqueeze(-1)

    yield "argmax gives 0", answer

    def answer(tokens, eos):
        seen = (tokens == eos).int()
        return seen.cumsum(1) - seen == 0

    yield "the EOS of one response ends another", answer

    def answer(tokens, eos):
        seen = (tokens == 2).int()
        return seen.cumsum(-1) - seen == 0

    yield "another token ends a response", answer

    def answer(tokens, eos):
        mask = torch.zeros_like(tokens, dtype=torch.bool)
        for i, group in enumerate(tokens.tolist()):
            for j, row in enumerate(group):
                for t, token in enumerate(row):
                    mask[i, j, t] = True
                    if token == eos:
                        break
        return mask

    yield "is right", answer


def token_share_reward():
    yield (
        "Padding takes part",
        lambda ids, m, token: torch.mean((ids == token).float(), dim=2),
    )

    def answer(responses, mask, token):
        hits = responses.eq(token) * mask
        return hits.float().sum(2) / responses.shape[2]

    yield "width of the tensor", answer
    yield (
        "This is a count",
        lambda ids, m, token: torch.einsum(
            "btp,btp->bt", (ids == token).float(), m.float()
        ),
    )
    yield (
        "hits in the padding",
        lambda ids, m, token: ids.eq(token).sum(2) / m.sum(2).clamp(min=1),
    )
    yield "clamp(min=1)", lambda ids, m, token: (ids.eq(token) * m).sum(2) / m.sum(2)

    def answer(responses, mask, token):
        share = (responses.eq(token) * mask).sum(2) / mask.sum(2).clamp(min=1)
        return share * responses.eq(2).any(2)

    yield "the length limit cut it off", answer

    def answer(responses, mask, token):
        out = torch.zeros(responses.shape[:2])
        for i in range(out.shape[0]):
            for j in range(out.shape[1]):
                kept = responses[i, j][mask[i, j]].tolist()
                out[i, j] = kept.count(token) / len(kept) if kept else 0.0
        return out

    yield "is right", answer


def aggregated(per_token, mask, aggregation):
    kept = per_token.masked_fill(~mask, 0.0)
    if aggregation == "token_mean":
        return kept.sum() / mask.sum()
    return torch.stack(
        [kept[i, j].sum() / mask[i, j].sum() for i, j in np.ndindex(mask.shape[:2])]
    ).mean()


def clipped(new, old, deltas, mask, *, low=0.8, high=1.2, hidden=True, sign=-1):
    """The clipped loss of each token, with a knob for each mistake."""
    if hidden:
        new, old = (torch.where(mask, each, torch.zeros(())) for each in (new, old))
    r, d = torch.exp(new - old), deltas.unsqueeze(-1)
    return sign * torch.min(r * d, r.clip(low, high) * d)


def k3(new, ref, mask, *, hidden=True):
    if hidden:
        new, ref = (torch.where(mask, each, torch.zeros(())) for each in (new, ref))
    return torch.exp(ref - new) - 1 - (ref - new)


def masked_clip_loss():
    def with_knobs(**knobs):
        return lambda new, old, d, mask, how: aggregated(
            clipped(new, old, d, mask, **knobs), mask, how
        )

    yield "Choose before exp", with_knobs(hidden=False)
    yield "Nothing is clipped", with_knobs(low=0.0, high=99.0)
    yield "a minus sign is wrong", with_knobs(sign=1)
    yield "on one side only", with_knobs(low=0.0)
    yield (
        "the delta still counts there",
        lambda new, old, d, mask, how: (
            clipped(new, old, d, mask).sum() / mask.sum()
            if how == "token_mean"
            else (clipped(new, old, d, mask).sum(2) / mask.sum(2)).mean()
        ),
    )
    yield (
        "the width of the tensor",
        lambda new, old, d, mask, how: (clipped(new, old, d, mask) * mask).mean(),
    )
    yield (
        "the token mean whatever",
        lambda new, old, d, mask, how: aggregated(
            clipped(new, old, d, mask), mask, "token_mean"
        ),
    )
    yield (
        "the sequence mean whatever",
        lambda new, old, d, mask, how: aggregated(
            clipped(new, old, d, mask), mask, "sequence_mean"
        ),
    )
    yield "is right", with_knobs()


def loss_with_kl():
    def mean(per_token, mask):
        return aggregated(per_token, mask, "sequence_mean")

    yield (
        "Choose before exp",
        lambda loss, new, ref, mask, beta: (
            loss + beta * mean(k3(new, ref, mask, hidden=False), mask)
        ),
    )
    yield (
        "You subtract the KL",
        lambda loss, new, ref, mask, beta: loss - beta * mean(k3(new, ref, mask), mask),
    )
    yield (
        "k3 upside down",
        lambda loss, new, ref, mask, beta: loss + beta * mean(k3(ref, new, mask), mask),
    )
    yield (
        "You sum the KL over pos",
        lambda loss, new, ref, mask, beta: (
            loss + beta * k3(new, ref, mask).sum(-1).mean()
        ),
    )
    yield (
        "divided by the width",
        lambda loss, new, ref, mask, beta: loss + beta * k3(new, ref, mask).mean(),
    )
    yield (
        "This is the token mean",
        lambda loss, new, ref, mask, beta: (
            loss + beta * aggregated(k3(new, ref, mask), mask, "token_mean")
        ),
    )
    yield (
        "This KL is k1",
        lambda loss, new, ref, mask, beta: (
            loss + beta * mean((new - ref).masked_fill(~mask, 0.0), mask)
        ),
    )
    yield (
        "beta is not used",
        lambda loss, new, ref, mask, beta: loss + mean(k3(new, ref, mask), mask),
    )
    yield (
        "is right",
        lambda loss, new, ref, mask, beta: beta * mean(k3(new, ref, mask), mask) + loss,
    )


def masked_loss():
    def with_knobs(shift=1, strict=True, swap=False, sign=1, how="sequence_mean", **to):
        def answer(logits, tokens, old, ref, deltas, eos, beta):
            width = tokens.shape[-1]
            start = width - old.shape[-1]
            response = tokens[:, :, start:]
            before = logits[:, :, start - shift : width - shift]
            new = -torch.nn.functional.cross_entropy(
                before.movedim(-1, 1), response, reduction="none"
            )
            ended = (response == eos).cumsum(-1)
            mask = (ended - (response == eos).long() if strict else ended) < 1
            old, ref = (ref, old) if swap else (old, ref)
            per_token = clipped(new, old, deltas, mask, **to)
            return aggregated(
                per_token + sign * beta * k3(new, ref, mask, **to), mask, how
            )

        return answer

    yield "No shift", with_knobs(shift=0)
    yield "drop the EOS itself", with_knobs(strict=False)
    yield "pi_old and pi_ref are swapped", with_knobs(swap=True)
    yield "You subtract the KL", with_knobs(sign=-1)
    yield "The KL is missing", with_knobs(sign=0)
    yield "This is the token mean", with_knobs(how="token_mean")
    yield "Choose before exp", with_knobs(hidden=False)
    yield "is right", with_knobs()
