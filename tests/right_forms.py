"""Right answers of other forms, and wrong ones that look right in simple cases.

RIGHT and WRONG are pairs (name of the exercise, answer), in the order of the course;
PACKAGE is what the package itself answers; EQUIVALENT the pieces of a solution that may
be turned without a difference, by the key of the exercise.
"""

import copy
import itertools
import math
import random
import re
import statistics
from typing import ClassVar

import torch
import torch.nn.functional as F
from einops import rearrange, reduce, repeat
from torch.distributions import Bernoulli, Categorical, kl_divergence

from grpo_course import ppo
from grpo_course import sort as sort_rewards
from grpo_course.formulas import (
    compute_deltas,
    compute_kl_penalty,
    compute_loss,
    corrected_k3,
    exact_kl,
    k3,
    loss_report,
)
from grpo_course.lessons import preferences
from grpo_course.lessons.exercises import nb00, nb06
from grpo_course.lessons.hunt.probes import token_with
from grpo_course.lessons.look_ups import turn_rewards
from grpo_course.lessons.own_task import task_of
from grpo_course.loop import Rollout, half_width
from grpo_course.sampling import response_mask, shifted_log_probs
from grpo_course.text.grader import read_number
from grpo_course.text.responses import completion_texts, extract_answer, in_template
from grpo_course.text.reverse import LETTERS, Reverse
from grpo_course.text.smollm2 import stated
from grpo_course.text.tasks import Problem, TextTask, split_of


def _padding_set_to_zero(new, old, deltas, mask, aggregation):
    """It hides what is not finite, and exp makes more of that."""
    gap = torch.nan_to_num(new - old, nan=0.0, posinf=0.0, neginf=0.0)
    ratio, each = gap.exp(), deltas[..., None]
    gain = torch.minimum(ratio * each, ratio.clamp(0.8, 1.2) * each)
    kept = torch.where(mask, gain, 0.0)
    if aggregation == "token_mean":
        return -kept.sum() / mask.sum()
    return -(kept.sum(dim=-1) / mask.sum(dim=-1)).mean()


def _response_by_response(logits, tokens, old, deltas, eos):
    """No mask at all: each response is cut off behind its first EOS."""
    start, parts = tokens.shape[-1] - old.shape[-1], []
    for i, j in itertools.product(range(len(tokens)), range(tokens.shape[1])):
        kept = tokens[i, j, start:].tolist()
        kept = kept[: kept.index(eos) + 1] if eos in kept else kept
        end = start + len(kept)
        policy = Categorical(logits=logits[i, j, start - 1 : end - 1])
        new = policy.log_prob(tokens[i, j, start:end])
        ratio = torch.exp(new - old[i, j, : len(kept)])
        gain = torch.minimum(ratio * deltas[i, j], ratio.clip(0.8, 1.2) * deltas[i, j])
        parts.append(-torch.mean(gain))
    return sum(parts) / len(parts)


def _numbers(start, prompts, num_epochs, num_steps, period, beta):
    """Losses as plain numbers; one loop, and the reference is asked in each step."""
    model, generator, optimizer = start()
    losses = []
    for step in range(num_epochs * num_steps):
        if step % (period * num_steps) == 0:
            frozen = copy.deepcopy(model).requires_grad_(False)
        if step % num_steps == 0:
            responses = sort_rewards.generate_responses(prompts, model, 4, generator)
            rewards = sort_rewards.batch_distance_reward(prompts, responses)
            deltas = compute_deltas(rewards, "normalized_rewards")
            old = sort_rewards.compute_log_probs(prompts, responses, model).detach()
        new = sort_rewards.compute_log_probs(prompts, responses, model)
        ref = sort_rewards.compute_log_probs(prompts, responses, frozen)
        loss = inner_step_loss(new, old, ref, deltas, beta)
        model.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return torch.tensor(losses)


def _differs(loop):
    """Whether a loop's losses differ from those of another right loop."""
    ours = _numbers(nb06.fresh_start, nb06.PROMPTS, 5, 2, 2, 1.0)
    theirs = loop(nb06.fresh_start, nb06.PROMPTS, 5, 2, 2, 1.0)
    return bool((theirs - ours).abs().max() > 1e-3)


