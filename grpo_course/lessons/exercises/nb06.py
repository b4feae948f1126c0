"""The exercises of 06_training_loop."""

import copy

import torch
from torch import Generator, Tensor
from torch.optim import Adam

from grpo_course.classroom.check import case, exercise
from grpo_course.formulas import compute_deltas, compute_kl_penalty, compute_loss
from grpo_course.lessons.exercises.shared import PROMPTS, TOO_EARLY, numbers
from grpo_course.sort import (
    SortModel,
    compute_log_probs,
    compute_reward,
    generate_responses,
    sort_distance_reward,
)


@exercise("6.1", gradient="log_probs")
def inner_step_loss(log_probs, old_log_probs, ref_log_probs, deltas, beta):
    """float [batch trial pos] twice, float [batch trial pos], float [batch trial],
    number -> scalar"""
    ratio, each = (log_probs - old_log_probs).exp(), deltas[..., None]
    gain = torch.minimum(ratio * each, ratio.clamp(0.8, 1.2) * each)
    difference = ref_log_probs - log_probs
    k3 = torch.expm1(difference) - difference
    return -gain.mean() + beta * k3.mean()


def step_case(description, *shape, beta, apart=0.5):
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


inner_step_loss.insight = (
    "pi_old stands in the ratio, pi_ref in the KL, and only pi has a gradient."
)
inner_step_loss.cases = (
    step_case("one response, no clipping", 1, 1, 2, beta=1.0, apart=0.1),
    step_case("two prompts, three responses", 2, 3, 4, beta=0.5),
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
+ beta => - beta | You subtract the KL. The loss is minimized, so a penalty is added: minus would reward leaving the reference.
+ beta * k3.mean() => | The KL is missing. Add beta times its mean.
beta * k3 => k3 | beta is not used: the KL is added at full weight.
k3.mean() => k3.mean().detach() | The value is right, but the KL is cut off: it sends no gradient, so it changes nothing. Only pi_old and pi_ref are frozen.
k3.mean() => k3.sum(dim=-1).mean() | You sum the KL over pos. The policy loss is a mean over positions, so the KL must be too, or beta grows with the length.
= ref_log_probs - log_probs => = log_probs - ref_log_probs | k3 upside down: its exponent is ref minus policy, log(pi_ref / pi).
= ref_log_probs - log_probs => = old_log_probs - log_probs | Your KL compares with pi_old. The policy is meant to stay close to pi_ref.
(log_probs - old_log_probs) => (log_probs - ref_log_probs) | Your ratio divides by pi_ref. The responses came from pi_old, so the ratio is pi / pi_old.
(log_probs - old_log_probs) => (log_probs - ref_log_probs) && = ref_log_probs => = old_log_probs | pi_old and pi_ref are swapped: pi_old belongs in the ratio, pi_ref in the KL.
(log_probs - old_log_probs) => (log_probs - log_probs.detach()) | You use pi itself as pi_old: the ratio is 1 in every step, and nothing is ever clipped. Use the noted old_log_probs.
.clamp(0.8, 1.2) => | Nothing is clipped: this is the unclipped loss plus the KL.
torch.minimum(ratio * each, ratio.clamp(0.8, 1.2) * each) => ratio.clamp(0.8, 1.2) * each | Only the clipped product is left. Without the min, a token that was pushed the wrong way out of the range can never come back.
minimum => maximum | max for min: the clipped loss takes the smaller product.
gain = torch.minimum(ratio * each, ratio.clamp(0.8, 1.2) * each) => gain = log_probs * each | This is the naive loss: there is no ratio in it, so pi_old is not used and nothing is clipped.
-gain.mean() + beta * k3.mean() => beta * -gain.mean() + k3.mean() | beta weighs the policy loss here. It weighs the KL.
-gain => gain | The policy loss lacks its minus sign: an optimizer would minimize the objective. Only the KL is added as it is.
torch.expm1(difference) - difference => -difference | This KL is k1, the plain difference: as a loss it teaches nothing. Use k3.
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


SAMPLES_INSIDE = "You sample in every step. All steps of an epoch use the same responses: that is what the ratio and the clip are for."
# Of one epoch and of all: in both solutions these lines are the same.
OF_A_STEP = f"""
log_probs = compute => responses = generate_responses(prompts, model, 4, generator); log_probs = compute | {SAMPLES_INSIDE}
log_probs = compute => responses = generate_responses(prompts, model, 4, generator); deltas = compute_deltas(compute_reward(prompts, responses, sort_distance_reward), "normalized_rewards"); log_probs = compute | {SAMPLES_INSIDE}
loss.detach() => loss | Each loss still carries the graph that made it, so nothing of any step is freed. Append loss.detach(), which keeps the number and lets go of the graph.
torch.stack(losses) => torch.stack(losses).tolist() | You return a list. One tensor of all losses is asked for: torch.tensor makes it from numbers, torch.stack from tensors.
losses.append(loss.detach()) => losses.append(loss.detach()); break | Your function returns after the first step. Does `return` stand in the loop?
"clipped", old) => "naive") | This is the naive loss: there is no ratio in it, so pi_old is not used and nothing is clipped.
"clipped", old) => "clipped", log_probs.detach()) | You note pi_old anew in every step, so the ratio is always 1. Note it once, when the responses are new.
loss + beta * compute_kl_penalty(log_probs, ref) => loss | The KL is 0 in all steps: it is missing, or it compares the model with itself as it is now.
loss + beta => loss - beta | You subtract the KL. The loss is minimized, so a penalty is added.
optimizer.zero_grad() => | The gradients of all steps add up. Call optimizer.zero_grad() before each backward.
optimizer.step() => | Nothing moves. Zero the gradients, then loss.backward(), then optimizer.step(): is one missing, or out of order? Does the loop score the model that the optimizer moves, and not the reference? And do you pay by distance? Other rewards may tie all groups.
model, 4, generator) => model, 10, generator) | Your groups are too large: draw four responses to each prompt.
model, 4, generator) => model, 4) | You draw other responses: hand the generator of start() to generate_responses.
"normalized_rewards" => "centered_rewards" | Your deltas are the rewards less their mean. Divide them by the spread of the group as well: compute_deltas(rewards, 'normalized_rewards').
"normalized_rewards" => "rewards" | Your deltas are the raw rewards. Compare each response with its group: compute_deltas(rewards, 'normalized_rewards').
"""


@exercise("6.2", use=losses_alone)
def one_epoch(start, prompts, num_steps, beta):
    """function, int [batch pos], int, number -> losses [step]"""
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


def another_start():
    """As fresh_start, but another model and another learning rate."""
    torch.manual_seed(2)
    model = SortModel(5, 10, 3, 3, init_scale=0.1)
    return model, Generator().manual_seed(3), Adam(model.parameters(), lr=0.03)


ANOTHER_START = "This `start` is not the notebook's fresh_start. Call the argument, which brings model, generator and optimizer."
OTHER_PROMPTS = "These prompts are not those of the notebook. Use the argument `prompts` throughout."


def epoch_case(
    description, num_steps, beta, hint="", start=fresh_start, prompts=PROMPTS
):
    """An epoch, from the same start unless told otherwise."""
    given = dict(num_steps=num_steps, beta=beta)
    return case(description, hint, start=start, prompts=prompts, **given)


one_epoch.insight = "One epoch is one rollout: everything that is compared with is noted before the first step, and only pi moves. In this first epoch pi_old and pi_ref are one and the same policy, so an exchange of the two cannot show; in 6.3 it does."
one_epoch.cases = (
    epoch_case(
        "one step",
        1,
        beta=0.1,
        hint="The first loss is 0: pi is still pi_old and pi_ref, and the deltas of a group sum to zero. Note each loss as it is before its step.",
    ),
    epoch_case("three steps, no KL", 3, beta=0.0),
    epoch_case("three steps", 3, beta=0.5),
    epoch_case("twelve steps, enough to be clipped", 12, beta=0.1),
    epoch_case("another start", 2, 0.5, ANOTHER_START, start=another_start),
    epoch_case("two of the prompts", 2, 0.5, OTHER_PROMPTS, prompts=PROMPTS[1:]),
)
one_epoch.mistakes = f"""{OF_A_STEP}
return train_by_hand(start, prompts, num_steps, 1, num_steps, beta) | {SAMPLES_INSIDE}
"""


@exercise("6.3", use=losses_alone)
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
            loss = compute_loss(log_probs, deltas, "clipped", old)
            loss = loss + beta * compute_kl_penalty(log_probs, ref)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.detach())
    return torch.stack(losses)


