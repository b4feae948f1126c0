"""The exercises of 10_bug_hunt: probes to write."""

import io
from collections.abc import Callable
from contextlib import redirect_stdout

import torch
from torch import Tensor

from grpo_course.classroom.check import Case, exercise
from grpo_course.lessons.hunt import probes
from grpo_course.lessons.hunt.defects import HEALTHY, broken, compiled
from grpo_course.lessons.hunt.probes import token_with

# A probe says yes or no, so what it looks at shows only in trainers where that alone is
# changed. These are made for it: a name, and an edit of the healthy script.
MADE = dict(
    line.split(" | ")
    for line in """
its deltas are rewards, times their sum | (centered / (groups.std(dim=1, \
keepdim=True) + 1e-4)).flatten() => rewards * rewards.sum()
its deltas are in units of the spread of the whole batch | (groups.std(dim=1, \
keepdim=True) + 1e-4) => (rewards.std() + 1e-4)
its deltas are not divided by a spread | (centered / (groups.std(dim=1, \
keepdim=True) + 1e-4)) => centered
its deltas are ranks in the group | (centered / (groups.std(dim=1, keepdim=True) + \
1e-4)).flatten() => groups.argsort(dim=1).argsort(dim=1).float().flatten()
its scores are those of chance | log_probs.gather(-1, batch.tokens[:, 1:, \
None]).squeeze(-1) => torch.full(batch.mask.shape, -3.0)
it is sure of every token | log_probs.gather(-1, batch.tokens[:, 1:, \
None]).squeeze(-1) => torch.zeros(batch.mask.shape)
it is sure of its responses, and of no prompt | log_probs.gather(-1, batch.tokens[:, \
1:, None]).squeeze(-1) => -3.0 * ~batch.mask
it is healthy, and draws another rollout | seed: int = 0 => seed: int = 30
its scores are lower by a hair | .squeeze(-1) => .squeeze(-1) - 3e-4
it is negated | s.beta * kl - gain => gain - s.beta * kl
it pushes every token down | s.beta * kl - gain => s.beta * kl + gain * deltas.sign()
it pulls every token up | s.beta * kl - gain => s.beta * kl - gain * deltas.sign()
it lets no good token go | torch.minimum(ratio * deltas, clipped * deltas) => \
torch.where(deltas > 0, ratio, torch.maximum(ratio, clipped)) * deltas
it lets no bad token go | torch.minimum(ratio * deltas, clipped * deltas) => \
torch.where(deltas < 0, ratio, torch.minimum(ratio, clipped)) * deltas
it lets good tokens go that have fallen | torch.minimum(ratio * deltas, clipped * \
deltas) => torch.where(deltas > 0, clipped, torch.maximum(ratio, clipped)) * deltas
it lets bad tokens go that have risen | torch.minimum(ratio * deltas, clipped * \
deltas) => torch.where(deltas < 0, clipped, torch.minimum(ratio, clipped)) * deltas
it clips nothing | torch.minimum(ratio * deltas, clipped * deltas) => ratio * deltas
it clips good and bad alike | torch.minimum(ratio * deltas, clipped * deltas) => \
clipped * deltas
its loss is twice as large | s.beta * kl - gain => 2 * (s.beta * kl - gain)
its KL is k2 | log_ratio.exp() - log_ratio - 1 => log_ratio**2 / 2
its KL pulls every token up | log_ratio.exp() - log_ratio - 1 => -log_probs
its loss has the KL's value, and no slope | s.beta * kl - gain => (s.beta * kl - \
gain).detach() + 0 * log_probs
its reference finds them unlikely | batch.ref_log_probs = self.score(batch) => \
batch.ref_log_probs = self.score(batch) - 2.0
its old scores are a little too high | batch.old_log_probs = self.score(batch) => \
batch.old_log_probs = self.score(batch) + 0.015
its old scores are a little too low | batch.old_log_probs = self.score(batch) => \
batch.old_log_probs = self.score(batch) - 0.015
one of its old scores is off | batch.old_log_probs = self.score(batch) => \
batch.old_log_probs = self.score(batch); \
batch.old_log_probs[tuple(batch.mask.nonzero()[0])] -= 0.05
its old scores differ in the last bits | batch.old_log_probs = self.score(batch) => \
batch.old_log_probs = self.score(batch) * (1 + 5e-7)
""".strip().splitlines()
)