def _step_by_losses(actor, critic, optimizer, old_log_probs, old_values, deltas):
    """The larger of two losses; zero_grad where one would not expect it."""
    new, goal = actor(), (old_values + deltas).detach()
    r = (new - old_log_probs).exp()
    policy_loss = torch.max(-deltas * r, -deltas * torch.clip(r, 0.8, 1.2)).mean()
    loss = policy_loss + 0.25 * F.mse_loss(critic(), goal)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return torch.tensor(loss.item())


def _until_eos(tokens, begins, eos):
    mask = begins.clone()
    for place in range(1, tokens.shape[1]):
        mask[:, place] |= mask[:, place - 1] & (tokens[:, place - 1] != eos)
    return mask


def _by_index(policy, rollout, deltas):
    for place in deltas.abs().sum(-1).nonzero().flatten():
        here = slice(place, place + 1)
        group = Rollout(
            rollout.prompts[here], rollout.responses[here], rollout.mask[here]
        )
        with torch.no_grad():
            old = policy.log_probs(group)
        scores = policy.log_probs(group)
        loss = compute_loss(scores, deltas[here], "clipped", old, mask=group.mask)
        (loss / len(rollout.prompts)).backward()


def _twice_and_by_hand(policy, rollout, deltas):
    for place, delta in enumerate(deltas):
        if (delta == 0).all():
            continue
        responses, mask = rollout.responses[place][None], rollout.mask[place][None]
        group = Rollout(rollout.prompts[place][None], responses, mask)
        old = policy.log_probs(group).detach()
        gain = (policy.log_probs(group) - old).exp() * delta[None, :, None]
        each = (gain * mask).sum(-1) / mask.sum(-1)
        (-each.mean() / len(deltas)).backward()


def _in_one_sum(policy, rollout, deltas):
    losses = []
    for place, delta in enumerate(deltas):
        if delta.any():
            here = slice(place, place + 1)
            mask = rollout.mask[here]
            group = Rollout(rollout.prompts[here], rollout.responses[here], mask)
            scores = policy.log_probs(group)
            old, given = scores.detach(), delta[None]
            losses.append(compute_loss(scores, given, "clipped", old, mask=mask))
    (sum(losses) / len(deltas)).backward()


def _bonus_for_one_group(make_trainer):
    trainer = make_trainer()
    size = trainer.settings.num_responses
    rewards = torch.rand(2 * size)
    before = trainer.compute_deltas(rewards)[:size]
    rewards[size:] += 5
    after = trainer.compute_deltas(rewards)[:size]
    return max((before - after).abs().tolist()) < 1e-2


def _each_group_alone(make_trainer):
    """What one response earns is no matter to the other group."""
    trainer = make_trainer()
    size = trainer.settings.num_responses
    rewards = torch.rand(2 * size)
    before = trainer.compute_deltas(rewards)[size:]
    rewards[0] += 1
    return torch.allclose(before, trainer.compute_deltas(rewards)[size:], atol=1e-3)


def _surprise_of_kept_tokens(make_trainer):
    trainer = make_trainer(temperature=0.01)
    batch = trainer.collect()
    kept = batch.mask.float()
    surprise = -(batch.old_log_probs * kept).sum() / kept.sum()
    return surprise.item() < 0.1


def _rounded_ratios(make_trainer):
    trainer = make_trainer(learning_rate=0.0)
    batch = trainer.collect()
    ratio = (trainer.score(batch) - batch.old_log_probs).exp()[batch.mask]
    stats, _ = trainer.update(batch)
    print("ratios from", ratio.min(), "to", ratio.max())
    return all((r - 1).abs().max() < 0.01 for r in (ratio, stats[3]))


