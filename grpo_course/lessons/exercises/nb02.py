"""The exercises of 02_policy."""

import torch
from einops import rearrange, repeat
from torch import Generator
from torch.nn.functional import one_hot
from torch.optim import SGD

from grpo_course.classroom.check import case, exercise
from grpo_course.lessons.exercises.shared import PROMPTS, TOO_LATE, numbers
from grpo_course.sort import (
    SortModel,
    compute_log_probs,
    compute_reward,
    generate_responses,
    sort_distance_reward,
    sort_exact_reward,
)


def tiled_log_probs(logits, responses):
    """float [batch pos vocab], int [batch trial pos] -> float [batch trial pos]"""
    batch, trials, pos = responses.shape
    log_probs = logits.softmax(dim=-1).log()
    copies = log_probs.repeat(trials, 1, 1).reshape(batch, trials, pos, -1)
    return copies.gather(dim=-1, index=responses[..., None]).squeeze(-1)


@exercise("2.1", gradient="logits", draft=tiled_log_probs)
def gather_log_probs(logits, responses):
    """float [batch pos vocab], int [batch trial pos] -> float [batch trial pos]"""
    trials = responses.shape[1]
    log_probs = logits.log_softmax(dim=-1)
    copies = repeat(log_probs, "batch pos vocab -> batch trial pos vocab", trial=trials)
    return copies.gather(dim=-1, index=responses[..., None]).squeeze(-1)


def gather_case(description, logits, trials, hint=""):
    """Logits, and responses whose tokens run through the vocabulary."""
    batch, pos, vocab = logits.shape
    tokens = torch.arange(batch * trials * pos).square().add(1).remainder(vocab)
    responses = tokens.reshape(batch, trials, pos)
    return case(description, hint, logits=logits, responses=responses)


gather_log_probs.insight = (
    "log_softmax over vocab, then gather at the response: extreme logits stay finite, "
    "and the gradient reaches every logit."
)
gather_log_probs.cases = (
    gather_case("two prompts, two responses", numbers(2, 3, 4), 2),
    gather_case("all axes of the same size", numbers(3, 3, 3), 3),
    gather_case("one prompt, six responses", numbers(1, 2, 4), 6),
    gather_case("one response of one token", numbers(1, 1, 3), 1),
    gather_case(
        "extreme logits",
        torch.tensor([[[1000.0, 0.0, -1000.0], [0.0, 0.0, 500.0]]]),
        3,
        TOO_LATE,
    ),
)
gather_log_probs.mistakes = """
.log_softmax(dim=-1) => | You gather raw logits. They become log-probabilities only \
after log_softmax over the vocabulary.
.log_softmax(dim=-1) => .log_softmax(dim=-2) | You normalize over pos. The \
probabilities of all tokens at one position sum to 1: log_softmax over vocab, the last \
axis.
.log_softmax( => .softmax( | You return probabilities: softmax without the log. Use \
log_softmax.
return logits.log_softmax(-1).gather(-1, responses) | Without a trial axis, gather \
reads row j of the prompt for response j. Repeat the log-probs along trial, and index \
with responses[..., None].
"batch pos vocab -> batch trial pos vocab", trial=trials) => \
"b p v -> (t b) p v", t=trials).reshape(*responses.shape, -1) | Your copies run prompt \
by prompt, so a response reads another prompt's table. All copies of a prompt stand \
together: "batch pos vocab -> batch trial pos vocab".
return logits.log_softmax(-1).gather(1, responses) | gather(1, ...) picks along pos, \
as if a token were a position. It is a place in the vocabulary: pick along the last \
axis, from log-probs repeated along trial.
.squeeze(-1) => .squeeze(-1).sum(dim=-1) | You sum over pos. The result keeps one \
log-probability for each token: [batch trial pos].
"""


@exercise("2.2")
def reinforce(responses, rewards, probs):
    """int [trial pos], float [trial], float [pos vocab] -> float [trial pos vocab]"""
    drawn = one_hot(responses, probs.shape[-1])  # [trial pos vocab]
    return rewards[:, None, None] * (drawn - probs)


def group_case(description, trials, pos, vocab):
    """A group whose numbers leave out the largest; one response earns nothing."""
    return case(
        description,
        responses=numbers(trials, pos, scale=9.0).abs().long().remainder(vocab - 1),
        rewards=torch.arange(trials).add(2).remainder(5).float(),
        probs=numbers(pos, vocab).softmax(dim=-1),
    )


reinforce.insight = (
    "One-hot minus probabilities, times the reward: what was drawn rises, the rest of "
    "its row sinks, and a reward of zero pushes nothing."
)
reinforce.cases = (
    group_case("five responses of three numbers", 5, 3, 4),
    group_case("all axes of the same size", 4, 4, 4),
    group_case("one response of one number", 1, 1, 3),
)
OF_PI = (
    "You push with the gradient of a probability. Asked is that of its logarithm: the "
    "probability in front goes."
)
UPHILL = (
    "The sign is the other one. The reward is to rise, so the number that was drawn "
    "goes up: 1 minus its probability. A minus belongs to a loss."
)
reinforce.mistakes = f"""
rewards[:, None, None] * => | The rewards are missing: what earns nothing pushes \
nothing.
drawn - probs => probs - drawn | {UPHILL}
(drawn - probs) => drawn | The second term is missing. Every logit of the row stands \
in the sum of exponentials, so each of them has a derivative, and it is -p(v).
drawn - probs => drawn - drawn * probs | You subtract the probability at the drawn \
number only. Every logit of the row stands in the sum of exponentials.
(drawn - probs) => drawn / probs | You differentiate with respect to the probability. \
Asked are the logits: go through the softmax.
* (drawn - probs) => * drawn - probs | The reward belongs to both terms: mind the \
brackets.
(drawn - probs) => (drawn - probs) * (drawn * probs).sum(dim=-1, keepdim=True) | {OF_PI}
rewards[:, None, None] => (rewards - rewards.mean())[:, None, None] | You compare with \
the group, as in notebook 00. Here the rewards count as they are.
rewards[:, None, None] => rewards[:, None] | Your rewards run along pos. They belong \
to trial, the first axis: rewards[:, None, None].
"""


