"""Probes: each asks one thing of a trainer; and the judge of anybody's.

A probe gets `make_trainer(**settings)`, which builds a fresh trainer of the script
under test, and returns whether that is healthy. What it prints on the way is heard by
the case that asks it. Probes are written as a learner writes them, and three are
solutions of exercises.
"""

import io
import time
from collections.abc import Callable, Iterable
from contextlib import redirect_stdout
from dataclasses import dataclass
from functools import partial
from types import SimpleNamespace

import torch

from grpo_course.lessons.hunt.defects import (
    DEFECTS,
    broken,
    number_of,
    trainer_by,
)
from grpo_course.lessons.hunt.script import Trainer

Probe = Callable[[Callable], bool]
COURSE_PROBES: dict[str, Probe] = {}


@dataclass
class Property:
    """Something that holds of every healthy trainer.

    A probe of it must fire for each defect that names it. Whether it fires for one in
    `open_to` depends on how it looks; for all others the property holds.
    """

    says: str
    must_find: set[int]  # numbers of trainers
    open_to: set[int]

    @property
    def must_not(self) -> set[int]:
        """Numbers of the trainers of which it holds."""
        return set(DEFECTS) - self.must_find - self.open_to


PROPERTIES: dict[str, Property] = {}


def asks(*open_to: str) -> Callable[[Probe], Probe]:
    """Enter a probe of the course, whose docstring is what holds of a healthy trainer;
    and the causes that it may find besides its own."""

    def enter(probe: Probe) -> Probe:
        name = probe.__name__
        broken_by = [n for n, defect in DEFECTS.items() if name in defect.probes]
        says = " ".join((probe.__doc__ or "").split())
        PROPERTIES[name] = Property(says, {*broken_by}, {*map(number_of, open_to)})
        COURSE_PROBES[name] = probe
        return probe

    return enter


NOTHING_MOVES = "end token left in the graded text"  # no reward, so no update
WIDE_MASKS = (
    "padding counted as response",
    "prompt trained along with the response",
    "mask shifted by one token",
)
OTHER_SCORES = (
    "temperature missing from the scores",
    "attention mask left out of the scores",
    "responses encoded anew from their text",
    "scores of the next token",
    "rare tokens never sampled, yet scored",
    "old scores shifted by the prompt's length",
)


def token_with(**values: float) -> SimpleNamespace:
    """A batch of one token, as far as the loss looks at it."""
    names = {name: torch.tensor([[value]]) for name, value in values.items()}
    return SimpleNamespace(**(names | {"deltas": names["deltas"][0]}))


# What is written, masked and scored.


@asks(*WIDE_MASKS, *OTHER_SCORES)
def own_words_look_likely(make_trainer):
    """What a policy samples at a temperature near zero looks certain to it."""
    batch = make_trainer(temperature=0.01).collect()
    return batch.old_log_probs[batch.mask].mean() > -0.1


@asks(*WIDE_MASKS, *OTHER_SCORES)
def surprise_equals_entropy(make_trainer):
    """On average over samples, -log pi is the entropy of pi."""
    trainer = make_trainer(temperature=1.5, num_responses=64)
    batch = trainer.collect()
    logits, _ = trainer.model(batch.tokens, batch.attention)
    log_probs = (logits[:, :-1] / 1.5).log_softmax(-1)
    entropy = -(log_probs.exp() * log_probs).sum(-1)
    return (-batch.old_log_probs - entropy)[batch.mask].mean().abs() < 0.1


@asks()
def padding_leaves_no_trace(make_trainer):
    """Padding in front of a prompt changes no score."""
    trainer = make_trainer()
    batch = trainer.collect()
    before = trainer.score(batch)
    batch.tokens = torch.nn.functional.pad(batch.tokens, (3, 0))
    batch.attention = torch.nn.functional.pad(batch.attention, (3, 0))
    return torch.allclose(trainer.score(batch)[:, 3:], before, atol=1e-4)


@asks("responses encoded anew from their text", NOTHING_MOVES)
def mask_keeps_the_response(make_trainer):
    """The mask keeps what the model wrote, up to its end token, and nothing else."""
    for tool in (False, True):
        trainer = make_trainer(tool=tool)
        batch = trainer.collect()
        rows = zip(batch.tokens[:, 1:], batch.mask, batch.texts, strict=True)
        for row, kept, text in rows:
            if tool and text[:1] == "=":
                text = f"={text[4:]}"  # without the tool's " 07"
            told = trainer.tokenizer.decode(row[kept], skip_special_tokens=False)
            if trainer.tokenizer.eos in row and told != f"{text}<end>":
                return False
    return True


