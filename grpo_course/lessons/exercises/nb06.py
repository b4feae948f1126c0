"""The exercises of 06_training_loop."""

import copy
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any

import torch
from torch import Generator, Tensor
from torch.optim import Adam

from grpo_course.classroom.check import case, exercise
from grpo_course.formulas import (
    compute_deltas,
    compute_kl_penalty,
    compute_loss,
    loss_report,
)
from grpo_course.lessons.exercises.shared import PROMPTS, TOO_EARLY, numbers
from grpo_course.sort import (
    SortModel,
    compute_log_probs,
    compute_reward,
    exact_sorted_probability,
    generate_responses,
    sort_distance_reward,
)


@exercise("6.1", gradient="log_probs")
def inner_step_loss(log_probs, old_log_probs, ref_log_probs, deltas, beta):
    """float [batch trial pos] three times, float [batch trial], number -> scalar"""
    ratio, each = (log_probs - old_log_probs).exp(), deltas[..., None]
    gain = torch.minimum(ratio * each, ratio.clamp(0.8, 1.2) * each)
    difference = ref_log_probs - log_probs
    k3 = torch.expm1(difference) - difference
    return -gain.mean() + beta * k3.mean()


def step_case(description, *shape, beta, apart=0.5, hint=""):
    """Three policies that are up to `apart` nats from each other."""
    old = -1.5 - numbers(*shape, shift=-1.4, scale=0.5)
    return case(
        description,
        hint,
        log_probs=old + numbers(*shape, shift=-0.6, scale=apart),
        old_log_probs=old,
        ref_log_probs=old + numbers(*shape, shift=0.9, scale=apart),
        deltas=numbers(*shape[:-1], shift=-0.9, scale=1.5),
        beta=beta,
    )


inner_step_loss.insight = (
    "pi_old stands in the ratio, pi_ref in the KL, and only pi has a gradient."
)
inner_step_loss.cases = (
    step_case(
        "one response, no clipping",
        1,
        1,
        2,
        beta=1.0,
        apart=0.1,
        hint="Print your two parts. Here minus the mean of ratio times delta is -1.14, "
        "and the mean of k3 is 0.004.",
    ),
    step_case(
        "two prompts, three responses",
        2,
        3,
        4,
        beta=0.5,
        hint="Here some ratios leave the range. Multiply both, the ratio and the "
        "clipped ratio, by delta, and take the smaller product, token by token.",
    ),
    step_case("as many prompts as responses", 3, 3, 3, beta=0.1),
    step_case("beta is 0", 2, 3, 4, beta=0.0),
    case(
        "ratios of 50 and 0.01",
        log_probs=torch.tensor([[[0.5, 0.001]] * 2]).log(),
        old_log_probs=torch.tensor([[[0.01, 0.1]] * 2]).log(),
        ref_log_probs=torch.tensor([[[0.3, 0.002]] * 2]).log(),
        deltas=[[1.0, -1.0]],
        beta=0.5,
    ),
    case(
        "tokens that are next to impossible",
        TOO_EARLY,
        log_probs=[[[-200.0, -150.0]]],
        old_log_probs=[[[-199.9, -150.0]]],
        ref_log_probs=[[[-200.5, -149.5]]],
        deltas=[[1.0]],
        beta=0.5,
    ),
)
inner_step_loss.mistakes = """
+ beta => - beta | You subtract the KL. The loss is minimized, so a penalty is added: \
minus would reward leaving the reference.
+ beta * k3.mean() => | The KL is missing. Add beta times its mean.
k3.mean() => k3.mean().detach() | The value is right, but the KL is cut off: it sends \
no gradient, so it changes nothing. Only pi_old and pi_ref are frozen.
k3.mean() => k3.sum(dim=-1).mean() | You sum the KL over pos. The policy loss is a \
mean over positions, so the KL must be too, or beta grows with the length.
= ref_log_probs - log_probs => = log_probs - ref_log_probs | k3 upside down: its \
exponent is ref minus policy, log(pi_ref / pi).
(log_probs - old_log_probs) => (log_probs - ref_log_probs) && = ref_log_probs => = \
old_log_probs | pi_old and pi_ref are swapped: pi_old belongs in the ratio, pi_ref in \
the KL.
(log_probs - old_log_probs) => (log_probs - log_probs.detach()) | You use pi itself as \
pi_old: the ratio is 1 in every step, and nothing is ever clipped. Use the noted \
old_log_probs.
.clamp(0.8, 1.2) => | Nothing is clipped: this is the unclipped loss plus the KL.
-gain => gain | The policy loss lacks its minus sign: an optimizer would minimize the \
objective. Only the KL is added as it is.
"""


