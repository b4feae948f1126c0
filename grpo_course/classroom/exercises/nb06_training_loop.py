"""The exercises of 06_training_loop."""

import copy
from functools import partial

import torch
from torch import Generator, Tensor
from torch.optim import Adam, Optimizer

from grpo_course.classroom.exercises.shared import (
    PROMPTS,
    TOKENS,
    TOO_EARLY,
    case,
    numbers,
    products,
)
from grpo_course.classroom.old_check.exercise import Case, Exercise, Mistake
from grpo_course.formulas import compute_deltas, compute_kl_penalty, compute_loss
from grpo_course.sort import (
    SortModel,
    compute_log_probs,
    compute_reward,
    generate_responses,
    sort_distance_reward,
)


def _step_case(description: str, *shape: int, beta: float, apart: float = 0.5) -> Case:
    """Three policies that are up to `apart` nats from each other."""
    old = -1.5 - numbers(*shape, shift=-1.4, scale=0.5)
    return case(
        description,
        log_probs=old + numbers(*shape, shift=-0.6, scale=apart),
        old_log_probs=old,
        ref_log_probs=old + numbers(*shape, shift=0.9, scale=apart),
        deltas=numbers(*shape[:-1], shift=-0.9, scale=1.5),
        beta=beta,
    )


def _clipped(new: Tensor, old: Tensor, deltas: Tensor) -> Tensor:
    return -torch.minimum(*products((new - old).exp(), deltas[..., None])).mean()


def _k3(new: Tensor, other: Tensor) -> Tensor:
    return torch.expm1(other - new) - (other - new)


def inner_step_loss(log_probs, old_log_probs, ref_log_probs, deltas, beta):
    """Three policies' log-probs, deltas, a number -> scalar"""
    ratio, each = (log_probs - old_log_probs).exp(), deltas[..., None]
    gain = torch.minimum(ratio * each, ratio.clamp(0.8, 1.2) * each)
    difference = ref_log_probs - log_probs
    k3 = torch.expm1(difference) - difference
    return -gain.mean() + beta * k3.mean()


INNER_STEP_LOSS = Exercise(
    key="6.1",
    name="inner_step_loss",
    solution=inner_step_loss,
    axes={
        "log_probs": TOKENS,
        "old_log_probs": TOKENS,
        "ref_log_probs": TOKENS,
        "deltas": "batch trial",
        "return": "",
    },
    gradient_to=("log_probs",),
    cases=(
        _step_case("one response, no clipping", 1, 1, 2, beta=1.0, apart=0.1),
        _step_case("two prompts, three responses", 2, 3, 4, beta=0.5),
        _step_case("as many prompts as responses", 3, 3, 3, beta=0.1),
        _step_case("beta is 0", 2, 3, 4, beta=0.0),
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
    ),
    words={
        "frozen": "The value is right, but the KL is cut off: it sends no gradient, "
        "so it changes nothing. Only pi_old and pi_ref are frozen.",
        "difference - difference.expm1()": "You subtract the KL. The loss is "
        "minimized, so a penalty is added: minus would reward leaving the reference.",
        "k3.sum(dim=-1).mean()": "You sum the KL over pos. The policy loss is a mean "
        "over positions, so the KL must be too, or beta grows with the length.",
        "ratio * each": "Nothing is clipped: this is the unclipped loss plus the KL.",
        "log_probs - ref_log_probs": "k3 upside down: its exponent is ref minus "
        "policy, log(pi_ref / pi).",
        "k3.mean()": "beta is not used: the KL is added at full weight.",
        "-gain.mean()": "The KL is missing. Add beta times its mean.",
    },
    mistakes=(
        Mistake(
            lambda new, old, ref, d, b: (
                _clipped(new, old, d) + b * _k3(new, old).mean()
            ),
            "Your KL compares with pi_old. The policy is meant to stay close to "
            "pi_ref.",
        ),
        Mistake(
            lambda new, old, ref, d, b: (
                _clipped(new, old, d) + b * _k3(old, ref).mean()
            ),
            "Your KL compares pi_ref with pi_old: both are frozen, so it teaches "
            "nothing. It is the new log_probs that must stay close to pi_ref.",
        ),
        Mistake(
            lambda new, old, ref, d, b: (
                _clipped(new, ref, d) + b * _k3(new, ref).mean()
            ),
            "Your ratio divides by pi_ref. The responses came from pi_old, so the "
            "ratio is pi / pi_old.",
        ),
        Mistake(
            lambda new, old, ref, d, b: (
                _clipped(new, ref, d) + b * _k3(new, old).mean()
            ),
            "pi_old and pi_ref are swapped: pi_old belongs in the ratio, pi_ref in "
            "the KL.",
        ),
        Mistake(
            lambda new, old, ref, d, b: (
                _clipped(new, new.detach(), d) + b * _k3(new, ref).mean()
            ),
            "You use pi itself as pi_old: the ratio is 1 in every step, and nothing "
            "is ever clipped. Use the noted old_log_probs.",
        ),
        Mistake(
            lambda new, old, ref, d, b: _clipped(new, old, d) + b * (new - ref).mean(),
            "This KL is k1, the plain difference: as a loss it teaches nothing. Use "
            "k3.",
        ),
    ),
    equivalent={
        "(difference.expm1() - difference).abs()": "it is never negative",
    },
    insight="pi_old stands in the ratio, pi_ref in the KL, and only pi has a gradient.",
)


