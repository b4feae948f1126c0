"""The exercises of 16_tools_and_turns."""

import torch

from grpo_course.classroom.check import case, exercise
from grpo_course.lessons.look_ups import (
    ask_tool,
    final_reward,
    read_before,
    turn_rewards,
)


@exercise("16.1")
def turn_mask(lengths, width):
    """int [... trial turn], int -> bool [... trial pos]"""
    ends = lengths.cumsum(-1)
    pos = torch.arange(width)
    ended = (pos[:, None] >= ends[..., None, :]).sum(-1)
    return (ended % 2 == 0) & (pos < ends[..., -1:])


turn_mask.insight = (
    "The mask comes from who wrote, not from what was written: a policy can write "
    "anything, a tool's marker too."
)
turn_mask.cases = (
    case("one token, two of the tool, one token", lengths=[[1, 2, 1]], width=5),
    case(
        "two responses; one ends after its first turn",
        lengths=[[2, 3, 1, 0, 0], [3, 0, 0, 0, 0]],
        width=7,
    ),
    case(
        "five turns, two prompts",
        lengths=[
            [[1, 1, 2, 2, 1], [2, 1, 1, 0, 0]],
            [[3, 2, 2, 0, 0], [1, 4, 1, 1, 2]],
        ],
        width=9,
    ),
    case("cut off after the tool", lengths=[[1, 2, 0], [2, 1, 1]], width=6),
    case("cut off, four turns", lengths=[[1, 1, 1, 2], [2, 1, 0, 0]], width=7),
    case("the tool says nothing", lengths=[[1, 0, 2], [1, 1, 1]], width=4),
    case("the tool begins", lengths=[[0, 2, 1], [1, 1, 1]], width=4),
    case("no tool was called", lengths=[[4, 0, 0], [2, 0, 0]], width=4),
)
turn_mask.mistakes = """
(ended % 2 == 0) => (ended % 2 == 1) | The mask is the wrong way round: it is True \
where the tool wrote.
 & (pos < ends[..., -1:]) => | The end is missing: after the last turn nobody wrote, \
and the mask is False there.
(ended % 2 == 0) & => | Only the end is seen: the tool's tokens are inside it, and do \
not count.
(ended % 2 == 0) => (ended == 0) | Only the first turn counts. The policy writes \
again after the tool.
pos[:, None] >= ends => pos[:, None] > ends | Each turn is one token too long: \
positions count from 0, so a turn of one token ends before position 1.
pos < ends[..., -1:] => pos < ends.max() | All responses end where the longest does. \
Each has its own last end.
return torch.arange(width) < lengths[..., ::2].sum(-1, keepdim=True) | Right is how \
many tokens the policy wrote, and not where: the tool's stand between them. A turn \
ends where the lengths up to it are added up, with cumsum.
return (torch.arange(width) < (ends := lengths.cumsum(-1))[..., :1]) | \
((torch.arange(width) >= ends[..., 1:2]) & (torch.arange(width) < ends[..., 2:3])) | \
You look at the first three turns alone. There may be any number: the policy's are \
the first, the third, the fifth and so on.
lengths.cumsum(-1) => lengths | Lengths are no positions. A turn begins where the one \
before it has ended: add them up with cumsum.
"""


@exercise("16.2")
def for_honesty(asked, written):
    """int [batch 5], int [... batch trial turn] -> float [... batch trial turn]"""
    read, honest = asked[:, 4:], torch.ones_like(written[..., 0]).bool()
    for turn in range(written.shape[-1]):
        honest &= written[..., turn] == read
        read = ask_tool(asked, written[..., turn])
    return honest[..., None].float().expand(written.shape)