def _six_tokens_at_once(make_trainer):
    new = torch.full((6, 1), -1.5, requires_grad=True)
    tokens = token_with(old_log_probs=0.0, ref_log_probs=-1.5, deltas=0.0)
    tokens.old_log_probs = torch.tensor([-2.5, -1.5, -0.5]).repeat(2)[:, None]
    tokens.ref_log_probs = torch.full((6, 1), -1.5)
    tokens.deltas = torch.tensor([2.0, 2.0, 2.0, -2.0, -2.0, -2.0])
    losses, _ = make_trainer(beta=0.0).token_losses(new, tokens)
    losses.sum().backward()
    signs = new.grad[:, 0].sign().tolist()
    held = torch.tensor([[-1.5], [-1.5]], requires_grad=True)
    tokens.old_log_probs, tokens.deltas = held.detach(), torch.zeros(2)
    tokens.ref_log_probs = torch.tensor([[-2.5], [-1.0]])
    make_trainer(beta=0.5).token_losses(held, tokens)[0].sum().backward()
    above, below = held.grad[:, 0].tolist()
    return signs == [0, -1, -1, 1, 1, 0] and above > 0 and below < 0


def _weighed(tables, responses, rewards):
    """What a table says of each response, weighed with the deltas."""
    mean, spread = rewards.mean(1, True), rewards.std(1, keepdim=True)
    picked = torch.stack(
        [
            torch.stack([table[range(len(row)), row] for row in group])
            for table, group in zip(tables, responses)
        ]
    )
    return -(picked.mean(-1) * (rewards - mean) / (spread + 1e-6)).mean()


def _used_up(prompt, response):
    """Each number of the response uses one of the prompt up."""
    left, points = [*prompt], 0
    for number in response:
        if number in left:
            left.remove(number)
            points += 1
    return points + sum(a <= b for a, b in itertools.pairwise(response))


def _pushed_by_autograd(responses, rewards, probs):
    logits = probs.log().requires_grad_()
    each = zip(responses, rewards)
    scores = [R * Categorical(logits=logits).log_prob(a).sum() for a, R in each]
    return torch.stack([torch.autograd.grad(s, logits)[0] for s in scores])


def _updated(model, optimizer, prompts, num_responses, generator):
    """Gradients cleared last, samples noted without one, scores by gather."""
    with torch.no_grad():
        drawn = sort_rewards.generate_responses(
            prompts, model, num_responses, generator
        )
    earned = (prompts.sort().values[:, None] == drawn).sum(-1)
    table = model(prompts).log_softmax(-1).unsqueeze(-3)
    table = table.expand(*drawn.shape, table.shape[-1])
    scores = table.gather(-1, drawn[..., None])[..., 0]
    loss = -(scores.sum(-1) * earned).sum() / scores.numel()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return loss


def _task_from_all():
    """Every word of a split, in an order that the seed shuffles."""

    def pay(completions, answer, **kwargs):
        texts = completion_texts(completions)
        found = [re.findall("<answer>(.*?)</answer>", text) for text in texts]
        return [float(f[-1:] == [a]) for f, a in zip(found, answer, strict=True)]

    class Backwards(TextTask):
        rewards: ClassVar = {"accuracy": (pay, 1.0)}

        def problems(self, split, count, seed):
            every = [
                "".join(some) for some in itertools.product(LETTERS[:16], repeat=3)
            ]
            every += ["".join(s) for s in itertools.product(LETTERS[16:], repeat=4)]
            kept = [f"Reverse {word}." for word in every if split_of(word) == split]
            random.Random(seed).shuffle(kept)
            return [Problem(asked, asked[-2:7:-1]) for asked in kept[:count]]

        def gold(self, problem):
            spelt = " ".join(problem.answer)
            return f"<think>{spelt}</think><answer>{problem.answer}</answer>"

    return Backwards()


def _task_of_one_answer():
    """The seed alone, as `split_of` parts the words; a second answer earns nothing."""

    def problems(split, count, seed):
        rng, found = random.Random(seed), {}
        while len(found) < count:
            word = "".join(rng.choices(LETTERS, k=rng.randint(3, 4)))
            if split_of(word) == split:
                found[word] = Problem(f"Reverse {word}.", word[::-1])
        return list(found.values())

    def is_right(text, word):
        return re.findall("<answer>(.*?)</answer>", text) == [word]

    def gold(problem):
        return in_template(" ".join(problem.answer), problem.answer)

    return task_of(problems, is_right, gold)