def refresh_epochs(num_epochs, period):
    """two ints -> list of ints"""
    return [epoch for epoch in range(num_epochs) if epoch % period == 0]


REFRESH_EPOCHS = Exercise(
    key="6.2",
    name="refresh_epochs",
    solution=refresh_epochs,
    cases=(
        case("10 epochs, a copy every 3", num_epochs=10, period=3),
        case("9 epochs, a copy every 3", num_epochs=9, period=3),
        case("a copy in every epoch", num_epochs=4, period=1),
        case("a period longer than the run", num_epochs=5, period=10),
        case("no epochs at all", num_epochs=0, period=3),
    ),
    words={
        "range(0 + 1, num_epochs)": "Epoch 0 is missing: without a copy there, the "
        "first epochs have no reference to compare with.",
        "range(0, num_epochs + 1)": "Your list goes up to num_epochs. Epochs count "
        "from 0, so the last one is num_epochs - 1.",
        "all counted": "A copy in every epoch: the period is not used, and the KL "
        "would start every epoch at zero.",
    },
    mistakes=(
        Mistake(
            lambda n, p: [e for e in range(n) if (e + 1) % p == 0],
            "Off by one: you copy in the last epoch of each period. The copy comes "
            "first: epoch % period == 0.",
        ),
        Mistake(
            lambda n, p: [e % p == 0 for e in range(n)],
            "These are flags, one per epoch. List the epochs themselves.",
        ),
        Mistake(
            lambda n, p: list(range(0, n * p, p)),
            "You make num_epochs copies. There are num_epochs epochs, and only every "
            "period-th has a copy.",
        ),
    ),
    insight="pi_ref changes at epochs 0, K, 2K, ... and stays frozen in between.",
)


