"""The exercises of 02_policy."""

import torch
from einops import rearrange, repeat
from torch import Generator
from torch.optim import SGD

from grpo_course.classroom.check import case, exercise
from grpo_course.lessons.exercises.shared import PROMPTS, TOO_LATE, numbers
from grpo_course.sort import (
    SortModel,
    compute_log_probs,
    compute_reward,
    generate_responses,
    sort_distance_reward,
    sort_exact_reward,  # of a mistake
    sort_inclusion_ordering_reward,  # of another
)


@exercise("2.1", gradient="logits")
def gather_log_probs(logits, responses):
    """float [batch pos vocab], int [batch trial pos] -> float [batch trial pos]"""
    log_probs = logits.log_softmax(dim=-1)
    trials = responses.shape[1]
    copies = repeat(log_probs, "batch pos vocab -> batch trial pos vocab", trial=trials)
    return copies.gather(dim=-1, index=responses[..., None]).squeeze(-1)


def gather_case(description, logits, trials, hint=""):
    """Logits, and responses whose tokens run through the vocabulary."""
    batch, pos, vocab = logits.shape
    tokens = torch.arange(batch * trials * pos).square().add(1).remainder(vocab)
    responses = tokens.reshape(batch, trials, pos)
    return case(description, hint, logits=logits, responses=responses)