@asks("end token masked as if it were padding")
def trained_on_what_was_sampled(make_trainer):
    """The tokens of the batch are those that were sampled."""
    trainer, sampled = make_trainer(), []
    sample = trainer.sample

    def noted(*given: torch.Tensor) -> torch.Tensor:
        sampled.append(sample(*given))
        return sampled[-1]

    trainer.sample = noted
    batch = trainer.collect()
    return torch.equal(batch.tokens[:, -sampled[0].shape[1] :], sampled[0])


# What is paid, and what becomes of it.


@asks()
def groups_share_a_prompt(make_trainer):
    """All responses of a group answer one prompt."""
    trainer = make_trainer()
    problems, size = trainer.collect().problems, trainer.settings.num_responses
    groups = [problems[i : i + size] for i in range(0, len(problems), size)]
    return all(problem == group[0] for group in groups for problem in group)


@asks("cut-off responses paid", NOTHING_MOVES)
def rewards_fit_their_prompts(make_trainer):
    """A response is graded against the answer to its own prompt."""
    trainer = make_trainer()
    batch = trainer.collect()
    paid = zip(batch.problems, batch.texts, batch.rewards.tolist(), strict=True)
    return all(
        earned == 0 or abs(earned - trainer.reward(numbers, text)) < 1e-5
        for numbers, text, earned in paid
    )


@asks("end token masked as if it were padding")
def cut_off_pays_nothing(make_trainer):
    """A response without its end token earns nothing."""
    trainer = make_trainer(max_new_tokens=6)
    batch = trainer.collect()
    ended = (batch.tokens == trainer.tokenizer.eos).any(dim=1)
    return not batch.rewards[~ended].any()


@asks(NOTHING_MOVES)
def one_answer_is_paid(make_trainer):
    """A text with several answers does not earn what the right one alone earns."""
    pay = make_trainer().reward
    return pay([3, 1], "= 3 1 = 1 3") < pay([3, 1], "= 1 3")


@asks("reward looks at another prompt's answer", "groups that mix prompts")
def right_answer_is_paid(make_trainer):
    """A right answer that ends is paid in full."""
    trainer = make_trainer()
    written = trainer.tokenizer.encode("= 1 3<end><pad><pad>")
    _, rewards = trainer.pay([[3, 1]], torch.tensor([written]))
    return rewards.item() > 0.5


@asks("mean and spread of the whole batch", "groups that mix prompts")
def tied_groups_are_silent(make_trainer):
    """A group of equal rewards gets deltas of zero."""
    trainer = make_trainer()
    size = trainer.settings.num_responses
    rewards = torch.tensor([0.1, 0.2, 0.3, 0.6, 0.7]).repeat_interleave(size)
    return trainer.compute_deltas(rewards).abs().max() < 0.01


@asks("tied groups normalized by rounding error", "groups that mix prompts")
def groups_stand_alone(make_trainer):
    """The deltas of a group do not depend on other groups."""
    trainer = make_trainer()
    rewards = torch.rand(2, trainer.settings.num_responses)
    bonus = torch.tensor([[0.0], [1.0]])
    plain = trainer.compute_deltas(rewards.flatten())
    paid = trainer.compute_deltas((rewards + bonus).flatten())
    return torch.allclose(plain, paid, atol=1e-3)


# The loss, and the update.


@asks("ratio of log-probabilities")
def ratios_start_at_one(make_trainer):
    """In the first inner step every ratio is one."""
    trainer = make_trainer()
    stats, _ = trainer.update(trainer.collect())
    return (stats[3] - 1).abs().max() < 1e-3


@asks(NOTHING_MOVES, "old scores that carry a gradient")
def ratios_leave_one(make_trainer):
    """In later inner steps ratios differ from one."""
    trainer = make_trainer(learning_rate=0.01)
    batch = trainer.collect()
    trainer.update(batch)
    stats, _ = trainer.update(batch)
    return (stats[3] - 1).abs().max() > 1e-3


