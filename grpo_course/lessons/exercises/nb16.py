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
torch.arange(width) => torch.arange(1, width + 1) | Your positions begin at 1, and \
each turn ends one token early. They count from 0.
pos < ends[..., -1:] => pos < ends.max() | All responses end where the longest does. \
Each has its own last end.
lengths.cumsum(-1) => lengths.cumsum(0) | You add up along the first axis, so the \
turns of one response are added to another's. Add up the turns of each response: \
cumsum(-1).
return torch.arange(width) < lengths[..., ::2].sum(-1, keepdim=True) | Right is how \
many tokens the policy wrote, and not where: the tool's stand between them. A turn \
ends where the lengths up to it are added up, with cumsum.
return (torch.arange(width) < (ends := lengths.cumsum(-1))[..., :1]) | \
((torch.arange(width) >= ends[..., 1:2]) & (torch.arange(width) < ends[..., 2:3])) | \
You look at the first three turns alone. There may be any number: the policy's are \
the first, the third, the fifth and so on.
lengths.cumsum(-1) => lengths | Lengths are no positions. A turn begins where the one \
before it has ended: add them up with cumsum.
(ended % 2 == 0) => (pos % 2 == 0) | Every second position is True, as if each turn \
were one token long. Ask which turn a position lies in.
lengths.cumsum(-1) => (lengths * (lengths > 0).cumprod(-1)).cumsum(-1) | You stop at \
the first empty turn. Others may follow: a tool says nothing, and the policy goes on.
lengths.cumsum(-1) => lengths.gather(-1, \
(lengths == 0).int().argsort(stable=True)).cumsum(-1) | You skip the empty turns, so what follows them goes to the \
wrong side. An empty turn is one, too: keep its place.
return ((n := (torch.arange(width)[:, None] > lengths.cumsum(-1)[..., None, :]).sum(-1)) \
% 2 == 0) & (n < lengths.shape[-1]) | Each turn is one token too long: a turn of one \
token has ended at position 1. Compare with >=, or give searchsorted right=True.
return ((n := (torch.arange(width)[:, None] >= lengths.cumsum(0)[..., None, :]).sum(-1)) \
% 2 == 0) & (n < lengths.shape[-1]) | You add up along the first axis, so the turns of \
one response are added to another's. Add up the turns of each response: cumsum(-1).
return (torch.arange(width) % 2 == 0).expand(*lengths.shape[:-1], width) | Every second \
position is True, as if each turn were one token long. Ask which turn a position lies in.
lengths.cumsum(-1) => (0 * lengths + lengths.flatten(0, -2)[0]).cumsum(-1) | All \
responses have the mask of the first. Each has turns of its own.
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
to_go.mean(dim=-2, keepdim=True) => to_go.mean(dim=-1, keepdim=True) | You compare a \
turn with the other turns of its own response. Compare it with the same turn of the \
other responses: the axis trial.
to_go.mean(dim=-2, keepdim=True) => to_go.mean(dim=(-2, -1), keepdim=True) | One mean \
for all turns of a group: early turns have more ahead of them, and would look better \
than late ones.
to_go.mean(dim=-2, keepdim=True) => to_go.mean(dim=-3, keepdim=True) | The mean is \
over the prompts. A group is the responses to one prompt: the axis trial.
to_go.mean(dim=-2, keepdim=True) => rewards.mean(dim=-2, keepdim=True) | You take off \
the mean of the turn's own reward. Take off that of its sum to the end.
rewards.flip(-1).cumsum(-1).flip(-1) => rewards.flip(-2).cumsum(-2).flip(-2) | You add \
up along trial, over the responses of a group. Add up the turns: the last axis.
to_go - to_go.mean(dim=-2, keepdim=True) => (to_go - to_go.mean(dim=-2, \
keepdim=True)) / to_go.std(dim=-2, keepdim=True) | You divide by the standard \
deviation as well. The task only takes off the mean.
to_go - to_go.mean(dim=-2, keepdim=True) => (to_go - to_go.mean(dim=-2, \
keepdim=True)) / (to_go.std(dim=-2, keepdim=True) + 1e-4) | You divide by the standard \
deviation as well. The task only takes off the mean.
to_go - to_go.mean(dim=-2, keepdim=True) => to_go.mean(dim=-2, keepdim=True) - to_go \
| The sign is the wrong way round: a turn that earned more than the mean has a \
positive delta.
to_go.mean(dim=-2, keepdim=True) => to_go.mean() | One mean for all turns of all \
groups. Compare a turn with the same turn of its own group.
to_go.mean(dim=-2, keepdim=True) => to_go.mean(dim=0, keepdim=True) | The mean is over \
the first axis. A group is the axis trial, the second from the end.
to_go.mean(dim=-2, keepdim=True) => to_go.median(dim=-2, keepdim=True).values | You \
take off the median. The task takes off the mean.
to_go.mean(dim=-2, keepdim=True) => rewards.sum(-1, keepdim=True).mean(dim=-2, \
keepdim=True) | You take off the mean of the whole sum. Take off that of the sum from \
this turn to the end.
to_go - to_go.mean(dim=-2, keepdim=True) => (to_go - to_go.mean(dim=-2, \
keepdim=True)) * to_go.shape[-2] / max(to_go.shape[-2] - 1, 1) | You leave the turn \
itself out of its mean. The mean is over the whole group.
"""