gather_log_probs.insight = "log_softmax over vocab, then gather at the response: extreme logits stay finite, and the gradient reaches every logit."
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
.log_softmax(dim=-1) => | You gather raw logits. They become log-probabilities only after log_softmax over the vocabulary.
.log_softmax(dim=-1) => .log_softmax(dim=-2) | You normalize over pos. The probabilities of all tokens at one position sum to 1: log_softmax over vocab, the last axis.
.log_softmax(dim=-1) => .log_softmax(dim=0) | You normalize over the batch. The probabilities of all tokens at one position sum to 1: log_softmax over vocab, the last axis.
logits.log_softmax(dim=-1) => logits - logits.amax(dim=-1, keepdim=True) | Without its largest logit a table is safe, and not normalized yet: the logarithm of the sum of exponentials is missing. log_softmax does both.
.log_softmax( => .softmax( | You return probabilities: softmax without the log. Use log_softmax.
return logits.log_softmax(-1).gather(-1, responses) | Without a trial axis, gather reads row j of the prompt for response j. Repeat the log-probs along trial, and index with responses[..., None].
return repeat(logits.log_softmax(-1), "b p v -> (t b) p v", t=responses.shape[1]).reshape(*responses.shape, -1).gather(-1, responses[..., None]).squeeze(-1) | Your copies run prompt by prompt, so a response reads another prompt's table. All copies of a prompt stand together: "batch pos vocab -> batch trial pos vocab".
return logits.log_softmax(-1).gather(1, responses) | gather(1, ...) picks along pos, as if a token were a position. It is a place in the vocabulary: pick along the last axis, from log-probs repeated along trial.
.squeeze(-1) => .squeeze(-1).sum(dim=-1) | You sum over pos. The result keeps one log-probability for each token: [batch trial pos].
copies.gather => -copies.gather | You return minus the log-probability, which is the cross-entropy. Log-probabilities are never above zero.
"""


@exercise("2.2", gradient="response_probs")
def expected_reward(response_probs, rewards):
    """float [batch all], float [batch all] -> float [batch]"""
    return (response_probs * rewards).sum(dim=-1)


expected_reward.insight = "With all responses enumerated, the objective is a plain weighted sum, and its gradient is exact: no sampling."
expected_reward.cases = (
    case(
        "two prompts, three responses",
        response_probs=[[0.5, 0.25, 0.25], [0.1, 0.2, 0.7]],
        rewards=[[0.0, 1.0, 3.0], [3.0, 1.0, 2.0]],
    ),
    case(
        "as many prompts as responses",
        response_probs=[[0.9, 0.1], [0.3, 0.7]],
        rewards=[[1.0, 5.0], [-2.0, 4.0]],
    ),
    case(
        "a policy that always gives one response",
        response_probs=[[0.0, 0.0, 1.0, 0.0]],
        rewards=[[100.0, 2.0, 1.0, 7.0]],
    ),
    case(
        "more prompts than responses",
        response_probs=[[0.4, 0.6]] * 3,
        rewards=[[1.0, 2.0], [0.0, 3.0], [5.0, -1.0]],
    ),
)
expected_reward.mistakes = """
dim=-1 => dim=0 | You sum over the batch, which mixes prompts. Sum over all responses of one prompt: the last axis.
.sum(dim=-1) => .sum() | You sum over everything. Each prompt has its own expected reward: sum over the last axis only.
.sum(dim=-1) => .sum() / len(rewards) | You average over the prompts too. Each prompt has its own expected reward: sum over the last axis only.
.sum( => .mean( | You divide by the number of responses. The probabilities already sum to 1: take the sum, not the mean.
return rewards.mean(-1) | You average the rewards without weights. A likely response counts more: weight each reward by its probability.
return response_probs @ rewards.T | A matrix product pairs every prompt with every other. Each prompt meets its own rewards only: multiply, then sum over the last axis.
return rewards.gather(-1, response_probs.argmax(-1, keepdim=True)).squeeze(-1) | You take the reward of the most likely response. All responses count, each by its probability.
.sum(dim=-1) => .sum(dim=-1) / rewards.sum(dim=-1) | You divide by the sum of the rewards. The weights are the probabilities, and they sum to 1 already: divide by nothing.
return rewards.amax(-1) | You take the best reward, which does not depend on `response_probs`. All responses count, each by its probability.
return (response_probs.softmax(-1) * rewards).sum(-1) | You take a softmax of what are probabilities already. Weigh with them as they are.
return (response_probs.log() * rewards).sum(-1) | You weigh with log-probabilities. An expected value weighs with the probabilities themselves.
"""


@exercise("2.3", gradient="log_probs")
def naive_loss(log_probs, deltas):
    """float [... batch trial pos], float [... batch trial] -> scalar"""
    return -(deltas[..., None] * log_probs).mean()


def loss_case(description, *shape, hint=""):
    """Log-probabilities, and deltas that resemble none of them."""
    log_probs = -numbers(*shape).abs() - 0.1
    deltas = numbers(2, *shape[:-1], scale=2.0)[1]  # further along the same sine
    return case(description, hint, log_probs=log_probs, deltas=deltas)


FROM_THE_END = "Several models side by side have one more axis in front. Count axes from the end: deltas[..., None] is right with it and without it."
naive_loss.insight = "Its gradient raises log-probabilities where delta is positive and lowers them where it is negative, in proportion to delta."
naive_loss.cases = (
    loss_case("two prompts, two responses", 2, 2, 3),
    loss_case("all axes of the same size", 2, 2, 2),
    loss_case("a long response", 1, 2, 9),
    loss_case("one prompt, one response, one token", 1, 1, 1),
    loss_case(
        "four models side by side: one more axis in front",
        4,
        2,
        3,
        3,
        hint=FROM_THE_END,
    ),
)
naive_loss.mistakes = """
-(deltas => (deltas | The minus sign is missing. An optimizer minimizes the loss, and you want likely responses where delta is positive.
* log_probs => * log_probs.exp() | You weight probabilities. The policy gradient is that of the log-probability: leave out the exp.
.mean() => .sum() | You sum. The loss is the mean over batch, trial and pos, so that it does not grow with the size of the batch.
.mean() => .sum() / len(deltas) | You sum, and divide by the number of prompts only. The loss is the mean over batch, trial and pos.
.mean() => .mean(dim=(-1, -2, -3)).sum() | You add up the losses of several models side by side. The mean runs over everything, and so over them too.
.mean() => .mean(dim=-1).sum() | You add up the losses of the responses. The mean runs over batch and trial as well.
deltas[..., None] => (deltas - deltas.mean(dim=-1, keepdim=True))[..., None] | You take the group's mean off the deltas. They are weighed with as they come.
.mean() => .sum(dim=-1).mean() | You sum over pos before averaging, so a long response counts more. Take the mean over pos too.
deltas[..., None] => deltas[None] | deltas broadcasts along the wrong axis. Each response has one delta for all its positions: deltas[..., None] is [batch trial 1].
deltas[..., None] => deltas[:, None] | deltas broadcasts along the wrong axis. Each response has one delta for all its positions: deltas[..., None] is [batch trial 1].
return -deltas.mean() * log_probs.mean() | You multiply two means. Each response's log-probabilities meet its own delta: multiply first, then take the mean.
deltas[..., None] * => | The deltas are missing: every response is pushed up alike. Weigh its log-probabilities with its delta.
deltas[..., None] => deltas.abs()[..., None] | The sign of the deltas is lost. Where delta is negative, the response must become less likely.
"""


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


@exercise("2.4", use=after_updates)
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
    size = {"prompts": PROMPTS[:num_prompts], "num_responses": num_responses}
    return case(description, hint, seed=seed, **size, num_updates=num_updates)


ONCE = "One sample, one backward, one step: with the model, the optimizer and the generator that you are given, and one call of generate_responses. What is compared are the logits after it."
NOT_MOVED = "Nothing has moved. The order is zero_grad, backward, step, and all of them belong to the model and the optimizer that you are given, not to those of a cell above. Nor may anything between the model and the loss cut the gradient, such as detach() or no_grad()."
BASELINE = "You take the mean of the group away, as in notebook 00. Why that helps is the subject of notebook 03; here the deltas are the plain rewards."
one_update.insight = "Sample, reward, score, weigh, step: a whole update of a policy. Everything that follows changes one of these lines."
one_update.cases = (
    update_case("one prompt, four responses", 1, 4, 34, hint=ONCE),
    update_case("three prompts, sixteen responses", 3, 16, 57, hint=ONCE),
    update_case(
        "two updates in a row",
        1,
        4,
        34,
        2,
        "The second update goes wrong. Each backward adds to the gradients that are there, so begin with optimizer.zero_grad().",
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
sort_distance_reward => sort_exact_reward | You pay with another reward. Here it is sort_distance_reward.
sort_distance_reward => sort_inclusion_ordering_reward | You pay with another reward. Here it is sort_distance_reward.
naive_loss(log_probs, rewards) => -log_probs.mean() | The rewards do not count: weigh each response's log-probabilities with its reward.
sort_distance_reward) => sort_distance_reward); rewards = rewards - rewards.mean(dim=-1, keepdim=True) | {BASELINE}
sort_distance_reward) => sort_distance_reward); rewards = (rewards - rewards.mean(dim=-1, keepdim=True)) / (rewards.std(dim=-1, keepdim=True) + 1e-4) | {BASELINE}
responses, model) => responses, model).exp() | You weigh probabilities. The policy gradient is that of the log-probability: leave out the exp.
compute_log_probs(prompts, responses, model) => compute_log_probs(prompts, generate_responses(prompts, model, num_responses, generator), model) | You score other responses than those that were rewarded. Sample once, and use the same responses for both.
model, num_responses, generator) => model, num_responses) | You sample without the generator that you are given, so the responses are other ones. Pass it to generate_responses.
= naive_loss => = -naive_loss | The minus sign is missing. An optimizer minimizes the loss, and a response that earns must become likelier.
naive_loss(log_probs, rewards) => -(rewards[..., None] * log_probs).sum() | You sum. The naive loss is the mean over batch, trial and pos.
naive_loss(log_probs, rewards) => -(rewards * log_probs.sum(dim=-1)).mean() | You add up the log-probabilities of a response, so the loss and the step are three times as large. The naive loss takes the mean over pos, too.
naive_loss(log_probs, rewards) => -(rewards[:, :, None] * log_probs).mean() | {FROM_THE_END}
optimizer.zero_grad() => pass | The first update is right, and the second is not: backward adds to the gradients that are there. Clear them with optimizer.zero_grad() in each update.
optimizer.step() => pass | {NOT_MOVED}
loss.backward() => pass | {NOT_MOVED}
loss = naive_loss(log_probs, rewards) => loss = naive_loss(log_probs.detach().requires_grad_(), rewards) | {NOT_MOVED}
loss.backward() => loss.backward(); optimizer.zero_grad() | {NOT_MOVED}
optimizer.step() => optimizer.step(); optimizer.step() | You take two steps. One update is one step.
"""
