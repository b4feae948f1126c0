"""Answers to the exercises of 12_gsm8k_grpo, as learners write them.

Each function is named after its exercise. It yields every answer with words that
`check` must print: those of a wrong answer's hint, or that it "is right".
"""

import torch


def response_log_probs():
    def pick(scores, tokens):
        return scores.gather(-1, tokens[..., None]).squeeze(-1)

    def logp(logits):
        return logits.log_softmax(-1)

    yield "have read it already", lambda x, ids, n: pick(logp(x[:, n:]), ids[:, n:])
    yield (
        "lose the first response token",
        lambda x, ids, n: pick(logp(x[:, n:-1]), ids[:, n + 1 :]),
    )
    yield (
        "score the prompt as well",
        lambda x, ids, n: pick(logp(x[:, :-1]), ids[:, 1:]),
    )
    yield (
        "sum over pos",
        lambda x, ids, n: pick(logp(x[:, n - 1 : -1]), ids[:, n:]).sum(1),
    )
    yield "raw logits", lambda x, ids, n: pick(x[:, n - 1 : -1], ids[:, n:])
    yield (
        "shift the logits and the tokens",
        lambda x, ids, n: pick(logp(x[:, n - 1 : -1]), ids[:, n - 1 : -1]),
    )
    yield (
        "also drops a batch, trial or pos axis",
        lambda x, ids, n: logp(x[:, n - 1 : -1]).gather(-1, ids[:, n:, None]).squeeze(),
    )

    def answer(logits, tokens, prompt_length):
        rows = []
        for row, text in zip(logits, tokens):
            places = range(prompt_length, len(text))
            scores = [row[t - 1].log_softmax(0)[text[t]] for t in places]
            rows.append(torch.stack(scores))
        return torch.stack(rows)

    yield "is right", answer
