"""What 16_tools_and_turns claims."""

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

from claims.runner import Claim, Setting
from grpo_course.lessons.exercises.nb16 import turn_deltas
from grpo_course.lessons.look_ups import (
    final_reward,
    read_before,
    success,
    train_chain,
    turn_rewards,
)
from grpo_course.loop import Rollout, TrainConfig, train
from grpo_course.sampling import draw
from grpo_course.sequences import ASK, TinyLM, prompt_state, response_logits


class ToolPolicy:
    """Writes a place; a tool says the number there; writes an answer.

    `mask` says which of the three tokens count, bool [3].
    """

    def __init__(self, mask: Tensor, seeds: range):
        self.model, self.mask = TinyLM(ASK + 1, seeds=seeds), mask
        self.generators = [torch.Generator().manual_seed(1000 + s) for s in seeds]

    def write(self, state: Tensor) -> Tensor:
        """One token of the policy's own. [seed row dim] -> int [seed row 1]"""
        log_policy = self.model.head(state).log_softmax(dim=-1)
        return draw(log_policy, self.generators)[..., None]

    @torch.no_grad()
    def sample(self, prompts: Tensor, num_responses: int) -> Rollout:
        state = prompt_state(self.model, prompts[:, 6:])
        state = state.repeat_interleave(num_responses, 1)
        place = self.write(state)
        table = prompts[:, :6].repeat_interleave(num_responses, 0)
        number = table.expand(len(place), -1, -1).gather(-1, place.clamp(max=5))
        text = torch.cat([place, number], dim=-1)  # [seed row pos]
        answer = self.write(self.model.read(text, state)[..., -1, :])
        text = torch.cat([text, answer], dim=-1).unflatten(1, (-1, num_responses))
        return Rollout(prompts, text, self.mask.expand(text.shape))

    def log_probs(self, rollout: Rollout) -> Tensor:
        logits = response_logits(self.model, rollout.prompts[:, 6:], rollout.responses)
        return logits.log_softmax(-1).gather(-1, rollout.responses[..., None])[..., 0]


def ask_for_place(number: int) -> Tensor:
    generator = torch.Generator().manual_seed(number)
    drawn = torch.randint(0, 6, (16, 7), generator=generator)
    return torch.cat([drawn, torch.full((16, 1), ASK)], dim=-1)


def right_answer(rollout: Rollout) -> Tensor:
    wanted = rollout.prompts[:, :6].gather(-1, rollout.prompts[:, 6:7])
    return (rollout.responses[..., -1] == wanted).float()


def with_tool(setting: Setting, masked: bool) -> Tensor:
    """The mean reward of the last five rollouts. -> [seed]"""
    mask = torch.tensor([True, not masked, True])
    policy = ToolPolicy(mask, setting.seeds)
    rate = 0.01 * setting.rate
    optimizer = torch.optim.Adam(policy.model.parameters(), lr=rate)
    epochs = round(60 * setting.length)
    config = TrainConfig(num_epochs=epochs, num_steps_per_epoch=2, num_responses=8)
    history = train(policy, ask_for_place, right_answer, optimizer, config)
    return history.epochs("mean_reward")[-5:].mean(dim=0)


def for_all_turns(rewards: Tensor, written: Tensor) -> Tensor:
    """The delta of a response, from rewards [... trial], for each of its turns."""
    return (rewards - rewards.mean(-1, keepdim=True))[..., None].expand(written.shape)


def by_trajectory(asked: Tensor, written: Tensor) -> Tensor:
    return for_all_turns(final_reward(asked, written), written)


def by_honesty(asked: Tensor, written: Tensor) -> Tensor:
    honest = (written == read_before(asked, written)).all(-1).float()
    return for_all_turns(honest, written)


def by_turn(asked: Tensor, written: Tensor) -> Tensor:
    return turn_deltas.solution(turn_rewards(asked, written))


def learned(
    setting: Setting,
    credit: Callable[[Tensor, Tensor], Tensor] = by_trajectory,
    rate: float = 0.1,
    budget: int = 30_000,
    **knobs,
) -> Tensor:
    """The exact probability of a right answer at the end. -> [seed]"""
    logits = train_chain(
        credit,
        rate=rate * setting.rate,
        budget=round(budget * setting.length),
        seeds=setting.seeds,
        **knobs,
    )
    return success(logits)


ALL_PROMPTS = {"other prompts": "prompts are drawn from all that there are"}
Chain = partial(Claim, not_tried=ALL_PROMPTS)
# fmt: off
CLAIMS = (
    Chain("16.mask", "With the tool's tokens out of the loss, more is learned.",
        (partial(with_tool, masked=True), partial(with_tool, masked=False))),
    Chain("16.turn", "Three calls: credit to the turn learns more than to the whole.",
        (partial(learned, credit=by_turn), learned)),
    Chain("16.luck", "Three calls: paid for honest chains alone, it learns more.",
        (partial(learned, credit=by_honesty), learned)),
    Chain("16.groups", "Three calls: groups of 8 learn more than groups of 32.",
        (learned, partial(learned, group=32))),
    Chain("16.few", "Groups of 8 on 64 prompts end as groups of 32 on 16 do.",
        (partial(learned, prompts=64), partial(learned, group=32)), within=0.05),
    Chain("16.updates", "Three calls: 4 prompts a batch learn more than 16.",
        (partial(learned, prompts=4), learned)),
    Chain("16.short", "Short chains first learn more than three calls at once.",
        (partial(learned, plan=(1, 2, 3)), learned)),
    Chain("16.start", "A start that copies more often learns more.",
        (partial(learned, copies=0.6), learned)),
)
# fmt: on