def fresh_start():
    """The same model, random numbers and optimizer at each call."""
    torch.manual_seed(0)
    model = SortModel(5, 10, 3, 3, init_scale=0.1)
    return model, Generator().manual_seed(1), Adam(model.parameters(), lr=0.01)


def losses_alone(function, *args):
    """The losses, or a word on what hangs on them."""
    losses = function(*args)
    tracked = isinstance(losses, Tensor) and losses.requires_grad
    return "losses that still carry their graphs" if tracked else losses


@exercise("6.2", use=losses_alone)
def train_by_hand(start, prompts, num_epochs, num_steps, period, beta):
    """function, int [batch pos], int, int, int, number -> losses [step]"""
    model, generator, optimizer = start()
    losses = []
    for epoch in range(num_epochs):
        if epoch % period == 0:
            ref_model = copy.deepcopy(model)
        responses = generate_responses(prompts, model, 4, generator)
        rewards = compute_reward(prompts, responses, sort_distance_reward)
        deltas = compute_deltas(rewards, "normalized_rewards")
        with torch.no_grad():
            old = compute_log_probs(prompts, responses, model)
            ref = compute_log_probs(prompts, responses, ref_model)
        for _ in range(num_steps):
            log_probs = compute_log_probs(prompts, responses, model)
            loss = inner_step_loss(log_probs, old, ref, deltas, beta)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.detach())
    return torch.stack(losses)


def another_start():
    """As fresh_start, but another model and another learning rate."""
    torch.manual_seed(2)
    model = SortModel(5, 10, 3, 3, init_scale=0.1)
    return model, Generator().manual_seed(3), Adam(model.parameters(), lr=0.03)


ANOTHER_START = (
    "This `start` is not the notebook's fresh_start. Call the argument, which brings "
    "model, generator and optimizer."
)
OTHER_PROMPTS = (
    "These prompts are not those of the notebook. Use the argument `prompts` "
    "throughout."
)


def loop_case(description, num_epochs, num_steps, beta, hint="", **other):
    """A run, from the same start unless told otherwise."""
    usual = {"start": fresh_start, "prompts": PROMPTS, "num_epochs": num_epochs}
    usual |= {"num_steps": num_steps, "period": 2, "beta": beta}
    return case(description, hint, **usual | other)


train_by_hand.insight = (
    "An epoch is one rollout: everything that is compared with is noted before its "
    "first step, and the steps change only pi."
)
train_by_hand.cases = (
    loop_case(
        "one step",
        1,
        1,
        beta=0.1,
        hint="The first loss is 0: pi is still pi_old and pi_ref, and the deltas of a "
        "group sum to zero. Note each loss as it is before its step.",
    ),
    loop_case(
        "three steps in one epoch, no KL",
        1,
        3,
        beta=0.0,
        hint="Are there four responses to each prompt, drawn once, and with the "
        "generator that start() brings? Compare line by line with the cells above.",
    ),
    loop_case("twelve steps in one epoch, enough to be clipped", 1, 12, beta=0.5),
    loop_case(
        "four epochs of three steps, a new reference every second epoch",
        4,
        3,
        beta=0.5,
        hint="One epoch is right. What has to be new in the next one, and what stays?",
    ),
    loop_case(
        "three epochs of two steps, a new reference in each",
        3,
        2,
        beta=0.5,
        hint="`period` is 1 here. Use the argument.",
        period=1,
    ),
    loop_case("another start", 1, 2, 0.5, ANOTHER_START, start=another_start),
    loop_case("two of the prompts", 1, 2, 0.5, OTHER_PROMPTS, prompts=PROMPTS[1:]),
)
train_by_hand.mistakes = """
log_probs = compute => responses = generate_responses(prompts, model, 4, generator); \
log_probs = compute | You sample in every step. All steps of an epoch use the same \
responses: that is what the ratio and the clip are for.
epoch % period == 0 => epoch == 0 | Your reference is copied once. Copy it anew every \
`period` epochs, where epoch % period is 0.
epoch % period == 0 => True | Your reference is the policy of the epoch. Is it a copy, \
by copy.deepcopy, and made only where epoch % period is 0?
log_probs, old, ref, => log_probs, ref, old, | pi_old and pi_ref are exchanged. In the \
first epoch they are the same.
losses.append(loss.detach()) => losses.append(loss.detach()); return \
torch.stack(losses) \
| Your function returns after the first step. Does `return` stand in the loop?
log_probs, old, ref, => log_probs, log_probs.detach(), ref, | You note pi_old anew in \
every step, so the ratio is always 1. Note it once, when the responses are new.
optimizer.zero_grad() => | The gradients of all steps add up. Call \
optimizer.zero_grad() before each backward.
optimizer.step() => optimizer.zero_grad(); optimizer.step() | Your steps change \
nothing. Does each optimizer.step() come after backward, with no zero_grad() between?
losses.append(loss.detach()) => losses.append(loss) | Your losses still carry their \
graphs. Collect loss.detach() at each step.
"""


