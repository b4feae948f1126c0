"""Answers to the exercises of 07_zero_loss, as learners write them.

Each function is named after its exercise. It yields every answer with words that
`check` must print: those of a wrong answer's hint, or that it "is right".
"""

import torch
from einops import repeat


def gradient_by_log_probs():
    yield "zero everywhere", lambda d, m: torch.zeros_like(m.float())

    def answer(deltas, mask):
        n = mask.sum(2, keepdim=True).clamp(min=1)
        return deltas[:, :, None] * mask / n / deltas.numel()

    yield "sign is reversed", answer

    def answer(deltas, mask):
        batch, trial = deltas.shape
        return -deltas.unsqueeze(-1) * mask.float() / (batch * trial)

    yield "length is missing", answer

    def answer(deltas, mask):
        n = mask.sum(dim=2).clamp(min=1)
        return torch.einsum("bt,btp->btp", -deltas / n, mask.float())

    yield "mean over responses is missing", answer

    def answer(deltas, mask):
        n = mask.sum(dim=2).clamp(min=1) * deltas.shape[1]
        return torch.einsum("bt,btp->btp", -deltas / n, mask.float())

    yield "divide by G alone", answer

    def answer(deltas, mask):
        n = mask.sum(-1).clamp(min=1) * deltas.numel()
        return repeat(-deltas / n, "b t -> b t p", p=mask.shape[-1])

    yield "Padding gets a gradient", answer
    yield "belongs to the token mean", lambda d, m: -(m / m.sum()) * d[..., None]

    def answer(deltas, mask):
        b, t, p = mask.shape
        return -deltas[..., None] * mask / (b * t * p)

    yield "width of the tensor", answer

    def answer(deltas, mask):
        weights = mask / mask.sum(-1, keepdim=True)
        return -weights * deltas[..., None] / deltas.numel()

    yield "makes 0/0", answer

    def answer(deltas, mask):
        out = torch.zeros(mask.shape)
        batch, trial = deltas.shape
        for b in range(batch):
            for t in range(trial):
                tokens = mask[b, t].nonzero().flatten()
                for p in tokens:
                    out[b, t, p] = -deltas[b, t] / len(tokens) / (batch * trial)
        return out

    yield "is right", answer


def find_tied_groups():
    yield "all are wrong", lambda r: r.abs().sum(dim=1) == 0
    yield "all are right", lambda r: r.eq(1).all(dim=1)
    yield "other way round", lambda r: (r != r[:, :1]).any(dim=1)
    yield "across prompts", lambda r: (r == r[:1]).all(dim=0)
    yield "One answer", lambda r: (r == r[:, :1]).all()
    yield "first and the last", lambda r: r[:, 0].eq(r[:, -1])
    yield "Eight rewards of 0.1", lambda r: torch.std(r, dim=1).eq(0)

    def answer(rewards):
        gap = rewards - rewards.mean(dim=1, keepdim=True)
        return (gap == 0).all(dim=1)

    yield "Eight rewards of 0.1", answer
    yield "A small difference", lambda r: r.max(1).values - r.min(1).values < 0.01
    yield "is right", lambda r: torch.tensor([len(set(row)) == 1 for row in r.tolist()])


def token_mean_loss_at_ratio_one():
    yield (
        "minus sign is missing",
        lambda d, n: torch.einsum("bt,bt->", d, n.float()) / n.sum(),
    )
    yield "sequence mean", lambda d, n: -d.sum() / d.numel()
    yield "number of responses", lambda d, n: -(d * n).sum() / d.numel()
    yield "You sum", lambda d, n: (-d * n).sum()

    def answer(deltas, lengths):
        batch, trial = deltas.shape
        return -(deltas * lengths).sum() / (batch * trial * lengths.max())

    yield "padded size", answer
    yield "in each group", lambda d, n: -(n / n.sum(1, keepdim=True) * d).sum(1).mean()
    yield "divide by the length", lambda d, n: -(1 / n * d).sum() / (1 / n).sum()

    def answer(deltas, lengths):
        total, tokens = 0.0, 0
        for d, n in zip(deltas.flatten().tolist(), lengths.flatten().tolist()):
            total, tokens = total - n * d, tokens + n
        return torch.tensor(total / tokens)

    yield "is right", answer


def length_covariance():
    def answer(deltas, lengths):
        both = torch.stack([deltas.flatten(), lengths.flatten().float()])
        return torch.cov(both)[0, 1]

    yield "N - 1", answer

    def answer(deltas, lengths):
        both = torch.stack([deltas.flatten(), lengths.flatten().float()])
        return torch.corrcoef(both)[0, 1]

    yield "correlation", answer

    def answer(deltas, lengths):
        n = lengths.float()
        return -((n - n.mean()) * (deltas - deltas.mean())).mean()

    yield "sign is reversed", answer

    def answer(deltas, lengths):
        n = lengths.float()
        return ((n - n.mean()) * (deltas - deltas.mean())).sum()

    yield "You sum the products", answer

    def answer(deltas, lengths):
        n, d = lengths.float(), deltas
        n = n - n.mean(1, keepdim=True)
        return (n * (d - d.mean(1, keepdim=True))).mean()

    yield "within each group", answer
    yield "deltas average zero", lambda d, n: (n * d).mean()

    def answer(deltas, lengths):
        d, n = deltas.flatten().tolist(), lengths.flatten().tolist()
        mean = sum(n) / len(n)
        total = sum((x - mean) * y for x, y in zip(n, d))
        return torch.tensor(total / len(n))

    yield "is right", answer


def cause_of_run():
    causes = {
        "A": "deltas with the wrong sign",
        "B": "no step is taken",
        "C": "healthy",
        "D": "all groups tied",
        "E": "old log-probs noted anew",
    }

    def but(**wrong):
        return lambda run: (causes | wrong)[run]

    yield (
        "would show a reward that rises. Run A shows a reward that falls",
        but(A="healthy"),
    )
    yield "Run B shows a gradient norm above 0", but(B="all groups tied")
    yield "Run D shows a gradient norm of 0", but(D="no step is taken")
    yield "would show a ratio that leaves 1", but(E="healthy")
    yield "of exactly 1 in every row. Run C shows", but(C="old log-probs noted anew")
    yield "beta times KL. Run B shows", but(B="KL weight far too large")
    yield "near 0 in the second row already", but(E="learning rate far too large")
    yield "No cause of the list", but(B="optimizer step missing")
    yield (
        "Run A shows a reward that falls",
        but(  # two wrong: the first one is named
            A="healthy", C="deltas with the wrong sign"
        ),
    )

    def answer(run):
        if run in "AC":
            return causes["A"] if run == "A" else "healthy"
        return [causes["B"], causes["D"], causes["E"]]["BDE".index(run)]

    yield "is right", answer
