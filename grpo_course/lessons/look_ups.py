"""Notebook 16's world: a chain of look-ups, so small that all of it is listed.

Four boxes hold the numbers 0 to 3, each once. The prompt names a box. The policy writes
a number, the tool says what lies in the box of that number, and after some calls the
policy writes its answer. Right is the number at the end of the chain that begins with
the prompt's box. So the policy does best if it always copies what it has just read.

    prompts     int [batch 5]: what lies in each box, and the first box
    written     int [... turn]: what the policy wrote, its calls and then its answer
    read        int [... turn]: what stood before each of these
    logits      float [seed turn read write]: a policy is a table for each of its turns,
                or one for all tokens, the tool's too
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import permutations

import torch
from einops import einsum
from torch import Generator, Tensor

from grpo_course.checks import require_at_least, require_inside
from grpo_course.sampling import draw

BOXES = 4


def all_prompts() -> Tensor:
    """Every order of the numbers in the boxes, with every first box. -> int [96 5]"""
    orders = torch.tensor([*permutations(range(BOXES))]).repeat_interleave(BOXES, dim=0)
    first = torch.arange(BOXES).repeat(len(orders) // BOXES)
    return torch.cat([orders, first[:, None]], dim=-1)


def ask_tool(prompts: Tensor, box: Tensor) -> Tensor:
    """What lies in a box. int [batch 5], int [... batch trial] -> int [... batch trial]

    The prompts are as many as the rows that ask.
    """
    boxes = prompts[:, :BOXES].expand(*box.shape[:-1], BOXES)
    return boxes.gather(-1, box)


def right_answers(prompts: Tensor, calls: int) -> Tensor:
    """The number at the end of the chain. int [batch 5] -> int [batch]"""
    number = prompts[:, BOXES:]
    for _ in range(calls):
        number = ask_tool(prompts, number)
    return number[:, 0]


def read_before(prompts: Tensor, written: Tensor) -> Tensor:
    """The number that the policy has read last, at each of its turns.

    int [batch 5] and [... batch trial turn] -> int [... batch trial turn]
    """
    read = [prompts[:, BOXES:].expand(written.shape[:-1])]
    read += [ask_tool(prompts, call) for call in written[..., :-1].unbind(-1)]
    return torch.stack(read, dim=-1)


def final_reward(prompts: Tensor, written: Tensor) -> Tensor:
    """1 for the right answer. [batch 5], [... batch trial turn] -> [... batch trial]"""
    calls = written.shape[-1] - 1
    return (written[..., -1] == right_answers(prompts, calls)[:, None]).float()


def turn_rewards(prompts: Tensor, written: Tensor) -> Tensor:
    """An equal part for each turn, as long as all turns were right. -> [... trial turn]

    They add up to 1 where every call was right and the answer, too.
    """
    right = (written == read_before(prompts, written)).float().cumprod(dim=-1)
    return right / written.shape[-1]


def for_the_answer(prompts: Tensor, written: Tensor) -> Tensor:
    """Each turn is given the reward of the answer."""
    return final_reward(prompts, written)[..., None].expand(written.shape)


def for_the_sum(prompts: Tensor, written: Tensor) -> Tensor:
    """Each turn is given all that the conversation earned."""
    earned = turn_rewards(prompts, written).sum(dim=-1, keepdim=True)
    return earned.expand(written.shape)


def same_place(prompts: Tensor, written: Tensor) -> Tensor:
    """The answer's reward to each turn, and GiGPO's comparison added. -> [... turn]

    It compares, at each turn, those of a group that have read the same number there.
    """
    reward = for_the_answer(prompts, written)
    read = read_before(prompts, written)  # [... trial turn]
    same = (read[..., :, None, :] == read[..., None, :, :]).float()
    mean = (same * reward[..., None, :, :]).sum(dim=-2) / same.sum(dim=-2)
    return reward + (reward - mean)


def copying(
    calls: int, share: float = 0.4, seeds: Sequence[int] | None = None
) -> Tensor:
    """The logits of a policy that copies with this probability at each turn.

    -> [turn read write], with a seed axis in front where there are seeds. What it does
    not copy, it makes up: the other numbers are equally likely. Raises ValueError for
    fewer than no calls and for a share that is no probability.
    """
    require_at_least("calls", calls, 0)
    require_inside("share", share, {"above": 0, "below": 1})
    table = torch.full((BOXES, BOXES), (1 - share) / (BOXES - 1))
    logits = table.fill_diagonal_(share).log().repeat(calls + 1, 1, 1)
    return logits if seeds is None else logits.repeat(len(seeds), 1, 1, 1)


def score(logits: Tensor, read: Tensor, written: Tensor) -> Tensor:
    """Log-probability of each turn. int [seed batch trial turn] -> [... turn]

    Without a seed axis in `logits`, there is none in the other two.
    """
    log_policy, turn = logits.log_softmax(dim=-1), torch.arange(logits.shape[-3])
    if logits.ndim == 3:
        return log_policy[turn, read, written]
    seed = torch.arange(len(logits))[:, None, None, None]
    return log_policy[seed, turn, read, written]


@torch.no_grad()
def converse(
    logits: Tensor, prompts: Tensor, num_responses: int, generators: Sequence[Generator]
) -> Tensor:
    """What the policy writes in its conversations. -> int [seed batch trial turn]"""
    batch = len(prompts)
    read = prompts[:, BOXES:].expand(len(logits), batch, num_responses)
    written = []
    for table in logits.log_softmax(dim=-1).unbind(dim=1):  # [seed read write]
        rows = read.flatten(1)[..., None].expand(-1, -1, BOXES)
        said = draw(table.gather(1, rows), generators)
        written.append(said.view_as(read))
        read = ask_tool(prompts, written[-1])
    return torch.stack(written, dim=-1)


def example_conversations(tables: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Four on one prompt: asked, read, written, and the reward of the answer.

    `tables` are one policy's logits, [turn read write]; the others as above.
    """
    asked = all_prompts()[[82]]
    written = converse(tables[None], asked, 4, [torch.Generator().manual_seed(0)])[0]
    return asked, read_before(asked, written), written, final_reward(asked, written)


