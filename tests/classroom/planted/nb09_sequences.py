"""Answers to the exercises of 09_sequences, as learners write them.

Each function is named after its exercise. It yields every answer with words that
`check` must print: those of a wrong answer's hint, or that it "is right".
"""

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