RENEWED = (
    "Your reference is the policy as it was when the epoch began. Copy it, with "
    "copy.deepcopy, and only every `period` epochs."
)
NO_KL = (
    "The KL is 0 in all steps: it is missing, or it compares the model with itself as "
    "it is now."
)
FAULTS = {
    'compute_loss(log_probs, deltas, "clipped", old) => '
    'compute_loss(log_probs, deltas, "clipped", log_probs.detach())': "You note pi_old "
    "anew in every step, so the ratio is always 1. Note it once, when the responses "
    "are new.",
    "compute_kl_penalty(log_probs, ref) => compute_kl_penalty(log_probs, "
    "log_probs.detach())": NO_KL,
    "optimizer.zero_grad() => None": "The gradients of all steps add up. Call "
    "optimizer.zero_grad() before each backward.",
    "optimizer.step() => None": "Nothing moves. Zero the gradients, then "
    "loss.backward(), then optimizer.step(): is one missing, or out of order?",
    "generate_responses(prompts, model, 4, generator) => "
    "generate_responses(prompts, model, 10, generator)": "Your groups are too large: "
    "draw four responses to each prompt.",
    "generate_responses(prompts, model, 4, generator) => "
    "generate_responses(prompts, model, 4)": "You draw other responses: hand the "
    "generator of start() to generate_responses.",
    "beta * compute_kl_penalty(log_probs, ref) => "
    "compute_kl_penalty(log_probs, ref)": "beta is not used: the KL is added at full "
    "weight.",
    '"normalized_rewards" => "rewards"': "Your deltas are the raw rewards. Compare "
    "each response with its group: compute_deltas(rewards, 'normalized_rewards').",
    '"normalized_rewards" => "centered_rewards"': "Your deltas are centered and not "
    "divided by the spread of their group: 'normalized_rewards'.",
    '"clipped" => "unclipped"': "Nothing is clipped: ask compute_loss for 'clipped'.",
    'compute_loss(log_probs, deltas, "clipped", old) => '
    'compute_loss(log_probs, deltas, "naive")': "Your loss has no ratio: it is the "
    "naive one. Ask compute_loss for 'clipped', with pi_old.",
    "loss + beta * compute_kl_penalty(log_probs, ref) => "
    "loss - beta * compute_kl_penalty(log_probs, ref)": "You subtract the KL. The loss "
    "is minimized, so a penalty is added.",
    "loss + beta * compute_kl_penalty(log_probs, ref) => loss": NO_KL,
}
SAMPLES_INSIDE = (
    "You sample in every step. All steps of an epoch use the same responses: that is "
    "what the ratio and the clip are for."
)


def fresh_start() -> tuple[SortModel, Generator, Optimizer]:
    """The same model, random numbers and optimizer at each call."""
    torch.manual_seed(0)
    model = SortModel(5, 10, 3, 3, init_scale=0.1)
    return model, Generator().manual_seed(1), Adam(model.parameters(), lr=0.01)


def one_epoch(start, prompts, num_steps, beta):
    """-> losses [step]"""
    model, generator, optimizer = start()
    ref_model = copy.deepcopy(model)
    responses = generate_responses(prompts, model, 4, generator)
    rewards = compute_reward(prompts, responses, sort_distance_reward)
    deltas = compute_deltas(rewards, "normalized_rewards")
    with torch.no_grad():
        old = compute_log_probs(prompts, responses, model)
        ref = compute_log_probs(prompts, responses, ref_model)
    losses = []
    for _ in range(num_steps):
        log_probs = compute_log_probs(prompts, responses, model)
        loss = compute_loss(log_probs, deltas, "clipped", old)
        loss = loss + beta * compute_kl_penalty(log_probs, ref)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return torch.stack(losses)


def _sampling_inside(start, prompts, num_steps, beta, anew=""):
    """Samples before the loop and again in each step; `anew` is made again as well."""
    model, generator, optimizer = start()
    ref_model, losses = copy.deepcopy(model), []
    made: dict = {}
    for step in range(1 + num_steps):
        responses = generate_responses(prompts, model, 4, generator)
        rewards = compute_reward(prompts, responses, sort_distance_reward)
        now = {
            "deltas": compute_deltas(rewards, "normalized_rewards"),
            "old": compute_log_probs(prompts, responses, model).detach(),
            "ref": compute_log_probs(prompts, responses, ref_model).detach(),
        }
        made |= {name: now[name] for name in now if step == 0 or name in anew}
        if step == 0:
            continue
        new = compute_log_probs(prompts, responses, model)
        losses.append(
            inner_step_loss(new, made["old"], made["ref"], made["deltas"], beta)
        )
        optimizer.zero_grad()
        losses[-1].backward()
        optimizer.step()
    return torch.stack(losses).detach()


