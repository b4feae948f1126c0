"""Answers to the exercises of 10_bug_hunt, as learners write them.

Each function is named after its exercise. It yields every answer with words that
`check` must print: those of a wrong answer's hint, or that it "is right".
"""

import torch
from torch.nn.functional import pad

from grpo_course.classroom.hunt.probes_of_learning import token_with


def groups_stand_alone():
    yield "calls every trainer healthy", lambda make_trainer: True

    def answer(make_trainer):
        trainer = make_trainer()
        rewards = torch.rand(16).repeat(trainer.settings.num_responses)
        with_bonus = trainer.compute_deltas(rewards + 3)
        return (with_bonus - trainer.compute_deltas(rewards)).abs().max() < 0.01

    yield "You pay everybody more", answer

    def answer(make_trainer):
        deltas = make_trainer().collect().deltas
        return abs(deltas.mean().item()) < 1e-3

    yield "sum to zero in either case", answer

    def answer(make_trainer):
        trainer = make_trainer()
        rewards = torch.rand(3, trainer.settings.num_responses)
        more = rewards + torch.tensor([[1.0], [0.0], [0.5]])
        before = trainer.compute_deltas(rewards.flatten())
        return bool((trainer.compute_deltas(more.flatten()) == before).all())

    yield "To the last bit no two means are equal", answer

    def answer(make_trainer):
        trainer = make_trainer()
        size = trainer.settings.num_responses
        rewards = torch.rand(2 * size)
        before = trainer.compute_deltas(rewards)[:size]
        rewards[size:] += 5
        after = trainer.compute_deltas(rewards)[:size]
        return max((before - after).abs().tolist()) < 1e-2

    yield "is right", answer


def own_words_look_likely():
    def answer(make_trainer):
        batch = make_trainer().collect()
        return batch.old_log_probs[batch.mask].mean().exp() > 0.9

    yield "a healthy policy is surprised by its samples too", answer

    def answer(make_trainer):
        batch = make_trainer().collect()
        return batch.old_log_probs[batch.mask].mean() > -1.2

    yield "The bound is too wide", answer

    def answer(make_trainer):
        return make_trainer(temperature=0.02).collect().old_log_probs.mean() > -0.2

    yield "prompt and padding, which nobody sampled", answer

    def answer(make_trainer):
        batch = make_trainer(temperature=0.01).collect()
        return (batch.old_log_probs[batch.mask] > -0.1).any()

    yield "One likely token is in every batch", answer

    def answer(make_trainer):
        trainer = make_trainer()
        batch = trainer.collect()
        return torch.allclose(trainer.score(batch), batch.old_log_probs, atol=1e-3)

    yield "You score twice in the same way", answer

    def answer(make_trainer):
        trainer = make_trainer(temperature=0.01)
        batch = trainer.collect()
        kept = batch.mask.float()
        surprise = -(trainer.score(batch) * kept).sum() / kept.sum()
        return surprise.item() < 0.1

    yield "is right", answer


def padding_leaves_no_trace():
    def answer(make_trainer):
        trainer = make_trainer()
        batch = trainer.collect()
        before = trainer.score(batch)
        batch.tokens = pad(batch.tokens, (0, 5))
        batch.attention = pad(batch.attention, (0, 5))
        return torch.allclose(trainer.score(batch)[:, :-5], before, atol=1e-3)

    yield "You pad behind the text", answer

    def answer(make_trainer):
        trainer = make_trainer()
        batch = trainer.collect()
        before = trainer.score(batch)
        batch.tokens = pad(batch.tokens, (2, 0))
        batch.attention = pad(batch.attention, (2, 0), value=True)
        return (trainer.score(batch)[:, 2:] - before).abs().max() < 1e-3

    yield "Your padding is marked as text", answer

    def answer(make_trainer):
        trainer = make_trainer()
        batch = trainer.collect()
        batch.tokens = pad(batch.tokens, (4, 0))
        batch.attention = pad(batch.attention, (4, 0))
        before = trainer.score(batch)
        return torch.allclose(trainer.score(batch), before, atol=1e-4)

    yield "compare a thing with itself", answer

    def answer(make_trainer):
        trainer = make_trainer()
        batch = trainer.collect()
        scores = trainer.score(batch)
        rows, width = batch.tokens.shape
        tokens = torch.zeros(rows, width + 7, dtype=torch.long)
        attention = torch.zeros(rows, width + 7, dtype=torch.bool)
        tokens[:, 7:], attention[:, 7:] = batch.tokens, batch.attention
        batch.tokens, batch.attention = tokens, attention
        gap = (trainer.score(batch)[:, 7:] - scores).abs()
        return gap[batch.mask].max().item() < 1e-3

    yield "is right", answer