@asks(NOTHING_MOVES, "schedule too short for the inner steps")
def better_responses_gain(make_trainer):
    """A step makes the better responses of a group likelier."""
    trainer = make_trainer(num_inner_steps=1, beta=0.0)
    batch = trainer.collect()
    before = trainer.score(batch).detach()
    trainer.update(batch)
    gain = (trainer.score(batch) - before) * batch.deltas[:, None]
    return gain[batch.mask].mean() > 1e-4


@asks("old scores that carry a gradient", "loss negated twice")
def bad_tokens_are_pulled_back(make_trainer):
    """A bad token is pulled down at ratio 2, and let go at ratio 1/2."""
    trainer, pulls = make_trainer(beta=0.0), []
    for old in (-3.0, -1.0):
        new = torch.tensor([[-2.0]], requires_grad=True)
        token = token_with(old_log_probs=old, ref_log_probs=-2.0, deltas=-1.0)
        losses, _ = trainer.token_losses(new, token)
        pulls.append(torch.autograd.grad(losses.sum(), new)[0].item())
    return pulls[0] > 0 == pulls[1]


@asks("reference is the policy itself", "k3 upside down", "loss negated twice")
def kl_pulls_back(make_trainer):
    """The KL pulls a token down where the policy is above its reference, and up
    where it is below."""
    trainer, pulls = make_trainer(beta=1.0), []
    for reference in (-3.0, -1.0):
        new = torch.tensor([[-2.0]], requires_grad=True)
        token = token_with(old_log_probs=-2.0, ref_log_probs=reference, deltas=0.0)
        losses, _ = trainer.token_losses(new, token)
        pulls.append(torch.autograd.grad(losses.sum(), new)[0].item())
    return pulls[0] > 0 > pulls[1]


@asks()
def kl_is_right_on_average(make_trainer):
    """Averaged over the policy, the logged KL is the KL."""
    policy, reference = torch.tensor([[0.9], [0.1]]), torch.tensor([[0.4], [0.6]])
    new = policy.log()
    tokens = SimpleNamespace(
        old_log_probs=new, ref_log_probs=reference.log(), deltas=torch.zeros(2)
    )
    _, stats = make_trainer().token_losses(new, tokens)
    exact = (policy * (policy / reference).log()).sum()
    return torch.allclose((policy * stats[1]).sum(), exact, atol=1e-4)


@asks(NOTHING_MOVES, "old scores that carry a gradient")
def reference_stays_behind(make_trainer):
    """The reference stays where it was while the policy moves."""
    trainer = make_trainer(learning_rate=0.01)
    batch = trainer.collect()
    for _ in range(3):
        trainer.update(batch)
    batch = trainer.collect()
    gap = batch.old_log_probs - batch.ref_log_probs
    return gap[batch.mask].abs().max() > 1e-3


@asks("dropout on in the update")
def parts_make_no_difference(make_trainer):
    """The gradient of a batch does not depend on the size of the micro-batches."""
    norms = []
    for size in (8, 1000):
        trainer = make_trainer(micro_batch_size=size)
        _, norm = trainer.update(trainer.collect())
        norms.append(norm)
    return abs(norms[0] - norms[1]) <= 1e-3 * norms[1]


@asks()
def rate_lasts_to_the_end(make_trainer):
    """The learning rate reaches zero with the last update, not before."""
    trainer = make_trainer(num_steps=2, num_inner_steps=3)
    trainer.step()
    return trainer.schedule.get_last_lr()[0] > 0


# The judge.

# A healthy trainer has to look healthy with any of these settings. All but the first
# are written by another hand each: what a probe asks has to hold of every trainer, and
# not of this script.
VARIANTS: dict[str, dict[str, float]] = {
    "as it is": {},
    "seed 1": {"seed": 1},
    "half the rate": {"learning_rate": 0.0025},
    "a large rate": {"learning_rate": 0.02},
    "one inner step": {"num_inner_steps": 1},
    "no KL": {"beta": 0.0},
    "a heavy KL": {"beta": 0.5},
    "groups of four": {"num_responses": 4},
    "groups of sixteen": {"num_responses": 16},
    "two prompts": {"num_prompts": 2},
    "short responses": {"max_new_tokens": 10},
    "three numbers": {"min_numbers": 3, "max_numbers": 3},
    "with a tool": {"tool": True},
}
SLOW = 1.5  # seconds of one call on one core, above which a probe is told so
FIRES, SILENT = "fires", "silent"