def naive_loss(log_probs, deltas):
    """float [... batch trial pos], float [... batch trial] -> scalar"""
    return -(deltas[..., None] * log_probs).mean()


FROM_THE_END = (
    "Several models side by side have one more axis in front. Count axes from the "
    "end: deltas[..., None] is right with it and without it."
)


def after_updates(one_update, seed, prompts, num_responses, num_updates):
    """The logits after so many updates of a policy; with several seeds, of all."""
    several = isinstance(seed, tuple)
    with torch.random.fork_rng():
        torch.manual_seed(seed[0] if several else seed)
        model = SortModel(5, 10, 3, 3, init_scale=0.1, seeds=seed if several else None)
        generators = [Generator().manual_seed(each) for each in seed] if several else []
        generator = generators or Generator().manual_seed(seed)
        optimizer = SGD(model.parameters(), lr=0.02)
        for _ in range(num_updates):
            one_update(model, optimizer, prompts, num_responses, generator)
    logits = model(prompts).detach()
    return rearrange(logits, "... batch pos vocab -> (... batch) pos vocab")


@exercise("2.3", use=after_updates)
def one_update(model, optimizer, prompts, num_responses, generator):
    """policy, its optimizer, int [batch pos], number, generator -> [batch pos vocab]"""
    responses = generate_responses(prompts, model, num_responses, generator)
    rewards = compute_reward(prompts, responses, sort_distance_reward)
    log_probs = compute_log_probs(prompts, responses, model)
    loss = naive_loss(log_probs, rewards)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


def update_case(description, num_prompts, num_responses, seed, num_updates=1, hint=""):
    """A policy from a seed; the logits after its updates are compared."""
    return case(
        description,
        hint,
        seed=seed,
        prompts=PROMPTS[:num_prompts],
        num_responses=num_responses,
        num_updates=num_updates,
    )


ONCE = (
    "One sample, one backward, one step: with the model, the optimizer and the "
    "generator that you are given, and one call of generate_responses. What is "
    "compared are the logits after it."
)
NOT_MOVED = (
    "Nothing has moved. The order is zero_grad, backward, step, and all of them belong "
    "to the model and the optimizer that you are given, not to those of a cell above. "
    "Nor may anything between the model and the loss cut the gradient, such as "
    "detach() or no_grad()."
)
BASELINE = (
    "You compare with the group, as in notebook 00. Why that helps is the "
    "subject of notebook 03; here the deltas are the plain rewards."
)
one_update.insight = (
    "Sample, reward, look up, weigh, step: a whole update of a policy. Everything that "
    "follows changes one of these lines."
)
one_update.cases = (
    update_case("one prompt, four responses", 1, 4, 34, hint=ONCE),
    update_case("three prompts, sixteen responses", 3, 16, 57, hint=ONCE),
    update_case(
        "two updates in a row",
        1,
        4,
        34,
        2,
        "The second update goes wrong. Each backward adds to the gradients that are "
        "there, so begin with optimizer.zero_grad().",
    ),
    update_case(
        "two models side by side: one more axis in front",
        2,
        3,
        (5, 6),
        hint=FROM_THE_END,
    ),
)
one_update.mistakes = f"""
naive_loss(log_probs, rewards) => -log_probs.mean() | The rewards do not count: weigh \
each response's log-probabilities with its reward.
sort_distance_reward) => sort_distance_reward); rewards = rewards - \
rewards.mean(dim=-1, keepdim=True) | {BASELINE}
naive_loss(log_probs, rewards) => naive_loss(rewards, log_probs) | You have exchanged \
the arguments, and broadcasting lets it pass: the log-probabilities come first, then \
the deltas.
responses, model) => responses, model).exp() | You weigh probabilities. The policy \
gradient is that of the log-probability: leave out the exp.
compute_log_probs(prompts, responses, model) => compute_log_probs(prompts, \
generate_responses(prompts, model, num_responses, generator), model) | You look up \
other responses than those that were rewarded. Sample once, and use the same responses \
for both.
model, num_responses, generator) => model, num_responses) | You sample without the \
generator that you are given, so the responses are other ones. Pass it to \
generate_responses.
= naive_loss => = -naive_loss | The minus sign is missing. An optimizer minimizes the \
loss, and a response that earns must become likelier.
naive_loss(log_probs, rewards) => -(rewards * log_probs.sum(dim=-1)).mean() | You sum \
the log-probabilities over the positions, so your step is three times as long. The \
naive loss takes the mean over the positions too: call naive_loss.
optimizer.step() => pass | {NOT_MOVED}
"""