def trainer_called(name: str) -> Callable:
    """A factory: of a healthy variant, of a trainer made for it, or of a number."""
    if name in MADE:
        old, _, new = MADE[name].partition(" => ")
        return compiled(HEALTHY.replace(old, new)).Trainer
    kind, _, which = name.partition(" ")
    if kind == "trainer":
        return broken(int(which)).Trainer
    return probes.healthy_trainer(which)


UNPACK = (
    "`update` returns two things, and this takes them for one: write "
    "`stats, norm = trainer.update(batch)`, and the ratios are stats[3]."
)
NO_POLICY = (
    "this trainer cannot sample any more: its probabilities are NaN. At a temperature "
    "of 0 its logits are divided by 0; near 0 is near enough, 0.01 for instance."
)


def verdict_on(probe: Callable, name: str) -> str | None:
    """What a probe says of a trainer."""
    with torch.random.fork_rng(), redirect_stdout(io.StringIO()):
        torch.manual_seed(0)
        try:
            said = probe(trainer_called(name))
        except RuntimeError as error:
            if "probability tensor" not in str(error):
                raise
            raise ValueError(NO_POLICY) from None
        except (IndexError, TypeError) as error:
            if "tuple" not in str(error):
                raise
            raise ValueError(UNPACK) from None
    if isinstance(said, Tensor) and said.numel() != 1:
        raise ValueError(
            f"a probe returns one yes or no; this is a tensor of {said.numel()}. "
            "Take .all(), or the largest deviation before you compare."
        )
    return None if said is None else "healthy" if said else "not healthy"


WRONG_ALARM = (
    "A healthy trainer, and your probe fires: you look at something that may differ, "
    "you take a setting for granted, or the tolerance is too narrow."
)
HOLDS = "Something else is wrong with this trainer; what you are to ask for holds."
BLIND = (
    "return True | In this check your probe calls every trainer healthy: nothing that "
    "it looks at differs."
)
LOUD = "return False | In this check your probe calls no trainer healthy."
LAST_BIT = (
    "To the last bit no two computations are equal: another order of the sums moves "
    "the rounding. Compare with a tolerance, 1e-4 for instance."
)


def trainers(text: str) -> list[Case]:
    """A case a line: a trainer, and the hint for who judges it wrongly."""
    cases = []
    for line in text.strip().splitlines():
        name, _, hint = line.partition(" | ")
        kind = "a trainer with another defect"
        if name.startswith("healthy: "):
            kind, hint = "a healthy trainer", WRONG_ALARM
        elif name in MADE:
            kind = "a trainer made for this exercise"
        elif hint:
            kind = "a trainer that breaks the property"
        cases.append(Case(kind, {"make_trainer": name}, hint or HOLDS))
    return cases


