"""What 13_beyond_grpo claims."""

from functools import cache, partial
from typing import Any

import torch
from torch import Tensor

from claims.runner import BEST, Claim, Setting
from grpo_course.formulas import compute_deltas, compute_loss
from grpo_course.loop import Rollout
from grpo_course.off_policy import StaleSampler, with_overlong_penalty
from grpo_course.sampling import Sampler
from grpo_course.sequences import (
    ASK,
    LENGTH,
    TinyLM,
    all_sort_prompts,
    make_policy,
    place_reward,
    sorted_numbers,
    token_share,
    train_sort,
)

LIMIT = Sampler(6, eos=ASK, pad=ASK)


def numbers_written(rollout: Rollout) -> Tensor:
    """The tokens of a response; the end is free. -> int [... batch trial]"""
    assert rollout.mask is not None and rollout.finished is not None
    return rollout.mask.sum(-1) - rollout.finished.long()


def ended_reward(rollout: Rollout) -> Tensor:
    """Right places among all that was written, at least three. -> [... batch trial]"""
    count = numbers_written(rollout)
    # The end and the padding after it are no number of any prompt: never right.
    right = rollout.responses[..., :LENGTH] == sorted_numbers(rollout.prompts)[:, None]
    return right.sum(-1) / count.clamp(min=LENGTH)


@cache  # one run of plain GRPO is compared with every variant
def trained(setting: Setting, reward_fn=ended_reward, **change) -> tuple:
    """Reward on all prompts and numbers written, after 20 epochs. -> two of [seed]"""
    knobs: dict[str, Any] = {"sampler": LIMIT, "num_steps_per_epoch": 4} | change
    num_epochs, rate = round(20 * setting.length), 0.01 * setting.rate
    policy, _ = train_sort(reward_fn, setting.seeds, num_epochs, rate, **knobs)
    answers = policy.sample(all_sort_prompts(), 4)
    written = numbers_written(answers).float().mean((-2, -1))
    return ended_reward(answers).mean((-2, -1)), written


def paid(setting: Setting, **change) -> Tensor:
    """The reward that a variant reaches. -> [seed]"""
    return trained(setting, **change)[0]


def written(setting: Setting, **change) -> Tensor:
    """How many numbers its responses hold. -> [seed]"""
    return trained(setting, **change)[1]


def from_old(setting: Setting, lag: int, num_epochs: float, rate: float, **change):
    """A run on samples of a writer that is so many epochs old."""
    knobs: dict[str, Any] = {"wrap": lambda policy: StaleSampler(policy, lag)}
    knobs |= {"num_steps_per_epoch": 4} | change
    epochs, rate = round(num_epochs * setting.length), rate * setting.rate
    return train_sort(place_reward, setting.seeds, epochs, rate, **knobs)


def stale(setting: Setting, **change) -> Tensor:
    """The reward of the last five epochs, with an old writer. -> [seed]"""
    _, seen = from_old(setting, 4, 20, 0.003, **change)
    return seen.epochs("mean_reward")[-5:].mean(dim=0)


def per_token(new, old, deltas) -> Tensor:
    """The clip of each token by itself, as a loss. -> scalar"""
    return compute_loss(new, deltas, "clipped", old).mean()


def per_response(new, old, deltas) -> Tensor:
    """GSPO: the clip of a response as a whole."""
    ratio = (new - old).mean(-1).exp()
    return -torch.minimum(ratio * deltas, ratio.clamp(0.97, 1.04) * deltas).mean()


def mended(new, old, deltas) -> Tensor:
    """The clip of each token, but bad ones that fall are pushed, and no rising ones."""
    ratio, deltas = (new - old).exp(), deltas[..., None]
    gains = torch.minimum(ratio * deltas, ratio.clamp(0.8, 1.2) * deltas)
    gains = torch.where((deltas < 0) & (ratio < 0.8), ratio * deltas, gains)
    return -torch.where((deltas < 0) & (ratio > 1.2), 0.0, gains).mean()