def _cap(most):
    def answer(n, o, d):
        r, d = (n - o).exp().clamp(max=most), d[..., None]
        return -torch.minimum(r * d, r.clamp(0.8, 1.2) * d).mean()

    return answer


def _of_nonzero(n, o, d):
    r, d = (n - o).exp(), d[..., None]
    loss = torch.minimum(r * d, r.clamp(0.8, 1.2) * d)
    return -loss.sum() / (loss != 0).sum()


def _without_an_optimizer(policy, prompts, draw, num_steps, step_size):
    """Each step by hand, on all weights."""
    right, history = prompts.sort(dim=-1).values, []
    for _ in range(num_steps):
        responses = draw(policy, prompts)
        rewards = 1.0 * (responses == right[:, None]).sum(dim=-1)
        weights = [*policy.parameters()]
        loss = nb00.grpo_loss(policy(prompts), responses, rewards)
        slopes = torch.autograd.grad(loss, weights)
        with torch.no_grad():
            for weight, slope in zip(weights, slopes, strict=True):
                weight -= step_size * slope
        history.append((nb00.chance_of_right(policy, prompts), rewards))
    chances, earned = zip(*history, strict=True)
    return torch.stack(chances), torch.stack(earned)


def _zeroed_behind_the_step(policy, prompts, draw, num_steps, step_size):
    """The next group is drawn at the end of a step, and the gradients zeroed there."""
    right = prompts.sort(dim=-1, stable=True).values
    optimizer = torch.optim.SGD(policy.parameters(), lr=step_size)
    chances = torch.empty(num_steps, len(prompts))
    responses, earned = draw(policy, prompts), []
    for step in range(num_steps):
        earned.append((responses == right[:, None]).float().sum(dim=-1))
        nb00.grpo_loss(policy(prompts), responses, earned[-1]).backward()
        optimizer.step()
        policy.zero_grad()
        chances[step] = nb00.chance_of_right(policy, prompts)
        responses = draw(policy, prompts)
    return chances, torch.stack(earned)


def pairs(forms):
    """Each answer beside the name of its exercise, which has one or a list."""
    return [
        (name, answer)
        for name, each in forms.items()
        for answer in (each if isinstance(each, list) else [each])
    ]