def parts_make_no_difference():
    def answer(make_trainer):
        trainer = make_trainer()
        batch, norms = trainer.collect(), []
        for size in (4, 64):
            trainer.settings.micro_batch_size = size
            norms.append(trainer.update(batch)[1])
        return abs(norms[0] / norms[1] - 1) < 0.01

    yield "the weights that the first one left", answer

    def answer(make_trainer):
        small, large = make_trainer(micro_batch_size=4), make_trainer()
        one, two = (t.update(t.collect())[1] for t in (small, large))
        return abs(one - two) < 1e-3

    yield "Both trainers are made before either samples", answer

    def answer(make_trainer):
        norms = []
        for size in (100, 200):
            trainer = make_trainer(micro_batch_size=size)
            norms.append(trainer.update(trainer.collect())[1])
        return abs(norms[0] - norms[1]) < 1e-4

    yield "so both sizes take it in one part", answer

    def answer(make_trainer):
        norms = []
        for size in (32, 64):
            trainer = make_trainer(micro_batch_size=size)
            norms.append(trainer.update(trainer.collect())[1])
        return norms[0] < 2 * norms[1]

    yield "a tolerance as large as the norm", answer

    def answer(make_trainer):
        losses = []
        for size in (8, 64):
            trainer = make_trainer(micro_batch_size=size)
            losses.append(trainer.update(trainer.collect())[0].mean(1)[0].item())
        return abs(losses[0] - losses[1]) < 1e-4

    yield "You compare what is logged", answer

    def answer(make_trainer):
        found = set()
        for size in (4, 16, 64):
            trainer = make_trainer(micro_batch_size=size)
            batch = trainer.collect()
            found.add(trainer.update(batch)[1])
        return max(found) / min(found) < 1.002

    yield "is right", answer


def kl_pulls_back():
    def slope(trainer, reference, what=0):
        new = torch.tensor([[-2.0]], requires_grad=True)
        token = token_with(old_log_probs=-2.0, ref_log_probs=reference, deltas=0.0)
        trainer.token_losses(new, token)[what].sum().backward()
        return new.grad.item()

    def value(trainer, reference, what):
        new = torch.tensor([[-2.0]])
        token = token_with(old_log_probs=-2.0, ref_log_probs=reference, deltas=0.0)
        losses, stats = trainer.token_losses(new, token)
        return losses.item() if what == "loss" else stats[1].item()

    yield "above the reference alone", lambda make: slope(make(beta=2.0), -4.0) > 0
    yield "below the reference alone", lambda make: slope(make(beta=2.0), -0.5) < 0
    yield (
        "You look at the KL of the log",
        lambda make: all(value(make(beta=1.0), ref, "kl") > 0 for ref in (-3.0, -1.5)),
    )
    yield (
        "You look at the value of the loss",
        lambda make: all(value(make(beta=1.0), r, "loss") > 0 for r in (-3.0, -1.5)),
    )
    yield (
        "no KL to pull with",
        lambda make: slope(make(beta=0.0), -3.0) > 0 > slope(make(beta=0.0), -1.0),
    )
    yield (
        "The sign is turned",
        lambda make: slope(make(beta=1.0), -3.0) < 0 < slope(make(beta=1.0), -1.0),
    )

    def answer(make_trainer):
        trainer = make_trainer(beta=0.5)
        new = torch.tensor([[-1.5], [-1.5]], requires_grad=True)
        token = token_with(old_log_probs=-1.5, ref_log_probs=-1.5, deltas=0.0)
        token.ref_log_probs = torch.tensor([[-2.5], [-1.0]])
        token.old_log_probs = new.detach()
        token.deltas = torch.zeros(2)
        trainer.token_losses(new, token)[0].sum().backward()
        above, below = new.grad[:, 0].tolist()
        return above > 0 and below < 0

    yield "is right", answer


def diagnosis():
    causes = {
        24: "best of several answers paid",
        8: "old scores taken from the current policy",
        20: "prompt trained along with the response",
        14: "k3 upside down",
        3: "groups that mix prompts",
        27: "old scores in low precision",
    }

    def but(number, cause):
        return lambda asked: (causes | {number: cause})[asked]

    yield (
        "'k1 as a loss' would have shown a logged KL below zero",
        but(14, "k1 as a loss"),
    )
    yield "would have shown ratios far from one", but(27, "dropout on in the update")
    yield (
        "Open trainer 3 once more, and look at: prompts of one group",
        but(3, "mean and spread of the whole batch"),
    )
    yield "No cause of the list has this name", but(8, "the ratio is wrong")
    yield "is right", lambda number: causes[number]


def repaired_script():
    old = "losses[part.mask].mean() * size / len(batch.tokens)"

    def put(new):
        return lambda source: source.replace(old, new)

    yield (
        "nothing in it equals the first argument",
        lambda source: source.replace("losses.mean()", "losses.sum() / num_tokens"),
    )
    yield "now the means are added", put("losses[part.mask].sum() / part.mask.sum()")
    yield (
        "Each part weighs by its rows",
        put("losses[part.mask].mean() * len(part.mask) / len(batch.mask)"),
    )
    yield (
        "Padding and prompt count in the divisor",
        put("losses[part.mask].sum() / batch.tokens[:, 1:].numel()"),
    )
    yield "A sum without a divisor", put("losses[part.mask].sum()")
    yield "The losses of prompt and padding", put("losses.sum() / num_tokens")
    yield "is right", put("losses[part.mask].mean() * part.mask.sum() / num_tokens")
