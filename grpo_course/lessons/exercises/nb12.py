"""The exercises of 12_gsm8k_grpo."""

from functools import cache
from weakref import WeakSet

import torch

from grpo_course.classroom.check import case, exercise
from grpo_course.formulas import compute_loss
from grpo_course.lessons.exercises.shared import mask_of, numbers
from grpo_course.lessons.finale import held_out, read_record, share_right
from grpo_course.loop import Rollout


class Held:
    """Groups whose graph is kept: until backward(), or until nothing refers to it."""

    def __init__(self, groups):
        self.groups = set(groups)

    def release(self, gradient):
        self.groups = set()


class Table:
    """A policy with weights [prompt pos vocab], which notes what it is asked and keeps.

    asked: the groups that it scored; most: of how many it held the graph at once.
    """

    def __init__(self, weights):
        self.weights = torch.nn.Parameter(weights)
        self.model = torch.nn.ParameterList([self.weights])
        self.asked, self.most = set(), 0
        self.held: WeakSet[Held] = WeakSet()

    def log_probs(self, rollout):
        for name, axes in (
            ("prompts", "[batch pos]"),
            ("responses", "[batch trial pos]"),
        ):
            shape = list(getattr(rollout, name).shape)
            if len(shape) != len(axes.split()):
                raise ValueError(
                    f"rollout.{name} is of shape {shape}. It should be {axes}: "
                    f"a single group is a batch of one."
                )
        groups = rollout.prompts[:, 0]
        scores = self.weights[groups].log_softmax(-1)[:, None]  # [batch 1 pos vocab]
        scores = scores.expand(-1, rollout.responses.shape[1], -1, -1)
        scores = scores.gather(-1, rollout.responses[..., None]).squeeze(-1)
        self.asked |= set(groups.tolist())
        if scores.requires_grad:
            held = Held(groups.tolist())
            scores.register_hook(held.release)
            self.held.add(held)
            kept = set().union(*(each.groups for each in self.held))
            self.most = max(self.most, len(kept))
        return scores

    def sample(self, prompts, num_responses):
        """Whatever the prompt, the same token throughout."""
        shape = len(prompts), num_responses, self.weights.shape[1]
        return Rollout(prompts, torch.zeros(shape, dtype=torch.long), None)


def left_behind(function, start):
    """Which groups an answer computed, and the gradient that it left on the weights.

    Of one that holds several groups at once, this alone is told.
    """
    policy, rollout, deltas = start()
    function(policy, rollout, deltas)
    if policy.most > 1 and policy.weights.grad is not None:
        right = left_behind(add_gradients.solution, start)
        return right | {"groups held at once": "several"}
    return {
        "groups held at once": "one",
        "groups computed": sorted(policy.asked),
        "gradient": policy.weights.grad,
    }