AS_A_LIST = (
    "You return a list. One tensor of all losses is asked for: torch.tensor makes it "
    "from numbers, torch.stack from tensors."
)
LEFT_EARLY = (
    "Your function returns after the first {}. Does `return` stand in the loop?"
)


def _epoch_case(description: str, num_steps: int, beta: float) -> Case:
    return case(
        description,
        start=fresh_start,
        prompts=PROMPTS,
        num_steps=num_steps,
        beta=beta,
    )


ONE_EPOCH = Exercise(
    key="6.3",
    name="one_epoch",
    solution=one_epoch,
    axes={"prompts": "batch pos", "return": "step"},
    cases=(
        _epoch_case("one step", 1, beta=0.1),
        _epoch_case("three steps, no KL", 3, beta=0.0),
        _epoch_case("three steps", 3, beta=0.5),
        _epoch_case("twelve steps, enough to be clipped", 12, beta=0.1),
    ),
    words=FAULTS,
    mistakes=(
        Mistake(
            lambda start, prompts, steps, beta: train_by_hand(
                start, prompts, steps, 1, steps, beta
            ),
            SAMPLES_INSIDE,
        ),
        *(
            Mistake(partial(_sampling_inside, anew=anew), SAMPLES_INSIDE)
            for anew in (
                *("", "deltas", "old", "ref"),
                *("deltas old", "deltas ref", "old ref", "deltas old ref"),
            )
        ),
        Mistake(
            lambda start, prompts, steps, beta: one_epoch(start, prompts, 1, beta),
            LEFT_EARLY.format("step"),
        ),
        Mistake(lambda *given: one_epoch(*given).tolist(), AS_A_LIST),
    ),
    equivalent={"detach lost": "what is kept alive is memory, not another number"},
    insight="One epoch is one rollout: everything that is compared with is noted "
    "before the first step, and only pi moves.",
)


def train_by_hand(start, prompts, num_epochs, num_steps, period, beta):
    """-> losses [step], of all epochs one after another"""
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
            loss = compute_loss(log_probs, deltas, "clipped", old)
            loss = loss + beta * compute_kl_penalty(log_probs, ref)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.detach())
    return torch.stack(losses)


WHEN_DUE = {"responses": "epoch", "old": "epoch", "ref": "epoch", "zeros": "step"}


def _loop(start, prompts, num_epochs, num_steps, period, beta, **often):
    """The loop; `often` says what is done once a "run", "copy", "epoch" or "step"."""
    model, generator, optimizer = start()
    losses = []
    for count in range(num_epochs * num_steps):
        begins, copies = count % num_steps == 0, count % (num_steps * period) == 0
        now = {"run": count == 0, "copy": copies, "epoch": begins, "step": True}
        due = {work: now[when] for work, when in (WHEN_DUE | often).items()}
        if copies:
            ref_model = copy.deepcopy(model)
        if due["responses"]:
            responses = generate_responses(prompts, model, 4, generator)
        if due["old"]:
            old = compute_log_probs(prompts, responses, model).detach()
        if due["ref"]:
            ref = compute_log_probs(prompts, responses, ref_model).detach()
        if due["zeros"]:
            optimizer.zero_grad()
        rewards = compute_reward(prompts, responses, sort_distance_reward)
        deltas = compute_deltas(rewards, "normalized_rewards")
        log_probs = compute_log_probs(prompts, responses, model)
        losses.append(inner_step_loss(log_probs, old, ref, deltas, beta))
        losses[-1].backward()
        optimizer.step()
    return torch.stack(losses).detach()