# What a colleague may do wrong, A to G, as edits of the loop.
FAULTS = {
    "pi_old and pi_ref are exchanged": "log_probs, old, ref, => log_probs, ref, old,",
    "the reference is copied once and never again": "epoch % period == 0 => epoch == 0",
    "the reference is the policy of the epoch": "epoch % period == 0 => True",
    "pi_old is noted anew in every step": (
        "log_probs, old, ref, => log_probs, log_probs.detach(), ref,"
    ),
    "gradients add up": "optimizer.zero_grad() => pass",
    "the responses are those of the first epoch": (
        "responses = generate => responses = responses if epoch else generate"
    ),
    "the KL is subtracted": "deltas, beta) => deltas, -beta)",
}
A_RIGHT_LOOP = (
    "This loop is right. It adds up the loss in another order, so its numbers are "
    "rounded differently: allow for that."
)


def colleagues() -> dict[str, Callable]:
    """A right loop, and by their letters the seven with a wrong line."""
    wrong = map(train_by_hand.edited, FAULTS.values())
    return {"right": train_by_hand.solution} | dict(zip("ABCDEFG", wrong, strict=True))


def learning_curve(
    loop: Callable,
    seeds: Sequence[int] = range(64),
    learning_rate: float = 0.001,
    prompts: Tensor = PROMPTS,
    num_epochs: int = 50,
) -> Tensor:
    """P(sorted) before each step and at the end, of models side by side. [step seed]"""
    model = SortModel(5, 10, 3, 3, init_scale=0.1, seeds=seeds)
    dice = [Generator().manual_seed(seed + 1) for seed in seeds]
    optimizer = Adam(model.parameters(), lr=learning_rate)
    seen = []

    def look(*_):
        seen.append(exact_sorted_probability(model, prompts).mean(dim=-1).detach())

    optimizer.register_step_pre_hook(look)
    loop(lambda: (model, dice, optimizer), prompts, num_epochs, 4, 10, 0.04)
    look()
    return torch.stack(seen)


def distances(loop: Callable, learning_rate: float, *run: Any) -> Tensor:
    """The largest |ratio - 1|, the KL and the share of the tokens that are clipped.

    Each is what the loop computes at a step, a mean over 64 models side by side; tokens
    without a delta do not count. `run` is num_epochs, num_steps, period, beta. [3 step]
    """
    seeds, seen = range(64), []
    model = SortModel(5, 10, 3, 3, init_scale=0.1, seeds=seeds)
    dice = [Generator().manual_seed(seed + 1) for seed in seeds]
    optimizer = Adam(model.parameters(), lr=learning_rate)

    def seeing(log_probs, old_log_probs, ref_log_probs, deltas, beta):
        report = loss_report(log_probs.detach(), deltas, old_log_probs)
        largest = torch.maximum(report["ratio_max"] - 1, 1 - report["ratio_min"])
        k3 = compute_kl_penalty(log_probs.detach(), ref_log_probs)
        clipped = report["clip_fraction_low"] + report["clip_fraction_high"]
        share = clipped.sum() / (clipped + report["gradient_fraction"]).sum()
        seen.append(torch.stack([largest.mean(), k3.mean(), share]))
        return inner_step_loss(log_probs, old_log_probs, ref_log_probs, deltas, beta)

    space = loop.__globals__ | {"inner_step_loss": seeing}
    watched = FunctionType(loop.__code__, space)
    watched(lambda: (model, dice, optimizer), PROMPTS, *run)
    return torch.stack(seen, dim=1)


def broken_facts(distances: Tensor, num_steps: int, period: int) -> Tensor:
    """Where the facts that the text numbers 1 to 4 fail. [3 step] -> bool [2 step]

    The first row is of facts 1 and 2, the other of 3 and 4.
    """
    step = torch.arange(distances.shape[-1])
    zero = torch.stack([step % num_steps == 0, step % (num_steps * period) == 0])
    return (distances[:2] < 1e-4) != zero