groups_stand_alone = exercise("10.1", use=verdict_on, exact=True)(
    probes.groups_stand_alone
)
groups_stand_alone.insight = (
    "Compare with what may not matter: a bonus for a prompt is such a thing."
)
groups_stand_alone.cases = trainers("""
healthy: as it is
healthy: groups of four
trainer 31 | Here the deltas of one prompt depend on what the others earn. Pay all \
responses to one prompt more, and those to another not.
healthy: groups of sixteen
healthy: two prompts
trainer 19
its deltas are rewards, times their sum | A bonus for one prompt moves the sum, and \
so the deltas of others.
its deltas are in units of the spread of the whole batch | A bonus for one prompt \
moves the spread of the batch, and so the deltas of others.
its deltas are not divided by a spread | Nothing is wrong here: not everybody divides \
by a spread. Add a point, which moves no difference; a factor moves them all.
its deltas are ranks in the group | Nothing is wrong here for what you are to ask: \
ranks look at one group alone.
""")
groups_stand_alone.mistakes = f"""
{BLIND}
{LOUD} Do both calls get the same rewards, but for the bonus? And do all responses to \
one prompt get it, each as much?
torch.rand(2, => torch.zeros(2, | All responses to a prompt earn the same in your \
probe, so their deltas are 0 in whatever unit. Let them earn different rewards.
[[0.0], [1.0]] => [[1.0], [1.0]] | A mean over the batch, too, takes off what \
everybody \
earns more, and makes the deltas sum to zero. Give the bonus to the responses to one \
prompt alone, and compare delta with delta.
rewards + bonus => rewards * (1 + bonus) | You multiply the rewards of one prompt. Who \
is healthy and does not divide by a spread gets larger deltas of it. Add a point.
return make_trainer().collect().deltas.sum().abs() < 1e-2 | The deltas of a whole \
batch sum to zero in either case. Look at one group.
torch.allclose(plain, paid, atol=1e-3) => torch.equal(plain, paid) | {LAST_BIT}
trainer.settings.num_responses => 8 | Your groups have eight responses, whatever the \
trainer's have: one with groups of sixteen takes your two for one. Take the size from \
trainer.settings.num_responses.
"""


own_words_look_likely = exercise("10.2", use=verdict_on, exact=True)(
    probes.own_words_look_likely
)
own_words_look_likely.insight = (
    "One probe for two causes: it asks only whether writer and judge agree."
)
own_words_look_likely.cases = trainers("""
healthy: as it is
healthy: seed 1
trainer 30 | Here a policy is surprised by what it has just written. Let it write \
without any doubt, and look at the mean of its own scores.
trainer 2 | Here the scores are those of a policy that doubts more than the one that \
wrote. The colder the sampler, the larger the gap.
healthy: short responses
healthy: three numbers
trainer 5
trainer 27
its scores are those of chance | No token is likely here.
it is sure of every token
it is sure of its responses, and of no prompt
its scores are lower by a hair
it is healthy, and draws another rollout | This trainer is healthy. Near 0, too, two \
tokens may be nearly as likely, and then a policy doubts. Take the mean.
trainer 32 | Here the old scores are those of other tokens, though `score` is right. \
Look at `old_log_probs`, with which the update will compare.
its reference finds them unlikely | Here the reference is wrong, and the old scores \
are right: look at `old_log_probs`.
""")
own_words_look_likely.mistakes = f"""
{BLIND}
{LOUD}
temperature=0.01 => | A healthy policy is surprised by its samples, too: at the \
script's own temperature by many, and near 0 by a few, where two tokens are nearly as \
likely. Sample cold, and take the mean.
batch.old_log_probs => batch.ref_log_probs | You ask the reference, which has not \
written these responses. Look at `old_log_probs`.
temperature=0.01 => && -0.1 => -1.0 | The bound is too wide, or zeros in place of \
prompt and padding make the mean small. Sample so cold that a healthy policy has no \
doubt, take the tokens that `[batch.mask]` keeps, and ask for a mean next to 0.
batch = make_trainer(temperature=0.01).collect() => trainer = \
make_trainer(temperature=0.01); batch = trainer.collect() && batch.old_log_probs => \
trainer.score(batch) | You score anew. The update will compare with `old_log_probs`, \
and those may be wrong though `score` is right.
[batch.mask] => | You count prompt and padding, which nobody sampled. Take the tokens \
that `batch.mask` keeps.
.mean() => .min() | Near 0, too, a healthy policy is surprised by a few tokens, where \
two are nearly as likely. Take the mean.
.mean() => .max() | One likely token is in every batch. Take the mean.
"""