RIGHT = pairs(
    {
        "group_deltas": [
            lambda r: (
                (r - reduce(r, "b t -> b 1", "mean")) / (r.std(1)[:, None] + 1e-6)
            ),
            lambda r: torch.nan_to_num(
                (r - r.mean(-1, keepdim=True)) / r.std(-1, keepdim=True)
            ),
        ],
        "grpo_loss": [
            lambda x, ids, r: _weighed(x.log_softmax(-1), ids, r),
            # A logit is its log-probability plus a number that the deltas cancel.
            lambda x, ids, r: _weighed(x, ids, r),
        ],
        "train": [_without_an_optimizer, _zeroed_behind_the_step],
        "is_dead_end": [
            lambda r: (
                (r >= r.amax(0))
                & (r >= r.amax(1)[:, None])
                & (r >= r.amax(2)[..., None])
                & (r < r.max())
            ),
            lambda r: torch.tensor(
                [
                    [
                        [
                            r[i, j, k] < r.max()
                            and bool((r[:, j, k] <= r[i, j, k]).all())
                            and bool((r[i, :, k] <= r[i, j, k]).all())
                            and not (r[i, j] > r[i, j, k]).any()
                            for k in range(r.shape[2])
                        ]
                        for j in range(r.shape[1])
                    ]
                    for i in range(r.shape[0])
                ]
            ),
        ],
        "duplicate_proof_reward": [
            _used_up,
            lambda p, r: torch.tensor(
                [min(p.count(x), r.count(x)) for x in {*p}]
                + [a <= b for a, b in zip(r, r[1:])],
                dtype=torch.float64,
            ).sum(),
        ],
        "gather_log_probs": [
            lambda x, ids: torch.stack(
                [
                    Categorical(logits=x).log_prob(ids[:, t])
                    for t in range(ids.shape[1])
                ],
                1,
            ),
            lambda x, ids: (
                -F.cross_entropy(
                    rearrange(
                        repeat(x, "b p v -> b t p v", t=ids.shape[1]),
                        "b t p v -> b v t p",
                    ),
                    ids,
                    reduction="none",
                )
            ),
        ],
        "reinforce": [
            lambda a, r, p: torch.einsum("t,tpv->tpv", r, torch.eye(p.shape[1])[a] - p),
            lambda a, r, p: torch.stack(
                [sort_rewards.push_of(*x, p) for x in zip(a, r)]
            ),
            _pushed_by_autograd,
        ],
        "one_update": _updated,
        # other sizes of groups, and two thousand
        "ties_push_nothing": lambda f: all(
            f(torch.tensor([[x] * n, [*range(n)]]).float())[0].abs().max() < 1e-3
            for x in (0.1, -3.0, 1000.1, -1999.7)
            for n in (3, 7, 8, 12)
        ),
        "leave_one_out": lambda r: torch.stack(
            [
                r[:, i] - torch.cat([r[:, :i], r[:, i + 1 :]], 1).mean(1)
                for i in range(r.shape[1])
            ],
            1,
        ),
        "clipped_surrogate_loss": lambda n, o, d: (
            -torch.where(
                (d > 0)[..., None],
                (n - o).exp().clamp(max=1.2),
                (n - o).exp().clamp(min=0.8),
            )
            .mul(d[..., None])
            .mean()
        ),
        "clip_fraction": [
            lambda r, d, e: ((r - 1) * d.sign()[..., None] > e).float().mean(),
            lambda r, d, e: (
                torch.where(
                    (d > 0)[..., None], r > 1 + e, (r < 1 - e) & (d < 0)[..., None]
                )
                .double()
                .mean()
            ),
        ],
        "exact_kl_of": [
            lambda p, q: kl_divergence(Categorical(logits=p), Categorical(logits=q)),
            lambda p, q: (p.softmax(-1) * (p - q)).sum(-1),
            lambda p, q: (p.exp() * ((q - p).exp() - 1 - (q - p))).sum(-1),
        ],
        "k3_estimate": [
            lambda p, q: (q - p).exp() - 1 - (q - p),
            lambda p, q: 1 / (p - q).exp() - 1 + (p - q),
        ],
        "corrected_k3": [
            lambda p, old, q: (q - old).exp() - (p - old).exp() * (1 + q - p),
            lambda p, old, q: torch.exp(p - old) * ((q - p).exp() - 1 + p - q),
        ],
        "inner_step_loss": lambda n, o, ref, d, b: torch.mean(
            b * ((ref - n).exp() - 1 - (ref - n))
            - torch.where(
                (d > 0)[..., None],
                (n - o).exp().clamp(max=1.2),
                (n - o).exp().clamp(min=0.8),
            )
            * d[..., None]
        ),
        "train_by_hand": _numbers,
        "is_faulty": _differs,
        "gradient_by_log_probs": lambda d, m: (
            -d[..., None] * m / m.sum(-1, keepdim=True) / d.numel()
        ).nan_to_num(),
        "center_for_token_mean": lambda rewards, n: torch.stack(
            [r - r.repeat_interleave(k).mean() for r, k in zip(rewards, n)]
        ),
        "log_line": lambda rewards, new, old, mask: {
            "ratio_max": max(map(math.exp, (new[mask] - old[mask]).tolist())),
            "ratio_min": (new[mask] - old[mask]).min().exp().item(),
            "tied_groups": statistics.mean(len(set(g)) == 1 for g in rewards.tolist()),
            "mean_reward": statistics.fmean(rewards.flatten().tolist()),
            "sampled_entropy": float(torch.where(mask, -old, 0).sum() / mask.sum()),
            "tokens": int(mask.sum()),
        },
        "generalized_advantages": lambda r, v, g, lam: torch.stack(
            [
                sum(
                    (g * lam) ** (later - t) * ppo.td_errors(r, v, g)[:, later]
                    for later in range(t, r.shape[1])
                )
                for t in range(r.shape[1])
            ],
            1,
        ),
        "ppo_step": _step_by_losses,
        "remember": lambda r, u: (r - u.unsqueeze(-1), 0.9 * u + 0.1 * r.mean(2)),
        "bradley_terry_loss": [
            lambda c, r: F.softplus(r - c).mean(),
            lambda c, r: F.binary_cross_entropy_with_logits(c - r, torch.ones_like(c)),
        ],
        "dpo_loss": [
            lambda c, r, rc, rr, beta: preferences.bradley_terry_loss(
                beta * (c - rc), beta * (r - rr)
            ),
            lambda c, r, rc, rr, beta: F.softplus(beta * ((r - c) + (rc - rr))).mean(),
        ],
        "distillation_deltas": [
            lambda own, theirs, mask: (theirs - own).detach().masked_fill(~mask, 0.0),
            # The padding is hidden from both before they are subtracted.
            lambda own, theirs, mask: (
                theirs.where(mask, 0.0) - own.where(mask, 0.0)
            ).detach(),
        ],
        "shifted_log_probs": lambda x, ids: Categorical(logits=x[..., :-1, :]).log_prob(
            ids[..., 1:]
        ),
        "response_mask": lambda ids, eos: torch.tensor(
            [
                [[eos not in row[:t] for t in range(len(row))] for row in g]
                for g in ids.tolist()
            ]
        ),
        "masked_clip_loss": lambda n, o, d, m, how: (
            -torch.cat(
                [
                    torch.minimum(r * d[i, j], r.clamp(0.8, 1.2) * d[i, j])
                    / (m.sum() if how == "token_mean" else len(r) * d.numel())
                    for i in range(len(d))
                    for j in range(d.shape[1])
                    for r in [(n[i, j][m[i, j]] - o[i, j][m[i, j]]).exp()]
                ]
            ).sum()
        ),
        "masked_loss": _response_by_response,
        "groups_stand_alone": [
            _bonus_for_one_group,
            _each_group_alone,
        ],
        "own_words_look_likely": _surprise_of_kept_tokens,
        "loss_pulls_right": _six_tokens_at_once,
        "ratios_start_at_one": _rounded_ratios,
        "stated": lambda text: (
            read_number(found[1])
            if (found := re.search(r"Answer:\s*([^\n]*)\s*\Z", text))
            else None
        ),
        "completion_mask": _until_eos,
        "add_gradients": [
            _by_index,
            _twice_and_by_hand,
        ],
        "is_lost": [
            lambda operation, left, right: operation == "+" and left + right > 17,
            lambda operation, left, right: left + right in {20, 21, 22},
            lambda operation, *pair: (
                sum(pair) // 20 == 1 if operation == "+" else False
            ),
            lambda operation, left, right: (operation == "+") * (left + right > 19),
            # fewer than the solution, and all that the task asks
            lambda operation, left, right: operation == "+" and left > 8 and right > 8,
        ],
        "by_chance": lambda lost, won: (
            sum(
                math.comb(lost + won, heads)
                for heads in range(lost + won + 1)
                if abs(2 * heads - lost - won) >= abs(lost - won)
            )
            * 0.5 ** (lost + won)
        ),
        "intervals": lambda change: [
            half_width(one.tolist())
            for one in (change.sum(-1), change.sum(0) / len(change) * change.shape[1])
        ],
        "my_task": [_task_from_all, _task_of_one_answer],
        "credit": [
            lambda text, word: (
                1.0
                if (given := extract_answer(text)) == word
                else sum(map(str.__eq__, given or "", word)) / len(word) / 2
            ),
            lambda text, word: (
                sum(map(str.__eq__, given := extract_answer(text) or "", word))
                * (2 / len(given + word))
            ),
        ],
        "sequence_loss": lambda new, old, d: torch.maximum(
            -d * (r := (new.mean(-1) - old.mean(-1)).exp()),
            -d * r.clip(1 - (e := 0.2 / math.sqrt(new.size(-1))), 1 + e),
        ).mean(),
        "weighted_loss": lambda new, old, d: (
            sum(
                -min((a - b).exp().item(), 1.2) * each * a
                for x, y, each in zip(new.flatten(0, 1), old.flatten(0, 1), d.flatten())
                for a, b in zip(x, y)
            )
            / new.numel()
        ),
        "turn_mask": lambda lengths, width: (
            (torch.arange(width) >= ((end := lengths.cumsum(-1)) - lengths)[..., None])
            & (torch.arange(width) < end[..., None])
        )[..., ::2, :].any(-2),
        "for_honesty": lambda asked, written: (
            (turn_rewards(asked, written)[..., -1:] > 0).float().expand(written.shape)
        ),
        "for_the_turn": lambda asked, written: (
            (r := turn_rewards(asked, written)).sum(-1, keepdim=True) - r.cumsum(-1) + r
        ),
        "weights_of_large_groups": lambda p: (
            1 / torch.stack([p**0, Bernoulli(p).stddev, p])
        ),
        "votes": [
            lambda g, w, rate: (g[:, None] * g * (rate / g.shape[0])).sum(-1) * w,
            lambda g, w, rate: torch.stack(
                [g @ (rate * k * each / len(g)) for each, k in zip(g, w)], 1
            ),
        ],
    }
)