def share_of_ones(setting: Setting, loss_fn) -> Tensor:
    """The reward of the last of 12 rollouts, at 24 tokens a response. -> [seed]"""
    model = TinyLM(10, seeds=setting.seeds)
    policy = make_policy(model, Sampler(24), setting.seeds)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01 * setting.rate)
    for _ in range(round(12 * setting.length)):
        rollout = policy.sample(torch.zeros(8, 2, dtype=torch.long), 8)
        rewards = token_share(rollout.responses, None, 1)  # [seed batch trial]
        deltas = compute_deltas(rewards, "normalized_rewards")
        with torch.no_grad():
            old = policy.log_probs(rollout)
        for _ in range(4):
            loss = loss_fn(policy.log_probs(rollout), old, deltas)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return rewards.mean((1, 2))


def rare_token(setting: Setting, mode: str) -> Tensor:
    """The chance of a token that is paid and had 0.01, after ten rollouts. -> [seed]"""
    torch.manual_seed(setting.seeds[0])
    start = torch.zeros(10)
    start[0] = torch.tensor(9 * 0.01 / 0.99).log()
    logits = start.repeat(len(setting.seeds), 1).requires_grad_()  # [seed token]
    optimizer = torch.optim.SGD([logits], lr=setting.rate)
    for _ in range(round(10 * setting.length)):
        log_policy = logits.detach().log_softmax(-1)
        drawn = torch.multinomial(log_policy.exp(), 8 * 16, replacement=True)
        old = log_policy.gather(1, drawn).view(-1, 8, 16, 1)
        rewards = (drawn == 0).float().view(-1, 8, 16)  # [seed batch trial]
        deltas = compute_deltas(rewards, "normalized_rewards")
        for _ in range(16):
            new = logits.log_softmax(-1).gather(1, drawn).view_as(old)
            loss = compute_loss(new, deltas, mode, old, epsilon_high=0.2).sum()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return logits.detach().softmax(-1)[:, 0]


penalized = with_overlong_penalty(ended_reward, 6, 2)
dapo_pieces: dict[str, Any] = {
    "reward_fn": penalized,
    "aggregation": "token_mean",
    "epsilon_high": 0.28,
    "num_resamples": 3,
}
dr_grpo: dict[str, Any] = {"deltas_mode": "centered_rewards", "aggregation": "constant"}
NO_PROMPTS = {"other prompts": "the epochs draw from all 216 of them"}
Variant = partial(Claim, not_tried=NO_PROMPTS)
Once = partial(Claim, not_tried={"other prompts": "there is one prompt"})
# fmt: off
CLAIMS = (
    Variant("13.dr_grpo", "Dr. GRPO leads GRPO.",
        (partial(paid, **dr_grpo), paid)),
    Variant("13.rloo", "RLOO stays within 0.06 of GRPO.",
        (partial(paid, deltas_mode="leave_one_out"), paid), within=0.06),
    Variant("13.cispo", "CISPO falls behind GRPO.",
        (paid, partial(paid, loss_mode="cispo", aggregation="token_mean"))),
    Variant("13.dapo",
        "DAPO is behind GRPO, with tied groups asked again in place of other prompts.",
        (paid, partial(paid, **dapo_pieces))),
    Claim("13.penalty",
        "A loud penalty for length is learned first: responses become shorter.",
        (written, partial(written, **dapo_pieces)),
        not_tried=NO_PROMPTS | {BEST: "a longer response is not better"}),
    Variant("13.stale", "A clip around an old writer slows learning.",
        (stale, partial(stale, old_log_probs_from="sampler"))),
    Once("13.gspo",
        "At 24 tokens, a clip for each response leads a clip for each token.",
        (partial(share_of_ones, loss_fn=per_response),
         partial(share_of_ones, loss_fn=per_token))),
    Once("13.imbalance",
        "A clip for each token learns more if both sides of its bad tokens are mended.",
        (partial(share_of_ones, loss_fn=mended),
         partial(share_of_ones, loss_fn=per_token))),
    Once("13.rare", "A rare token rises faster under CISPO than under the clip.",
        (partial(rare_token, mode="cispo"), partial(rare_token, mode="clipped"))),
)
# fmt: on