def train_chain(
    credit: Callable[[Tensor, Tensor], Tensor],
    plan: Sequence[int] = (3,),
    rate: float = 0.2,
    group: int = 8,
    prompts: int = 16,
    copies: float = 0.4,
    updates: int = 60,
    seeds: Sequence[int] = range(16),
) -> Tensor:
    """The logits of trained policies, [seed turn read write].

    `credit` says, of prompts and what was written, what each turn is given, [seed batch
    trial turn]. Its delta is that minus the mean of the group at the same turn.
    An update is made of `prompts` times `group` conversations. `plan` says how many
    calls the problems have, one after the other, each with its part of the updates.
    """
    logits = copying(max(plan), copies, seeds).requires_grad_()
    optimizer = torch.optim.Adam([logits], lr=rate)
    generators = [torch.Generator().manual_seed(seed) for seed in seeds]
    order = torch.Generator().manual_seed(0)
    for calls in plan:
        turns = calls + 1
        for _ in range(updates // len(plan)):
            asked = all_prompts()[torch.randperm(96, generator=order)[:prompts]]
            tables = logits[:, :turns]  # a table for each turn
            written = converse(tables, asked, group, generators)
            given = credit(asked, written)
            deltas = given - given.mean(dim=-2, keepdim=True)
            log_probs = score(tables, read_before(asked, written), written)
            loss = -(deltas * log_probs).mean(dim=(1, 2, 3)).sum()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return logits.detach()


# All conversations


@dataclass(frozen=True)
class Listed:
    """Every conversation on every prompt; all but prompts are [prompt all turn]."""

    prompts: Tensor
    written: Tensor
    read: Tensor

    @property
    def reward(self) -> Tensor:
        """Of the answer. -> [prompt all]"""
        return final_reward(self.prompts, self.written)

    def chance(self, logits: Tensor) -> Tensor:
        """The probability of each on its prompt. [turn read write] -> [prompt all]"""
        return score(logits, self.read, self.written).sum(dim=-1).exp()


def list_all(calls: int) -> Listed:
    """All conversations with so many calls: 4 ** (calls + 1) on each of 96 prompts."""
    require_at_least("calls", calls, 0)
    prompts = all_prompts()
    every = torch.cartesian_prod(*[torch.arange(BOXES)] * (calls + 1))
    written = every.view(-1, calls + 1).expand(len(prompts), -1, -1)
    return Listed(prompts, written, read_before(prompts, written))


def success(logits: Tensor) -> Tensor:
    """The exact probability of a right answer. [seed turn read write] -> [seed]"""
    world = list_all(logits.shape[1] - 1)
    chances = torch.stack([world.chance(each) for each in logits])
    return (chances * world.reward).sum(dim=-1).mean(dim=-1)


def pushes(world: Listed, logits: Tensor, deltas: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and noise of what one response does to each turn's table, exactly.

    -> [turn read write] and [turn]. A response pushes a table by its delta times the
    gradient of log pi by the table's logits. The noise is the total variance of that,
    over prompts and responses. `deltas` are [prompt all turn], what each turn of each
    conversation is given; the policy is one, [turn read write].
    """
    logits, deltas = logits.double(), deltas.double()
    chance = (world.chance(logits) / len(world.prompts))[..., None]
    means, noises = [], []
    for turn, table in enumerate(logits.softmax(dim=-1)):
        read, written = world.read[..., turn], world.written[..., turn]
        gradient = torch.eye(BOXES, dtype=table.dtype)[written] - table[read]
        push = deltas[..., turn, None] * gradient  # on the row that was read
        rows, weighed = read.flatten(), (chance * push).flatten(0, 1)
        mean = torch.zeros_like(table).index_add(0, rows, weighed)
        noises.append((chance * push.square()).sum() - mean.square().sum())
        means.append(mean)
    return torch.stack(means), torch.stack(noises)


def credit_pushes(
    logits: Tensor, credit: Callable[[Tensor, Tensor], Tensor]
) -> tuple[Tensor, Tensor]:
    """The pushes of a way to give credit: its deltas are around each prompt's mean.

    -> [turn read write] and [turn], over all conversations of one policy.
    """
    world = list_all(logits.shape[0] - 1)
    given = credit(world.prompts, world.written)
    chance = world.chance(logits)[..., None]
    return pushes(world, logits, given - (chance * given).sum(dim=1, keepdim=True))


# One table for all tokens


def tokens(prompts: Tensor, written: Tensor) -> tuple[Tensor, Tensor]:
    """What stands before each token of a conversation, and the token itself. [... pos]

    The tool's are among them: with one call, a box, its number and the answer.
    """
    read = read_before(prompts, written)
    text = torch.stack([read, written], dim=-1).flatten(-2)
    return text[..., :-1], text[..., 1:]


def token_push(table: Tensor, keep: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and noise of what a conversation with one call does to the table, exactly.

    -> [read write] and a number. One table, logits [read write], is used for each of
    the three tokens, and those count that bool `keep` [pos] names.
    """
    table, world = table.double(), list_all(1)
    chance = world.chance(table.repeat(2, 1, 1))
    reward = world.reward.double()
    deltas = reward - (chance * reward).sum(dim=1, keepdim=True)
    before, token = tokens(world.prompts, world.written)
    one_hot = torch.eye(BOXES, dtype=table.dtype)
    gradient = one_hot[token] - table.softmax(dim=-1)[before]
    rows = one_hot[before] * keep[:, None]  # which row of the table is pushed
    push = einsum(
        deltas, rows, gradient, "p all, p all pos r, p all pos w -> p all r w"
    )
    chance = (chance / len(world.prompts))[..., None, None]
    mean = (chance * push).sum(dim=(0, 1))
    return mean, (chance * push.square()).sum() - mean.square().sum()


def train_one_table(
    keep: Tensor,
    rate: float = 0.1,
    updates: int = 40,
    seeds: Sequence[int] = range(64),
) -> tuple[Tensor, Tensor]:
    """Exact P(right) [update seed], and the log [update seed pos], before each update.

    The log is -log pi of each token, in the mean. The policies have one call. Loss and
    log have the tokens that bool `keep` [pos] names. An update is made of 16 prompts
    with 8 conversations.
    """
    logits = copying(0, seeds=seeds).requires_grad_()
    optimizer = torch.optim.Adam([logits], lr=rate)
    generators = [torch.Generator().manual_seed(seed) for seed in seeds]
    order = torch.Generator().manual_seed(0)
    right, logged = [], []
    for _ in range(updates):
        right.append(success(logits.detach().expand(-1, 2, -1, -1)))
        asked = all_prompts()[torch.randperm(96, generator=order)[:16]]
        written = converse(logits.expand(-1, 2, -1, -1), asked, 8, generators)
        reward = final_reward(asked, written)
        deltas = (reward - reward.mean(dim=-1, keepdim=True))[..., None]
        before, token = tokens(asked, written)
        log_probs = score(logits.expand(-1, 3, -1, -1), before, token)
        optimizer.zero_grad()
        kept = log_probs[..., keep]
        (-deltas * kept).mean(dim=(1, 2, 3)).sum().backward()
        optimizer.step()
        logged.append(-kept.detach().mean(dim=(1, 2)))
    return torch.stack(right), torch.stack(logged)