@dataclass(frozen=True)
class Row:
    """What one probe said: of variants by name, of trainers by number.

    An entry is "fires", "silent", or the error that the probe ended in.
    """

    healthy: dict[str, str]
    broken: dict[int, str]
    seconds: float  # of the slowest call

    def found(self) -> list[int]:
        """Numbers of the trainers in which it fires."""
        return [number for number, said in self.broken.items() if said != SILENT]

    def alarms(self) -> list[str]:
        """Healthy variants in which it fires."""
        return [name for name, said in self.healthy.items() if said != SILENT]


def ask(probe: Callable, make_trainer: Callable) -> str:
    """Silent, fires, or the error; random numbers outside are left as they were."""
    return hear(probe, make_trainer)[0]


def hear(probe: Callable, make_trainer: Callable) -> tuple[str, str]:
    """What a probe says, as `ask`, and what it printed."""
    printed = io.StringIO()
    with torch.random.fork_rng(), redirect_stdout(printed):
        torch.manual_seed(0)
        try:
            healthy = probe(make_trainer)
            said = SILENT if healthy is not None and bool(healthy) else FIRES
            if healthy is None:
                said = "it returned nothing: end it with `return` and a truth value"
        except Exception as error:
            said = f"{type(error).__name__}: {error}"
    return said, printed.getvalue()


def healthy_trainer(name: str) -> Callable:
    """A factory of the healthy trainers of a name, by a hand of their own."""
    hand = [*VARIANTS].index(name)
    return partial(trainer_by(hand), **VARIANTS[name])


def alarms_of(probe: Callable, more: dict | None = None) -> list[str]:
    """Healthy variants in which a probe is not silent; `more` are settings of another.

    Stops at the third.
    """
    makers = {name: healthy_trainer(name) for name in VARIANTS}
    if more:
        makers = {"these settings": partial(trainer_by(len(VARIANTS)), **more)} | makers
    found: list[str] = []
    for name, make_trainer in makers.items():
        if len(found) < 3 and ask(probe, make_trainer) != SILENT:
            found.append(name)
    return found


def found_by(probes: Iterable[Callable]) -> list[int]:
    """Numbers of all trainers in which one of some probes fires."""
    asked = [*probes]
    return [
        number
        for number in DEFECTS
        if any(ask(probe, broken(number).Trainer) == FIRES for probe in asked)
    ]


def run_probe(
    probe: Callable,
    numbers: Iterable[int] = DEFECTS,
    variants: Iterable[str] = VARIANTS,
) -> Row:
    """Ask a probe about healthy trainers and about those with a defect."""
    slowest, healthy, sick = 0.0, {}, {}
    Trainer(num_prompts=1).collect()  # whatever is loaded on first use
    for name in variants:
        start = time.process_time()
        healthy[name] = ask(probe, healthy_trainer(name))
        slowest = max(slowest, time.process_time() - start)
    for number in numbers:
        sick[number] = ask(probe, broken(number).Trainer)
    return Row(healthy, sick, slowest)


def faults(row: Row, asked: Property) -> list[str]:
    """What is wrong with a probe of a property, in sentences; none if it is right."""
    found = set(row.found())
    missed = sorted((asked.must_find & set(row.broken)) - found)
    wrongly = sorted(asked.must_not & found)
    errors = [said for said in row.healthy.values() if said not in (SILENT, FIRES)]
    words = []
    if errors:
        words.append(f"On a healthy trainer it ends in an error: {errors[0]}")
    elif alarms := row.alarms():
        words.append(
            f"It fires on healthy trainers: {', '.join(alarms)}. What you look at "
            "depends on more than the property, or the tolerance is too narrow."
        )
    if missed:
        words.append(
            f"It stays silent for {numbered(missed)}, where the property is broken. "
            "Ask for the worst token instead of the mean, make the case harder, or "
            "look at what the update itself computes."
        )
    if wrongly:
        words.append(
            f"It fires for {numbered(wrongly)}, where the property holds: it looks "
            "at something else as well."
        )
    if row.seconds > SLOW:
        words.append(
            f"One call takes {row.seconds:.1f} s: a probe should take less than "
            f"{SLOW:g} s. Train less, or not at all."
        )
    return words


def numbered(numbers: list[int]) -> str:
    """Trainers by number, as one says it."""
    names = ", ".join(str(number) for number in numbers)
    return f"trainer {names}" if len(numbers) == 1 else f"trainers {names}"
