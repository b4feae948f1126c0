"""Answers to the exercises of notebook 09: planted mistakes, and right ones."""

# name of the exercise -> (what a learner writes, words of the hint it must get)
PLANTED = {
    "response_mask": [
        (
            "is_eos = tokens.eq(eos)\nreturn ~(torch.cumsum(is_eos, dim=2) > 1)",
            "no second EOS ever comes",
        ),
        (
            "ended = torch.cumsum((tokens == eos).int(), dim=-1).bool()\nreturn ~ended",
            "drop the EOS itself",
        ),
        ("return tokens.ne(eos)", "keeps padding that is another token"),
        ("return tokens.ne(0)", "not where it stands"),
        (
            "seen = (tokens == eos).long()\nreturn torch.cumsum(seen, -1) - seen >= 1",
            "The other way round",
        ),
        (
            "first = (tokens == eos).int().argmax(dim=-1)\n"
            "return torch.arange(tokens.size(-1)) <= first.unsqueeze(-1)",
            "argmax gives 0",
        ),
        (
            "seen = (tokens == eos).int()\nreturn seen.cumsum(1) - seen == 0",
            "the EOS of one response ends another",
        ),
        (
            "seen = (tokens == 2).int()\nreturn seen.cumsum(-1) - seen == 0",
            "another token ends a response",
        ),
    ],
    "shifted_log_probs": [
        (
            "p = torch.log_softmax(logits, 2)\n"
            "return torch.gather(p, 2, tokens.unsqueeze(2))[:, :, 0]",
            "No shift",
        ),
        (
            "p = torch.log_softmax(logits, 2)\n"
            "return torch.gather(p, 2, tokens.unsqueeze(2))[:, 1:, 0]",
            "drop the first score but do not shift",
        ),
        (
            "p = torch.log_softmax(logits, 2)\n"
            "return torch.gather(p, 2, tokens.unsqueeze(2))[:, :-1, 0]",
            "drop the last score but do not shift",
        ),
        (
            "p = torch.log_softmax(logits[:, 1:], dim=-1)\n"
            "return p.gather(2, tokens[:, :-1, None])[:, :, 0]",
            "shift the wrong way",
        ),
        (
            "return logits[:, :-1].gather(2, tokens[:, 1:, None])[:, :, 0]",
            "raw logits",
        ),
        (
            "p = torch.softmax(logits[:, :-1], dim=2)\n"
            "return p.gather(2, tokens[:, 1:, None])[:, :, 0]",
            "These are probabilities",
        ),
        (
            "p = torch.log_softmax(logits[:, :-1], dim=2)\n"
            "return p.gather(2, tokens[:, 1:, None])[:, :, 0].sum(dim=1)",
            "sum over pos",
        ),
    ],
    "temperature_log_probs": [
        (
            "p = torch.log_softmax(logits, 2)\n"
            "return p.gather(2, tokens[:, :, None])[:, :, 0]",
            "do not depend on the temperature",
        ),
        (
            "p = torch.log_softmax(temperature * logits, 2)\n"
            "return p.gather(2, tokens[:, :, None])[:, :, 0]",
            "multiply by the temperature",
        ),
        (
            "p = torch.log_softmax(logits, 2) / temperature\n"
            "return p.gather(2, tokens[:, :, None])[:, :, 0]",
            "divide the log-probabilities",
        ),
        (
            "scaled = logits / temperature\n"
            "return torch.gather(scaled, 2, tokens[:, :, None])[:, :, 0]",
            "These are logits",
        ),
        (
            "p = torch.softmax(logits / temperature, 2)\n"
            "return p.gather(2, tokens[:, :, None])[:, :, 0]",
            "These are probabilities",
        ),
    ],
    "token_share_reward": [
        (
            "return torch.mean((responses == token).float(), dim=2)",
            "count padding too",
        ),
        (
            "hits = responses.eq(token) * mask\n"
            "return hits.float().sum(2) / responses.shape[2]",
            "width of the tensor",
        ),
        (
            "return torch.einsum('btp,btp->bt', (responses == token).float(), "
            "mask.float())",
            "This is a count",
        ),
        (
            "return responses.eq(token).sum(2) / mask.sum(2).clamp(min=1)",
            "hits in the padding",
        ),
        (
            "hits = responses.eq(token) * mask\nreturn hits.sum(2) / mask.sum(2)",
            "clamp(min=1)",
        ),
        (
            "share = (responses.eq(token) * mask).sum(2) / mask.sum(2).clamp(min=1)\n"
            "return share * responses.eq(2).any(2)",
            "the length limit cut it off",
        ),
    ],
}

# name of the exercise -> the right answer, written in another way than the course's
LOOPS = {
    "response_mask": (
        "mask = torch.zeros_like(tokens, dtype=torch.bool)\n"
        "for i, group in enumerate(tokens.tolist()):\n"
        "    for j, row in enumerate(group):\n"
        "        for t, token in enumerate(row):\n"
        "            mask[i, j, t] = True\n"
        "            if token == eos:\n                break\n"
        "return mask"
    ),
    "shifted_log_probs": (
        "rows = []\n"
        "for text, scores in zip(tokens, logits):\n"
        "    row = [torch.log_softmax(scores[t - 1], 0)[text[t]] "
        "for t in range(1, len(text))]\n"
        "    rows.append(torch.stack(row))\n"
        "return torch.stack(rows)"
    ),
    "temperature_log_probs": (
        "scaled = logits / temperature\n"
        "total = torch.logsumexp(scaled, dim=-1)\n"
        "picked = torch.gather(scaled, -1, tokens[..., None])[..., 0]\n"
        "return picked - total"
    ),
    "token_share_reward": (
        "out = torch.zeros(responses.shape[:2])\n"
        "for i in range(out.shape[0]):\n"
        "    for j in range(out.shape[1]):\n"
        "        kept = responses[i, j][mask[i, j]].tolist()\n"
        "        out[i, j] = kept.count(token) / len(kept) if kept else 0.0\n"
        "return out"
    ),
}