# Two more edits: of loop A without its clip, and of a right loop.
A_WITHOUT_CLIP = train_by_hand.edited(
    "inner_step_loss(log_probs, old, ref, deltas, beta) => "
    '(compute_loss(log_probs, deltas, "unclipped", ref)'
    " + beta * compute_kl_penalty(log_probs, old)).mean()"
)
WITHOUT_COPY = train_by_hand.edited("copy.deepcopy(model) => model")

IN_ANOTHER_ORDER = (
    "inner_step_loss(log_probs, old, ref, deltas, beta) => "
    'compute_loss(log_probs, deltas, "clipped", old)'
    " + beta * compute_kl_penalty(log_probs, ref)"
)
prompts = PROMPTS  # by the names that the notebook has


def said_of(function, loop):
    """Whether `function` finds a loop faulty; a tensor's yes is a yes."""
    found = function(loop)
    return bool(found) if isinstance(found, Tensor) and found.numel() == 1 else found


@exercise("6.3", exact=True, use=said_of)
def is_faulty(loop):
    """a function like train_by_hand -> bool"""
    settings = dict(num_epochs=4, num_steps=3, period=2, beta=0.5)
    theirs = loop(fresh_start, prompts, **settings)
    ours = train_by_hand(fresh_start, prompts, **settings)
    return not torch.allclose(theirs, ours, atol=1e-4)


is_faulty.insight = (
    "Several epochs, several steps in each, a reference that is renewed once on the "
    "way, and a KL that counts: with less, one of these faults stays hidden."
)
is_faulty.cases = (
    case(
        "your own loop",
        "This loop is right. Let each of the two runs begin afresh, with "
        "`fresh_start`, and count losses within 0.0001 of each other as equal.",
        loop=train_by_hand.solution,
    ),
    case(
        "a right loop that rounds differently",
        A_RIGHT_LOOP,
        loop=train_by_hand.edited(IN_ANOTHER_ORDER),
    ),
    *(
        case(
            f"a loop in which {what}",
            f"Your test lets a loop pass in which {what}. With which settings would "
            "its losses differ from yours?",
            loop=train_by_hand.edited(edit),
        )
        for what, edit in FAULTS.items()
    ),
)
is_faulty.mistakes = """
not torch => torch | The other way round: True says that the loop is wrong.
num_epochs=4 => num_epochs=1 | Do you run one epoch? While the reference is still the \
policy that sampled, an exchange of the two does not show. Or is your tolerance wide? \
Allow for rounding alone.
num_steps=3 => num_steps=1 | You take one step in an epoch. At the first step every \
ratio is 1, so a pi_old that is noted anew in every step does not show.
beta=0.5 => beta=0.0 | Without a KL, no fault of the reference can show.
period=2 => period=1 | Your reference is renewed in every epoch, so it is pi_old: \
exchange them, and nothing changes.
period=2 => period=9 | Your reference is never renewed, so it does not show whether a \
loop would do it.
torch.allclose(theirs, ours, atol=1e-4) => torch.equal(theirs, ours) | You want the \
very same bits. A right loop may add up in another order, and is then rounded \
differently.
"""


# Of each of some settings, the loops whose losses it leaves right.
HIDDEN_AT = {
    "num_steps=1": "D",
    "num_epochs=1": "ABCF",
    "beta=0": "BCG",
    "period=1": "AC",
}


@exercise("6.4", choice=True)
def letter_of(fault):
    """what is wrong -> the letter of the loop in which it is"""
    letters = {
        "gradients add up": "E",
        "pi_old and pi_ref are exchanged": "A",
        "pi_old is noted anew in every step": "D",
        "the KL is subtracted": "G",
        "the reference is copied once and never again": "B",
        "the reference is the policy of the epoch": "C",
        "the responses are those of the first epoch": "F",
    }
    return letters[fault]


def taken_for(fault, letter):
    """A fault looked for in another loop: the first setting that rules it out."""
    right = letter_of(fault)
    for setting, hidden in HIDDEN_AT.items():
        if (right in hidden) != (letter in hidden):
            told = "agrees with yours" if letter in hidden else "differs from yours"
            other = "would differ" if letter in hidden else "would agree"
            hint = f"With {setting} loop {letter} {told}. Where {fault}, it {other}."
            return f'"{fault}": "{right}" => "{fault}": "{letter}" | {hint}'


letter_of.insight = (
    "What a line does wrong shows only where it makes a difference, so the settings "
    "at which it hides say which line it is."
)
letter_of.cases = tuple(
    case(f"the loop in which {fault}", "Answer with a capital, A to G.", fault=fault)
    for fault in FAULTS
)
letter_of.mistakes = "\n".join(
    taken_for(fault, letter)
    for fault in FAULTS
    for letter in "ABCDEFG"
    if letter != letter_of(fault)
)
