"""The exercises of 16_tools_and_turns."""

import torch

from grpo_course.classroom.check import case, exercise
from grpo_course.lessons.exercises.shared import numbers


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
def turn_deltas(rewards):
    """float [... batch trial turn] -> float [... batch trial turn]"""
    to_go = rewards.flip(-1).cumsum(-1).flip(-1)
    return to_go - to_go.mean(dim=-2, keepdim=True)


turn_deltas.insight = (
    "A turn answers for what comes after it, and is compared with the same turn of its "
    "group. Notebook 08 calls this the return."
)
turn_deltas.cases = (
    case(
        "one group of two responses, three turns",
        rewards=[[[0.5, 0.25, 0.0], [0.0, 0.0, 1.0]]],
    ),
    case("two groups of three, two turns", rewards=numbers(2, 3, 2)),
    case("two seeds, two groups of four", rewards=numbers(2, 2, 4, 3)),
    case("one turn", rewards=[[[1.0], [0.0], [0.0]], [[0.0], [2.0], [1.0]]]),
)
turn_deltas.mistakes = """
rewards.flip(-1).cumsum(-1).flip(-1) => rewards.cumsum(-1) | You add up what came \
*before* a turn. It cannot have caused that: add up from the turn to the end.
rewards.flip(-1).cumsum(-1).flip(-1) => rewards | Each turn is given its own reward \
alone, and nothing of what it makes possible later: add up from the turn to the end.
rewards.flip(-1).cumsum(-1).flip(-1) => rewards.flip(-1).cumsum(-1).flip(-1) - \
rewards | You add up what comes after a turn and leave out its own reward. The sum \
begins with the turn itself.
rewards.flip(-1).cumsum(-1).flip(-1) => rewards.sum(-1, keepdim=True) + 0 * rewards \
| Every turn is given the sum of the whole response. A turn is not to answer for what \
was earned before it.
rewards.flip(-1).cumsum(-1).flip(-1) => rewards.flip(-1).cumsum(-1) | Your sums stand \
in the wrong order: the last turn comes first. Flip once more.
 - to_go.mean(dim=-2, keepdim=True) => | These are the sums. A delta is measured from \
the mean of the group at the same turn.
to_go.mean(dim=-2, keepdim=True) => to_go.mean(dim=(-2, -1), keepdim=True) | One mean \
for all turns of a group: early turns have more ahead of them, and would look better \
than late ones.
to_go.mean(dim=-2, keepdim=True) => rewards.mean(dim=-2, keepdim=True) | You take off \
the mean of the turn's own reward. Take off that of its sum to the end.
to_go - to_go.mean(dim=-2, keepdim=True) => (to_go - to_go.mean(dim=-2, \
keepdim=True)) / to_go.std(dim=-2, keepdim=True) | You divide by the standard \
deviation as well. The task only takes off the mean.
"""