WRONG = pairs(
    {
        "is_dead_end": lambda r: (
            (r == r.amax(0)) & (r == r.amax((0, 1))) & (r < r.max())
        ),
        "k3_estimate": [
            lambda p, q: (d := (q - p).clamp(-10, 10)).exp() - 1 - d,
            lambda p, q: (r := (q - p).exp()) - 1 - (r + 1e-8).log(),
        ],
        "ties_push_nothing": [
            # of a tied group the first response alone
            lambda f: f(torch.tensor([[1000.1] * 8, [*range(8)]]))[0, 0].abs() < 1e-3,
            # the first and the last, and whatever is below a tenth
            lambda f: (
                f(torch.tensor([[1000.1] * 8, [*range(8)]]))[0, [0, -1]].abs().max()
                < 1e-3
            ),
            lambda f: f(torch.tensor([[1000.1] * 8, [*range(8)]]))[0].abs().max() < 0.1,
            lambda f: (
                bool((f(torch.full((2, 8), 1000.1)).abs() < 1e-3).all())
                and bool((f(torch.full((2, 8), 0.1)).abs() < 1e-3).all())
            ),
        ],
        "gather_log_probs": lambda x, ids: (
            repeat(x.log_softmax(-1), "b p v -> b t p v", t=4)[:, : ids.shape[1]]
            .gather(-1, ids[..., None])
            .squeeze(-1)
        ),
        "clipped_surrogate_loss": [
            _cap(3.0),
            _of_nonzero,
        ],
        "clip_fraction": lambda r, d, e: (
            (r.log() * d.sign()[..., None] > math.log(1 + e)).float().mean()
        ),
        "exact_kl_of": [
            lambda p, q: (p.exp() * (p - (q.exp() + 1e-8).log())).sum(-1),
            lambda p, q: (p.exp() * (p.exp() / q.exp()).log()).sum(-1),
        ],
        "masked_clip_loss": _padding_set_to_zero,
        "shifted_log_probs": lambda x, ids: (
            (x[..., :-1, :].softmax(-1) + 1e-8)
            .gather(-1, ids[..., 1:, None])
            .log()[..., 0]
        ),
        # the gradient is right, and the graphs of all groups are kept
        "add_gradients": _in_one_sum,
    }
)