def run_case(
    description,
    num_epochs,
    num_steps,
    period,
    beta,
    hint="",
    start=fresh_start,
    prompts=PROMPTS,
):
    """A run, from the same start unless told otherwise."""
    return case(
        description,
        hint,
        start=start,
        prompts=prompts,
        num_epochs=num_epochs,
        num_steps=num_steps,
        period=period,
        beta=beta,
    )


SAMPLES_ONCE = "All epochs use the responses of the first. Sample anew in each epoch, with the policy as it is by then."

train_by_hand.insight = "Two loops: the outer one notes pi_old with each rollout and copies pi_ref at times, the inner one only moves pi."
train_by_hand.cases = (
    run_case("one epoch of one step", 1, 1, period=1, beta=0.1),
    run_case("one epoch", 1, 3, period=1, beta=0.1),
    run_case("three epochs, one copy", 3, 2, period=5, beta=0.5),
    run_case("four epochs, a copy every second", 4, 2, period=2, beta=0.5),
    run_case("three epochs, a copy in each", 3, 2, period=1, beta=0.5),
    run_case("six epochs of three steps", 6, 3, period=3, beta=0.1),
    run_case("another start", 2, 2, 1, 0.5, ANOTHER_START, start=another_start),
    run_case("two of the prompts", 2, 2, 2, 0.5, OTHER_PROMPTS, prompts=PROMPTS[1:]),
)
train_by_hand.mistakes = f"""{OF_A_STEP}
"clipped", old) => "clipped", ref) && (log_probs, ref) => (log_probs, old) | pi_old and pi_ref are exchanged: pi_old belongs in the ratio, pi_ref in the KL. Where pi_ref has just been copied they are the same policy, and nothing shows.
epoch % period == 0 => epoch % num_steps == 0 | You count the steps of an epoch in place of the period. The copy is renewed where epoch % period is 0.
epoch in range(num_epochs) => epoch in range(num_steps) && _ in range(num_steps) => _ in range(num_epochs) | num_epochs and num_steps are exchanged: the outer loop counts epochs, the inner one steps.
epoch % period == 0 => epoch == 0 | Your reference is copied once and never again. It is renewed every `period` epochs.
copy.deepcopy(model) => model | Your reference is the policy as it was when the epoch began, which is pi_old. Copy it, with copy.deepcopy, and only every `period` epochs.
epoch % period == 0 => epoch == 0 or (epoch + 1) % period == 0 | You copy one epoch too early: the copy is due when epochs 0, period, 2 period begin.
epoch % period == 0 => epoch == 0 or (epoch - 1) % period == 0 | You copy one epoch too late, behind the steps of an epoch. The copy is due before them, when epochs 0, period, 2 period begin.
epoch % period == 0 => epoch == 0 or epoch % period | You copy in all epochs but those that need it: epoch % period is 0 there, and 0 counts as false.
ref = compute => ref = ref if epoch % period else compute | You ask pi_ref only when it is copied. The copy is kept, but every epoch has new responses: let it score those.
old = compute => old = old if epoch else compute | Your pi_old belongs to the responses of the first epoch. Note it anew with each new rollout.
old = compute_log_probs(prompts, responses, model) => old = compute_log_probs(prompts, responses, ref_model) | You ask pi_ref what pi_old says. The responses come from the model as it is when the epoch begins: note its log-probabilities.
responses = generate => responses = responses if epoch else generate | {SAMPLES_ONCE}
responses = generate => responses = responses if epoch else generate && old = compute => old = old if epoch else compute | {SAMPLES_ONCE}
responses = generate => responses = responses if epoch else generate && old = compute => old = old if epoch else compute && ref = compute => ref = ref if epoch else compute | {SAMPLES_ONCE}
epoch in range(num_epochs) => epoch in range(num_epochs * num_steps) && % period => % (period * num_steps) && range(num_steps): => range(1): | {SAMPLES_INSIDE}
return torch.cat([one_epoch(start, prompts, num_steps, beta) for _ in range(num_epochs)]) | Every epoch begins with a new model. Call start once, before the loops.
optimizer.zero_grad() => _ or optimizer.zero_grad() | You zero the gradients once an epoch, so those of its steps add up. Call optimizer.zero_grad() before each backward.
responses = generate => optimizer = Adam(model.parameters(), lr=0.01); responses = generate | Every epoch begins with a new optimizer, which has forgotten Adam's moments. The one of start() serves all epochs.
range(num_epochs) => range(1) | Your function returns after the first epoch. Does `return` stand in the loop?
responses = generate => losses = []; responses = generate | Only the losses of the last epoch come back. Begin the list before both loops.
losses.append(loss.detach()) => losses = losses[:epoch] + [loss.detach()] | Only the last loss of each epoch comes back. Append in the inner loop.
"""