def started(deltas, shift):
    """A rollout of one group for each row of deltas, of responses up to four tokens."""

    def start():
        batch, trial = len(deltas), len(deltas[0])
        tokens = torch.arange(batch * trial * 4).mul(7).add(shift)
        lengths = torch.arange(batch * trial).mul(5).add(shift).remainder(4) + 1
        rollout = Rollout(
            torch.arange(batch)[:, None],
            (tokens // 3 % 5).reshape(batch, trial, 4),
            mask_of(lengths.reshape(batch, trial), 4),
        )
        return Table(numbers(batch, 4, 5, shift=shift)), rollout, torch.tensor(deltas)

    start.__name__ = f"{len(deltas)} groups of {len(deltas[0])}, deltas {deltas}"
    return start


@exercise("12.1", use=left_behind)
def add_gradients(policy, rollout, deltas):
    """policy, Rollout, float [batch trial] -> None"""
    parts = zip(rollout.prompts, rollout.responses, rollout.mask, deltas)
    for prompt, responses, mask, delta in parts:
        if delta.any():
            group = Rollout(prompt[None], responses[None], mask[None])
            log_probs = policy.log_probs(group)  # [1 trial pos]
            old, mask = log_probs.detach(), mask[None]
            loss = compute_loss(log_probs, delta[None], "clipped", old, mask=mask)
            (loss / len(deltas)).backward()


TIED = [0.0, 0.0, 0.0, 0.0]
MIXED = [1.5, -0.5, -0.5, -0.5]
add_gradients.insight = (
    "The same gradient, with one group in memory: backward() adds, so a mean over "
    "groups can be taken one group at a time. It is called gradient accumulation."
)
add_gradients.cases = (
    case("two groups", start=started([MIXED, [1.0, 1.0, -1.0, -1.0]], 1)),
    case(
        "a tied group among three",
        start=started([MIXED, TIED, [-1.7, 0.5, 0.5, 0.7]], 2),
    ),
    case(
        "a tied group at first", start=started([TIED, MIXED, [0.6, 0.6, 0.6, -1.8]], 3)
    ),
    case(
        "a response that is as good as the mean of its group",
        start=started([[1.25, 0.0, -1.25], [0.0, -1.25, 1.25]], 4),
    ),
    case("a long gradient", start=started([[30.0, -30.0], [-20.0, 20.0]], 5)),
)
add_gradients.mistakes = """
return compute_loss(policy.log_probs(rollout), deltas, "clipped", \
policy.log_probs(rollout).detach(), mask=rollout.mask).backward() | The gradient may \
be right, but what was computed for several groups is kept until one backward(). Call \
it inside the loop, once a group.
loss / len(deltas) => loss | Your gradient is as many times too long as there are \
groups. The loss of the batch is the mean over its groups, and you add them up.
len(deltas) => deltas.any(-1).sum() | You divide by the number of groups that are not \
tied. The mean is over all groups: a tied one adds zero to it and still counts.
len(deltas) => deltas.numel() | You divide by the number of responses. Each loss is \
already the mean over the responses of its group: divide by the number of groups.
, mask=mask => | The mask is missing, so tokens behind the end of a response count. \
Hand over mask[None].
if delta.any(): => if True: | A group whose deltas are all zero is computed as well. \
It costs as much as the others and adds zero: pass over it.
if delta.any(): => if delta.sum() > 0: | Your test takes mixed groups for tied: the \
deltas of each group add up to zero. Ask whether any of them is not.
if delta.any(): => if delta.all(): | Your test takes some mixed groups for tied: in a \
mixed group a δ can be 0 as well. A group is tied only if all of its δ are.
rollout.mask, deltas) => rollout.mask, \
deltas[: (*deltas.any(-1).tolist(), False).index(False)]) | Your loop ends at the \
first tied group. Pass over this group and go on with the next, as `continue` does.
rollout.mask, deltas) => rollout.mask, \
deltas[: 1 + deltas.any(-1).tolist().index(True)]) | Your loop ends with the first \
group that it computes. Does a `return` or a `break` stand inside it?
(loss / len(deltas)) => (-loss / len(deltas)) | Your gradient has the wrong sign: a \
step down the loss is what makes good answers likelier.
len(deltas) => deltas.shape[1] | You divide by the number of responses in a group. \
Each loss is already their mean: divide by the number of groups.
(loss / len(deltas)).backward() => policy.model.zero_grad(); \
(loss / len(deltas)).backward() | You clear the gradient, and with it what the groups \
before have added. `update` clears it after its step.
(loss / len(deltas)).backward() => loss / len(deltas) | In the end no weight has a \
gradient. Call backward() once a group, inside the loop, and clear nothing after it.
"""


def subtracts(operation, left, right):
    """str, int, int -> bool"""
    return operation == "-"


@cache
def answered():
    return held_out(read_record())


def found(rule):
    """Whether a rule does what the task asks, on the record that the learner sees."""
    apart: dict[bool, list] = {True: [], False: []}
    for one in answered():
        said = rule(one["operation"], one["left"], one["right"])
        if said is None:
            return False
        apart[bool(said)].append(one)
    if not all(apart.values()):
        return False
    mine, others = map(share_right, apart.values())
    return bool(mine[-1] < 0.1 and (others.diff() >= 0).all())


def yes_or_no(function, *args):
    """What a rule says, as `if` takes it: 1 is yes. A missing `return` stays None."""
    said = function(*args)
    return None if said is None else bool(said)


def said_of(function, *args):
    """What a rule says; one that does what the task asks is right, whatever it says."""
    said = yes_or_no(function, *args)
    return is_lost.solution(*args) if said is not None and found(function) else said


@exercise("12.2", use=said_of, exact=True, draft=subtracts)
def is_lost(operation, left, right):
    """str, int, int -> bool"""
    return operation == "+" and left + right in (20, 21)


is_lost.insight = (
    "What is lost are the sums of 20 and 21, all or most of which your rule picks. "
    "What does training hold of such sums?"
)
# Calculations that were held out, and none on which nobody could decide: 12 - 10 is
# lost as well.
ASKED = (
    "10 - 3, 9 + 11, 4 + 6, 12 + 8, 9 + 7, 8 + 12, 6 + 10, 9 + 12, 11 - 7, 12 + 9, "
    "3 + 1, 10 + 11, 7 + 2, 8 - 8, 11 + 10, 7 + 9, 10 - 8, 10 + 6, 11 + 9, 8 + 6"
)
MINUS = "Your rule picks a subtraction. All of these together never fall."
LOST = (
    "This problem is lost, and your rule leaves it out: some runs have it right in the "
    "first eight updates, and fewer after 32."
)
KEPT = (
    "Your rule picks this problem, which nearly every run has right at the end. Print "
    "the result of each lost problem."
)


def about(sign, left, right):
    """What to say where a rule is wrong about one calculation."""
    if sign == "-":
        return MINUS
    return LOST if is_lost.solution(sign, left, right) else KEPT


def calculated(text):
    left, sign, right = text.split()
    parts = {"operation": sign, "left": int(left), "right": int(right)}
    return case(text, about(sign, int(left), int(right)), **parts)


is_lost.cases = tuple(map(calculated, ASKED.split(", ")))
is_lost.mistakes = """
return operation == "-" | All subtractions together never fall from one stop to the \
next. Look for what was right after 4 or 8 updates, and is wrong after 32.
return operation == "+" | Additions are too many: most of them come out right at the \
end. What makes the lost ones different?
left + right in (20, 21) => left + right > 12 | You pick too many: sums such as 9 + 7 \
are right to the end. Where does it begin?
left + right in (20, 21) => left + right == 20 | You have half of them. Another \
result is lost, too.
left + right in (20, 21) => left + right == 21 | You have half of them. Another \
result is lost, too.
left + right in (20, 21) => left + right > 15 | You pick too many: 6 + 10 and 9 + 7, \
say, are right to the end. Look at the results.
return left > 8 | A large first number is not it: 10 + 6 is right to the end, and 8 + \
12 is lost. Look at the result.
"""