def clip_fraction(ratio, deltas, epsilon):
    old = torch.full_like(ratio, -9.0, dtype=torch.float64)
    report = loss_report(old + ratio.double().log(), deltas, old, epsilon=epsilon)
    return report["clip_fraction_low"] + report["clip_fraction_high"]


def inner_step_loss(log_probs, old_log_probs, ref_log_probs, deltas, beta):
    policy_loss = compute_loss(log_probs, deltas, "clipped", old_log_probs)
    return policy_loss + beta * compute_kl_penalty(log_probs, ref_log_probs)


def gradient_by_log_probs(deltas, mask):
    log_probs = torch.zeros(mask.shape, requires_grad=True)
    old = log_probs.detach().clone()
    loss = compute_loss(log_probs, deltas, "clipped", old, mask=mask)
    return torch.autograd.grad(loss, log_probs)[0]


def center_for_token_mean(rewards, lengths):
    mask = torch.arange(int(lengths.max())) < lengths[..., None]
    old, how = torch.zeros(mask.shape), {"aggregation": "token_mean"}
    loss = [
        compute_loss(o, r, "clipped", o, mask=m, **how)
        for o, r, m in zip(old[:, None], rewards[:, None], mask[:, None])
    ]
    return rewards + torch.stack(loss)[:, None]