def bytes_case(num_parameters, with_reference, with_critic):
    """A policy, with or without the other two models."""
    parts = ["the policy"]
    parts += ["a reference"] * with_reference + ["a critic"] * with_critic
    return case(
        f"{num_parameters} parameters: {', '.join(parts)}",
        num_parameters=num_parameters,
        with_reference=with_reference,
        with_critic=with_critic,
    )


@exercise("6.4")
def bytes_kept(num_parameters, with_reference, with_critic):
    """int, bool, bool -> bytes"""
    trained, frozen = 2 + 2 + 4 + 2 * 4, 2
    total = trained * num_parameters
    total += frozen * num_parameters if with_reference else 0
    total += trained * num_parameters if with_critic else 0
    return total


bytes_kept.insight = "A trained model costs eight times its bf16 weights here, a frozen one once. That is what GRPO saves by having no critic."
bytes_kept.cases = (
    bytes_case(1000, False, False),
    bytes_case(1000, True, False),
    bytes_case(1000, False, True),
    bytes_case(2000, True, True),
)
bytes_kept.mistakes = """
2 + 2 + 4 + 2 * 4 => 2 + 4 + 2 * 4 | Either the weights or their gradients are missing: both are there in bf16, 2 bytes each.
2 + 2 + 4 + 2 * 4 => 2 + 4 + 4 + 2 * 4 | You count the gradient in fp32, as some trainers keep it. Here it takes 2 bytes.
2 + 2 + 4 + 2 * 4 => 2 + 2 + 4 | These are 8 bytes a weight. Is Adam missing? Its two averages take 8 more. Or did you count them in bf16, and no master copy? Here averages and master copy take 4 bytes each.
2 + 2 + 4 + 2 * 4, 2 => 2, 2 | You count weights only. What is trained has a gradient, a master copy and Adam's two averages as well.
2 + 2 + 4 + 2 * 4 => 2 + 2 + 2 * 4 | These are 12 bytes a weight, so 4 are missing: the master copy, without which small steps are lost, or one of Adam's two averages.
2 + 2 + 4 + 2 * 4, 2 => 4 + 4 + 4 + 2 * 4, 4 | You count 4 bytes for each weight and gradient. They are bf16 here, 2 bytes each; the master copy and Adam's averages are fp32.
2 + 2 + 4 + 2 * 4, 2 => 2 + 2 + 4 + 2 * 4, 4 | You count the reference in fp32. It is a frozen copy of the bf16 weights, 2 bytes each.
frozen * num => trained * num | You count gradient, master copy and optimizer for the reference. It is never trained: weights only.
frozen * num_parameters if with_reference else 0 => 0 | The reference is missing: it is a copy of the weights.
trained * num_parameters if => frozen * num_parameters if | You count only weights for the critic. It is trained too, with all that belongs to it.
trained * num_parameters if with_critic else 0 => 0 | The critic is missing.
return 34 * num_parameters | You always count reference and critic. Count them where the arguments say so.
total = trained * num => total = (trained + frozen) * num | You count a full copy for pi_old. Its log-probabilities are noted, and no model is kept.
"""