ratios_start_at_one = exercise("10.3", use=verdict_on, exact=True)(
    probes.ratios_start_at_one
)
ratios_start_at_one.insight = (
    "One line for three causes: noise, rounding, and scores of other tokens."
)
ratios_start_at_one.cases = trainers(f"""
healthy: as it is
healthy: a large rate
trainer 32 | Here the old scores are those of other tokens, so a ratio is anything. \
Look at the ratios of the first inner step.
trainer 5 | Here old and new scores come from two different networks. Look at the \
ratios of the first inner step.
trainer 27 | Here the old scores are rounded: a ratio is off by some hundredths, up \
or down, and their mean is nearly 1. Ask for the worst token, with a narrow tolerance.
healthy: one inner step
healthy: a heavy KL
trainer 8
trainer 15
its old scores are a little too high | Here every ratio is 0.98. A deviation may go \
either way, and no more of it is rounding than a thousandth.
its old scores are a little too low | Here every ratio is 1.02. A deviation may go \
either way, and no more of it is rounding than a thousandth.
one of its old scores is off | One ratio of hundreds is 1.05 here, and a mean hides \
it. Ask for the worst token.
its old scores differ in the last bits | {LAST_BIT}
""")
ratios_start_at_one.mistakes = f"""
{BLIND}
{LOUD} `update` returns what is logged, in the order of MEASURES: the ratios are \
stats[3].
(stats[3] - 1).abs().max() < 1e-3 => (stats[3] == 1).all() | {LAST_BIT}
1e-3 => 0.05 | The tolerance is too wide, or you take a spread, which does not see \
what \
moves all ratios alike. Some bugs move a ratio by a few hundredths only. Nothing was \
learned yet, so next to no deviation from 1 is allowed: a thousandth.
(stats[3] - 1).abs().max() => (stats[3].mean() - 1).abs() && 1e-3 => 1e-2 | \
Deviations above and below cancel in a mean. Ask for the worst token.
.abs().max() => .abs().mean() | A mean over hundreds of tokens hides one that is \
wrong. Ask for the worst token.
(stats[3] - 1).abs().max() => (stats[3] - 1).max() | You look for ratios above 1 \
alone. Take the absolute deviation.
stats, _ = trainer.update(trainer.collect()) => batch = trainer.collect(); \
trainer.update(batch); stats, _ = trainer.update(batch) | That is the second inner \
step. The policy has moved by then, and its ratios may differ from 1.
stats, _ = trainer.update(trainer.collect()) => trainer.step() && (stats[3] - \
1).abs().max() => abs(trainer.log[-1]["ratio_high"] - 1) | The log holds the last \
inner step, when the policy has moved. Collect a rollout and update once.
"""


@exercise("10.4", use=verdict_on, exact=True)
def loss_pulls_right(make_trainer):
    """a factory of trainers -> True if healthy"""

    def pull(old, delta, reference=-2.0, beta=0.0):
        new = torch.tensor([[-2.0]], requires_grad=True)
        token = token_with(old_log_probs=old, ref_log_probs=reference, deltas=delta)
        losses, _ = make_trainer(beta=beta).token_losses(new, token)
        return -torch.autograd.grad(losses.sum(), new)[0].item()

    same, risen, fallen = -2.0, -3.0, -1.0
    good = [pull(old, 1.0) for old in (same, risen, fallen)]
    bad = [pull(old, -1.0) for old in (same, risen, fallen)]
    kl = [pull(same, 0.0, reference, 1.0) for reference in (-3.0, -1.0)]
    for name, pulls in {"delta 1": good, "delta -1": bad, "KL": kl}.items():
        print(f"pulls, {name:8}", *(f"{each + 0:5.2f}" for each in pulls))
    good_is_right = good[0] > 0 and good[1] == 0 and good[2] > 0
    bad_is_right = bad[0] < 0 and bad[1] < 0 and bad[2] == 0
    return good_is_right and bad_is_right and kl[0] < 0 < kl[1]