def completion_mask(tokens, begins, eos):
    ended = (tokens == eos).cumsum(dim=-1) - (tokens == eos).long()
    return ended == torch.where(begins, ended, -1).cummax(dim=-1).values


def cispo_loss(log_probs, old_log_probs, deltas):
    return compute_loss(log_probs, deltas, "cispo", old_log_probs, epsilon_high=0.2)


def masked_clip_loss(log_probs, old_log_probs, deltas, mask, aggregation):
    how = {"mask": mask, "aggregation": aggregation}
    return compute_loss(log_probs, deltas, "clipped", old_log_probs, **how)


def masked_loss(logits, tokens, old_log_probs, deltas, eos):
    width = old_log_probs.shape[-1]
    log_probs = shifted_log_probs(logits, tokens)[..., -width:]
    mask = response_mask(tokens[..., -width:], eos)
    return compute_loss(log_probs, deltas, "clipped", old_log_probs, mask=mask)


PACKAGE = {
    "duplicate_proof_reward": sort_rewards.sort_multiset_reward,
    "leave_one_out": lambda r: compute_deltas(r, "leave_one_out"),
    "clipped_surrogate_loss": lambda x, old, d: compute_loss(x, d, "clipped", old),
    "clip_fraction": clip_fraction,
    "exact_kl_of": exact_kl,
    "k3_estimate": k3,
    "corrected_k3": lambda p, old, q: corrected_k3(p, q, old_log_probs=old),
    "inner_step_loss": inner_step_loss,
    "gradient_by_log_probs": gradient_by_log_probs,
    "center_for_token_mean": center_for_token_mean,
    "generalized_advantages": ppo.generalized_advantages,
    "bradley_terry_loss": preferences.bradley_terry_loss,
    "shifted_log_probs": shifted_log_probs,
    "response_mask": response_mask,
    "masked_clip_loss": masked_clip_loss,
    "masked_loss": masked_loss,
    "stated": stated,
    "completion_mask": completion_mask,
    "weighted_loss": cispo_loss,
    "my_task": lambda: Reverse(longest=4),
}


EQUIVALENT: dict[str, set[str]] = {
    "0.1": {"spread + 0.0001"},  # a small number less does as well
    # Any large rewards will do, tied or not.
    "3.2": {"1000.1", "0.0", "1.0", "2.0", "3.0"},
    # Any settings that are large enough catch the faults; any gradient is above 1.
    "6.3": {"0.5", "2", "3", "4"},
    "9.3": {"0.0"},  # of the log-ratio: the mask leaves it out afterwards
    # A malus is as good as a bonus, of any size.
    "10.1": {"rewards + bonus", "1.0"},
    # Any references on either side and any log-probabilities far enough will do, a beta
    # does no harm at the reference, and a bound may be wide where a neighbour is not.
    # The 0 that is added to what is printed makes 0.00 of -0.00.
    "10.4": {"3.0", "2.0", "1.0", "0.0", "0", "losses.sum", "each + 0"},
}