SAMPLES_ONCE = (
    "All epochs use the responses of the first. Sample anew in each epoch, with the "
    "policy as it is by then."
)


def _run_case(
    description: str, num_epochs: int, num_steps: int, period: int, beta: float
) -> Case:
    return case(
        description,
        start=fresh_start,
        prompts=PROMPTS,
        num_epochs=num_epochs,
        num_steps=num_steps,
        period=period,
        beta=beta,
    )


TRAIN_BY_HAND = Exercise(
    key="6.4",
    name="train_by_hand",
    solution=train_by_hand,
    axes={"prompts": "batch pos", "return": "step"},
    cases=(
        _run_case("one epoch of one step", 1, 1, period=1, beta=0.1),
        _run_case("one epoch", 1, 3, period=1, beta=0.1),
        _run_case("three epochs, one copy", 3, 2, period=5, beta=0.5),
        _run_case("four epochs, a copy every second", 4, 2, period=2, beta=0.5),
        _run_case("three epochs, a copy in each", 3, 2, period=1, beta=0.5),
        _run_case("six epochs of three steps", 6, 3, period=3, beta=0.1),
    ),
    words=FAULTS
    | {
        "copy.deepcopy(model) => model": RENEWED,
        "compute_kl_penalty(log_probs, ref) => compute_kl_penalty(log_probs, old)": ""
        "Your KL compares with pi_old. The policy is meant to stay close to pi_ref.",
        "epoch % period == 0 => epoch == 0": "Your reference is copied once and never "
        "again. It is renewed every `period` epochs.",
        "epoch % period == 0 => epoch >= 0": RENEWED,
        "epoch % period == 0 => epoch == 0 or (epoch + 1) % period == 0": "You copy "
        "one epoch too early: the copy is due when epochs 0, period, 2 period begin.",
        "epoch % period == 0 => epoch == 0 or (epoch - 1) % period == 0": "You copy "
        "one epoch too late, behind the steps of an epoch. The copy is due before "
        "them, when epochs 0, period, 2 period begin.",
        "epoch % period == 0 => epoch == 0 or epoch % period": "You copy in all epochs "
        "but those that need it: epoch % period is 0 there, and 0 counts as false.",
        "generate_responses(prompts, model, 4, generator) => "
        "generate_responses(prompts, ref_model, 4, generator)": "pi_ref writes your "
        "responses. The policy that trains must write them.",
        "compute_log_probs(prompts, responses, model) => "
        "compute_log_probs(prompts, responses, ref_model)": "pi_ref is scored where pi "
        "belongs. Only the KL asks the reference.",
    },
    mistakes=(
        Mistake(
            lambda start, prompts, epochs, steps, period, beta: train_by_hand(
                start, prompts, epochs * steps, 1, period * steps, beta
            ),
            SAMPLES_INSIDE,
        ),
        Mistake(
            lambda start, prompts, epochs, steps, period, beta: torch.cat(
                [one_epoch(start, prompts, steps, beta) for _ in range(epochs)]
            ),
            "Every epoch begins with a new model. Call start once, before the loops.",
        ),
        Mistake(partial(_loop, responses="run"), SAMPLES_ONCE),
        Mistake(partial(_loop, responses="run", old="run"), SAMPLES_ONCE),
        Mistake(partial(_loop, responses="run", old="run", ref="run"), SAMPLES_ONCE),
        Mistake(
            partial(_loop, old="run"),
            "Your pi_old belongs to the responses of the first epoch. Note it anew "
            "with each new rollout.",
        ),
        Mistake(
            partial(_loop, ref="copy"),
            "You ask pi_ref only when it is copied. The copy is kept, but every epoch "
            "has new responses: let it score those.",
        ),
        Mistake(
            partial(_loop, zeros="epoch"),
            "You zero the gradients once an epoch, so those of its steps add up. Call "
            "optimizer.zero_grad() before each backward.",
        ),
        Mistake(
            lambda start, prompts, epochs, steps, period, beta: train_by_hand(
                start, prompts, steps, epochs, period, beta
            ),
            "The two loops are swapped: the outer one runs num_epochs times, the inner "
            "one num_steps times.",
        ),
        Mistake(
            lambda start, prompts, epochs, *others: train_by_hand(
                start, prompts, 1, *others
            ),
            LEFT_EARLY.format("epoch"),
        ),
        Mistake(
            lambda start, prompts, epochs, steps, *others: train_by_hand(
                start, prompts, epochs, steps, *others
            )[-steps:],
            "Only the losses of the last epoch come back. Begin the list before both "
            "loops.",
        ),
        Mistake(
            lambda start, prompts, epochs, steps, *others: train_by_hand(
                start, prompts, epochs, steps, *others
            )[steps - 1 :: steps],
            "Only the last loss of each epoch comes back. Append in the inner loop.",
        ),
        Mistake(lambda *given: train_by_hand(*given).tolist(), AS_A_LIST),
    ),
    equivalent={"detach lost": "what is kept alive is memory, not another number"},
    insight="Two loops: the outer one notes pi_old with each rollout and copies pi_ref "
    "at times, the inner one only moves pi.",
)