loss_pulls_right.insight = (
    "Six tokens and two references know a loss, whoever has written it."
)
loss_pulls_right.cases = trainers("""
healthy: as it is
trainer 21 | This loss pushes a good token down: it divides two log-probabilities. Ask \
where old and new are equal, for the sign of the gradient.
it is negated | This loss pushes a good token down and a bad one up. Ask where old and \
new are equal, for the sign of the gradient.
it pushes every token down | This loss pushes a good token down, like a bad one.
it pulls every token up | This loss pulls a bad token up, like a good one.
trainer 8 | This loss never clips: it compares the policy with itself. A good token \
that has already risen beyond the range must not be pulled any more.
it clips nothing | This loss never clips. A good token that has already risen beyond \
the range must not be pulled any more.
it lets no good token go | A good token that has risen beyond the range is pulled \
further here.
it lets no bad token go | A bad token that has fallen below the range is pushed \
further here.
trainer 28 | This loss clips by the size of the ratio alone. A bad token that has \
risen must still be pushed down, and one that has fallen must be let go.
it clips good and bad alike | This loss lets go of every token outside the range. A \
good one that has fallen must still be pulled up, and a bad one that has risen down.
it lets good tokens go that have fallen | A good token that has fallen below the range \
is not pulled up again here.
it lets bad tokens go that have risen | A bad token that has risen beyond the range is \
not pushed down again here.
healthy: a heavy KL
healthy: no KL
trainer 17 | Here the KL is logged as it should be, and no gradient comes of it. Take \
the gradient of the loss with a delta of 0, so that nothing else pulls.
trainer 29 | Here the loss pushes a token away from its reference. Look at the sign \
of the gradient, with a delta of 0.
trainer 23 | Here the pull is the same above the reference and below it. Ask on both \
sides.
its KL pulls every token up | Here the KL pulls a token up where it is above its \
reference, too. Ask on both sides.
its loss has the KL's value, and no slope | A value pulls nowhere. What does the \
gradient say?
healthy: two prompts
healthy: groups of four
its loss is twice as large | Nothing is wrong here: right losses differ in size. Ask \
for the sign of a pull, and not for its size.
its KL is k2 | Nothing is wrong here: this is another estimate of the KL. Ask for the \
sign of a pull, and not for its size.
trainer 12
""")
loss_pulls_right.mistakes = f"""
{BLIND}
{LOUD} Do you take the gradient of the loss, and not its value, which pulls nowhere? \
And do your tokens lie outside 0.8 to 1.2, on the side that you mean? A token has \
risen where its old log-probability is the smaller one.
-torch.autograd => torch.autograd | The other way round: an optimizer goes against the \
gradient, so the pull is minus the gradient.
good_is_right and bad_is_right and => | You ask about the KL alone. Ask about a good \
token and a bad one, too, where the policy is as it was, where it has risen, and \
where it has fallen.
and kl[0] < 0 < kl[1] => | You never ask about the KL. With a delta of 0 and a beta \
of your own, nothing else pulls.
and good[2] > 0 => && and bad[1] < 0 => | You ask where a token \
must be let go. Ask also where it must not: a good one that has fallen, and a bad one \
that has risen, are pulled though their ratio is outside the range.
and good[1] == 0 => && and bad[2] == 0 => | You never ask whether \
the loss lets go. Outside the range, a good token that has risen and a bad one that \
has fallen get no pull.
good[2] > 0 => good[2] == 0 && bad[1] < 0 => bad[1] == 0 | Outside the range, not \
every token is let go: a good one that has fallen is still pulled up, and a bad one \
that has risen is still pushed down.
kl[0] < 0 < kl[1] => 0 < kl[1] | You ask below the reference alone, where a pull that \
is the same everywhere looks right. Ask above it as well.
"""