for_honesty.insight = (
    "A right answer says little about the turns before it. Whoever pays for honest "
    "chains has to know what each turn should have written."
)
for_honesty.cases = (
    case("one call", asked=[[2, 0, 3, 1, 0]], written=[[[0, 2], [0, 1], [1, 2]]]),
    case(
        "two calls, two prompts",
        asked=[[2, 0, 3, 1, 0], [1, 0, 3, 2, 2]],
        written=[[[0, 2, 3], [1, 2, 3], [0, 2, 0]], [[2, 3, 2], [2, 2, 3], [0, 1, 2]]],
    ),
    case(
        "three calls",
        asked=[[3, 1, 0, 2, 2]],
        written=[[[2, 0, 3, 2], [3, 3, 0, 2], [2, 1, 1, 1], [2, 0, 3, 1]]],
    ),
    case(
        "two seeds",
        asked=[[2, 0, 3, 1, 0]],
        written=[[[[0, 2], [3, 1]]], [[[2, 2], [0, 2]]]],
    ),
    case("no call", asked=[[2, 0, 3, 1, 0]], written=[[[0], [2]]]),
)
for_honesty.mistakes = """
honest &= => honest = | You look at the last turn alone. The calls before it are \
turns, too: a conversation is honest while every turn so far was.
range(written.shape[-1]) => range(written.shape[-1] - 1) | You look at the calls \
alone. The answer is a turn, too.
read = ask_tool(asked, written[..., turn]) => read = written[..., turn] | You compare \
a turn with what the policy wrote before it. In between, the tool has said what lies \
in that box.
asked[:, 4:] => asked[:, :1] | You begin with what lies in box 0. The box that the \
prompt names stands last.
return (written == read_before(asked, written)).float() | Each turn is paid for \
itself. The reward is one for the whole conversation: 1 for all of its turns, or 0 for \
all.
return turn_rewards(asked, written).sum(-1, keepdim=True).expand(written.shape) | A \
chain that is right in part is paid in part. Honest is one of which every turn was \
right.
return final_reward(asked, written)[..., None].expand(written.shape) | Every right \
answer is paid, and so is luck. What did each turn read, and what did it write?
honest[..., None].float() => ((written[..., -1:] == read_before(asked, written)[..., \
-1:]) * final_reward(asked, written)[..., None]) | A right answer that is copied can \
still follow wrong calls that meet by luck. Look at every turn.
"""


@exercise("16.3")
def for_the_turn(asked, written):
    """int [batch 5], int [... batch trial turn] -> float [... batch trial turn]"""
    rewards = turn_rewards(asked, written)
    return rewards.flip(-1).cumsum(-1).flip(-1)


for_the_turn.insight = (
    "A turn answers for its own reward and what comes after. Notebook 08 calls this "
    "the return."
)
for_the_turn.cases = (
    case("one call", asked=[[2, 0, 3, 1, 0]], written=[[[0, 2], [0, 1], [1, 2]]]),
    *for_honesty.cases[1:],
)
for_the_turn.mistakes = """
rewards.flip(-1).cumsum(-1).flip(-1) => rewards.cumsum(-1) | You add up what came \
*before* a turn. It cannot have caused that: add up from the turn to the end.
rewards.flip(-1).cumsum(-1).flip(-1) => rewards | Each turn is given its own reward \
alone, and nothing of what it makes possible later: add up from the turn to the end.
rewards.flip(-1).cumsum(-1).flip(-1) => rewards.flip(-1).cumsum(-1).flip(-1) - \
rewards | You add up what comes after a turn and leave out its own reward. The sum \
begins with the turn itself.
rewards.flip(-1).cumsum(-1).flip(-1) => rewards.sum(-1, keepdim=True) + 0 * rewards \
| Every turn is given the sum of the whole conversation. A turn is not to answer for \
what was earned before it.
rewards.flip(-1).cumsum(-1).flip(-1) => rewards.flip(-1).cumsum(-1) | Your sums stand \
in the wrong order: the last turn comes first.
rewards.flip(-1).cumsum(-1).flip(-1) => rewards.cumsum(-1).flip(-1) | You add up from \
the front and then turn the sums round. Turn the rewards round first.
rewards.flip(-1).cumsum(-1).flip(-1) => rewards.flip(-2).cumsum(-2).flip(-2) | You add \
up over the conversations of the group. Go along the turns of one conversation.
rewards.flip(-1).cumsum(-1).flip(-1) => (to_go := \
rewards.flip(-1).cumsum(-1).flip(-1)) - to_go.mean(-2, keepdim=True) | Return the sums \
themselves. The training takes off the mean of the group.
return final_reward(asked, written)[..., None].expand(written.shape) | This is the \
reward of the answer. Begin from turn_rewards, which pays turn by turn.
"""