def _bytes_case(num_parameters: int, with_reference: bool, with_critic: bool) -> Case:
    parts = ["the policy"]
    parts += ["a reference"] * with_reference + ["a critic"] * with_critic
    return case(
        f"{num_parameters} parameters: {', '.join(parts)}",
        num_parameters=num_parameters,
        with_reference=with_reference,
        with_critic=with_critic,
    )


def _kept(policy: int, reference: int, critic: int, always: int = 0):
    """A wrong count: bytes a parameter of each part."""
    return lambda n, r, c: n * (policy + always + r * reference + c * critic)


def bytes_kept(num_parameters, with_reference, with_critic):
    """int, bool, bool -> bytes"""
    trained, frozen = 2 + 2 + 2 * 4, 2
    total = trained * num_parameters
    total += frozen * num_parameters if with_reference else 0
    total += trained * num_parameters if with_critic else 0
    return total


BYTES_KEPT = Exercise(
    key="6.5",
    name="bytes_kept",
    solution=bytes_kept,
    cases=(
        _bytes_case(1000, False, False),
        _bytes_case(1000, True, False),
        _bytes_case(1000, False, True),
        _bytes_case(500_000_000, True, True),
    ),
    words={
        "2 + 4": "The gradient is missing: one number of 2 bytes for each trained "
        "weight.",
        "frozen * frozen * num_parameters": "You count a gradient for the reference. "
        "It is never trained: weights only.",
        "2 * 4": "Adam keeps two moments, each in 4 bytes: 8 bytes a weight on top of "
        "weight and gradient.",
        "2 + 2": "Adam is missing: its two moments take 8 bytes a weight, more than "
        "weight and gradient together.",
    },
    mistakes=(
        Mistake(
            _kept(12, 12, 12),
            "You count gradient and optimizer for the reference. It is never trained: "
            "weights only.",
        ),
        Mistake(
            _kept(12, 2, 12, always=2),
            "You count a full copy for pi_old. Its log-probabilities are noted, and "
            "no model is kept.",
        ),
        Mistake(
            _kept(12, 2, 2),
            "You count only weights for the critic. It is trained too: gradient and "
            "Adam as well.",
        ),
        Mistake(
            _kept(12, 2, 0),
            "The critic is missing.",
        ),
        Mistake(
            _kept(12, 0, 12),
            "The reference is missing: it is a copy of the weights.",
        ),
        Mistake(
            lambda n, r, c: n * (12 + 2 + 12),
            "You always count reference and critic. Count them where the arguments "
            "say so.",
        ),
    ),
    insight="A trained model costs six times its weights here, a frozen one once. "
    "That is what GRPO saves by having no critic.",
)
