"""The exercises of 02_policy."""

import torch
from einops import repeat
from torch import Generator, Tensor, nn
from torch.optim import SGD, Optimizer

from grpo_course.classroom.exercises.shared import (
    PROMPTS,
    TOKENS,
    TOO_LATE,
    case,
    numbers,
)
from grpo_course.classroom.old_check.exercise import Case, Exercise, Mistake
from grpo_course.sort import (  # noqa: F401
    SortModel,
    compute_log_probs,
    compute_reward,
    generate_responses,
    sort_distance_reward,
    sort_exact_reward,  # of a mutant
    sort_inclusion_ordering_reward,  # of another
)


def _tokens(*shape: int, vocab: int) -> Tensor:
    count = torch.Size(shape).numel()
    return (torch.arange(count).square() + 1).remainder(vocab).reshape(shape)


def _gather_case(description: str, logits: Tensor, trial: int, hint: str = "") -> Case:
    batch, pos, vocab = logits.shape
    responses = _tokens(batch, trial, pos, vocab=vocab)
    return case(description, hint, logits=logits, responses=responses)


def gather_log_probs(logits, responses):
    """float [batch pos vocab], int [batch trial pos] -> float [batch trial pos]"""
    log_probs = logits.log_softmax(dim=-1)
    trials = responses.shape[1]
    copies = repeat(log_probs, "batch pos vocab -> batch trial pos vocab", trial=trials)
    return copies.gather(dim=-1, index=responses[..., None]).squeeze(-1)


GATHER_LOG_PROBS = Exercise(
    key="2.1",
    name="gather_log_probs",
    solution=gather_log_probs,
    axes={"logits": "batch pos vocab", "responses": TOKENS, "return": TOKENS},
    gradient_to=("logits",),
    cases=(
        _gather_case("two prompts, two responses", numbers(2, 3, 4), 2),
        _gather_case("all axes of the same size", numbers(3, 3, 3), 3),
        _gather_case("one prompt, six responses", numbers(1, 2, 4), 6),
        _gather_case("one response of one token", numbers(1, 1, 3), 1),
        _gather_case(
            "extreme logits",
            torch.tensor([[[1000.0, 0.0, -1000.0], [0.0, 0.0, 500.0]]]),
            3,
            TOO_LATE,
        ),
    ),
    words={
        "not normalized": "You gather raw logits. They become log-probabilities only "
        "after log_softmax over the vocabulary.",
        "logits.log_softmax(dim=-2)": "You normalize over pos. The probabilities of "
        "all tokens at one position sum to 1: log_softmax over vocab, the last axis.",
        "logits.log_softmax(dim=0)": "You normalize over the batch. The probabilities "
        "of all tokens at one position sum to 1: log_softmax over vocab, the last "
        "axis.",
        "log lost": "You return probabilities: softmax without the log. Use "
        "log_softmax.",
        "return (...).sum(-1)": "You sum over pos. The result keeps one "
        "log-probability for each token: [batch trial pos].",
        "negated": "You return minus the log-probability, which is the cross-entropy. "
        "Log-probabilities are never above zero.",
    },
    mistakes=(
        Mistake(
            lambda x, ids: x.log_softmax(-1).gather(-1, ids),
            "Without a trial axis, gather reads row j of the prompt for response j. "
            "Repeat the log-probs along trial, and index with responses[..., None].",
        ),
    ),
    equivalent={
        "responses[:1]": "every prompt has as many responses",
    },
    insight="log_softmax over vocab, then gather at the response: extreme logits stay "
    "finite, and the gradient reaches every logit.",
)


def expected_reward(response_probs, rewards):
    """float [batch all], float [batch all] -> float [batch]"""
    return (response_probs * rewards).sum(dim=-1)


EXPECTED_REWARD = Exercise(
    key="2.2",
    name="expected_reward",
    solution=expected_reward,
    axes={"response_probs": "batch all", "rewards": "batch all", "return": "batch"},
    gradient_to=("response_probs",),
    cases=(
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
    ),
    words={
        "axis": "You sum over the batch, which mixes prompts. Sum over all responses "
        "of one prompt: the last axis.",
        "whole": "You sum over everything. Each prompt has its own expected reward: "
        "sum over the last axis only.",
        "mean for sum": "You divide by the number of responses. The probabilities "
        "already sum to 1: take the sum, not the mean.",
    },
    mistakes=(
        Mistake(
            lambda probs, rewards: rewards.mean(-1),
            "You average the rewards without weights. A likely response counts more: "
            "weight each reward by its probability.",
        ),
        Mistake(
            lambda probs, rewards: probs @ rewards.T,
            "A matrix product pairs every prompt with every other. Each prompt meets "
            "its own rewards only: multiply, then sum over the last axis.",
        ),
        Mistake(
            lambda probs, rewards: rewards.gather(
                -1, probs.argmax(-1, keepdim=True)
            ).squeeze(-1),
            "You take the reward of the most likely response. All responses count, "
            "each by its probability.",
        ),
    ),
    insight="With all responses enumerated, the objective is a plain weighted sum, "
    "and its gradient is exact: no sampling.",
)


def _loss_case(description: str, *shape: int) -> Case:
    log_probs = -numbers(*shape).abs() - 0.1
    # Further along the same sine: deltas that resemble no log-probability.
    deltas = numbers(2, *shape[:-1], scale=2.0)[1]
    return case(description, log_probs=log_probs, deltas=deltas)


WRONG_AXIS = (
    "deltas broadcasts along the wrong axis. Each response has one delta for all its "
    "positions: deltas[..., None] is [batch trial 1]."
)


def naive_loss(log_probs, deltas):
    """float [batch trial pos], float [batch trial] -> scalar"""
    return -(deltas[..., None] * log_probs).mean()


NAIVE_LOSS = Exercise(
    key="2.3",
    name="naive_loss",
    solution=naive_loss,
    axes={"log_probs": TOKENS, "deltas": "batch trial"},
    gradient_to=("log_probs",),
    cases=(
        _loss_case("two prompts, two responses", 2, 2, 3),
        _loss_case("all axes of the same size", 2, 2, 2),
        _loss_case("a long response", 1, 2, 9),
        _loss_case("one prompt, one response, one token", 1, 1, 1),
    ),
    words={
        "deltas[..., None] * log_probs.exp()": "You weight probabilities. The policy "
        "gradient is that of the log-probability: leave out the exp.",
        "sign lost": "The minus sign is missing. An optimizer minimizes the loss, and "
        "you want likely responses where delta is positive.",
        "sum for mean": "You sum. The loss is the mean over batch, trial and pos, so "
        "that it does not grow with the size of the batch.",
        "(deltas[..., None] * log_probs).sum(dim=-1).mean()": "You sum over pos "
        "before averaging, so a long response counts more. Take the mean over pos "
        "too.",
        "deltas[None]": WRONG_AXIS,
        "deltas[:, None]": WRONG_AXIS,
    },
    mistakes=(
        Mistake(
            lambda x, d: -d.mean() * x.mean(),
            "You multiply two means. Each response's log-probabilities meet its own "
            "delta: multiply first, then take the mean.",
        ),
    ),
    insight="Its gradient raises log-probabilities where delta is positive and lowers "
    "them where it is negative, in proportion to delta.",
)


SAMPLED = "compute_reward(prompts, responses, sort_distance_reward)"
ON_THE_WAY = {
    "sort_distance_reward => sort_exact_reward": "You pay with another reward. Here "
    "it is sort_distance_reward.",
    "sort_distance_reward => sort_inclusion_ordering_reward": "You pay with another "
    "reward. Here it is sort_distance_reward.",
    "deltas[..., None] => 1.0": "The rewards do not count: weigh each response's "
    "log-probabilities with its reward.",
    f"{SAMPLED} => {SAMPLED} - {SAMPLED}.mean(dim=-1, keepdim=True)": "You take the "
    "mean of the group away. That is notebook 03; here the deltas are the rewards.",
    "compute_log_probs(prompts, responses, model) => "
    "gather_log_probs(model(prompts).softmax(dim=-1), responses)": "You score with "
    "probabilities where logits belong: log_softmax takes what model(prompts) gives.",
}


def _made(seed: int) -> SortModel:
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return SortModel(5, 10, 3, 3, init_scale=0.1)


class Start(nn.Module):
    """What the notebook calls start(): the same three from each call, made anew.

    The first call hands out `model`, whose gradient is compared.
    """

    def __init__(self, seed: int):
        super().__init__()
        self.seed, self.calls, self.model = seed, 0, _made(seed)

    def forward(self) -> tuple[SortModel, Generator, Optimizer]:
        self.calls += 1
        model = self.model if self.calls == 1 else _made(self.seed)
        generator = Generator().manual_seed(self.seed)
        return model, generator, SGD(model.parameters(), lr=0.1)

    # A step of its model is no change of an input.
    def __eq__(self, other: object) -> bool:
        return isinstance(other, Start)

    __hash__ = nn.Module.__hash__

    def __repr__(self) -> str:
        return f"a start like the one above, from seed {self.seed}"


def group_loss(start, prompts, num_responses):
    """-> scalar"""
    model, generator, _ = start()
    responses = generate_responses(prompts, model, num_responses, generator)
    deltas = compute_reward(prompts, responses, sort_distance_reward)
    log_probs = compute_log_probs(prompts, responses, model)
    return -(deltas[..., None] * log_probs).mean()


def _update_cases(hint: str) -> tuple[Case, ...]:
    """No number of the notebook's own start() is right here."""
    sizes = {
        "one prompt, one response": (PROMPTS[:1], 1, 24),
        "one prompt, four responses": (PROMPTS[:1], 4, 38),
        "three prompts, sixteen responses": (PROMPTS, 16, 22),
    }
    return tuple(
        case(words, hint, start=Start(seed), prompts=prompts, num_responses=responses)
        for words, (prompts, responses, seed) in sizes.items()
    )


GROUP_LOSS = Exercise(
    key="2.4",
    name="group_loss",
    solution=group_loss,
    axes={"prompts": "batch pos", "return": ""},
    gradient_to=("start",),
    cases=_update_cases(
        "Are these other responses? Take the model and the generator that start() "
        "gives you, not those of a cell above, and sample with one call of "
        "generate_responses."
    ),
    words=ON_THE_WAY,
    mistakes=(
        Mistake(
            torch.no_grad()(group_loss),
            "The number is right, but nothing can be learned from it: you score under "
            "no_grad(), or detach. Only the sampling goes without a gradient.",
        ),
    ),
    insight="Sample, reward, score, weigh: the value says little, but its gradient is "
    "an estimate of the way up.",
)


NOT_MOVED = (
    "Nothing has moved. After loss.backward() comes optimizer.step(), and then you ask "
    "the model anew. All three belong to one call of start(): each makes a new model."
)


def one_update(start, prompts, num_responses):
    """-> the logits after one step, float [batch pos vocab]"""
    model, generator, optimizer = start()
    responses = generate_responses(prompts, model, num_responses, generator)
    deltas = compute_reward(prompts, responses, sort_distance_reward)
    log_probs = compute_log_probs(prompts, responses, model)
    loss = -(deltas[..., None] * log_probs).mean()
    loss.backward()
    optimizer.step()
    return model(prompts).detach()


ONE_UPDATE = Exercise(
    key="2.5",
    name="one_update",
    solution=one_update,
    axes={"prompts": "batch pos", "return": "batch pos vocab"},
    cases=_update_cases(
        "One sample, one backward, one step: with the model, the generator and the "
        "optimizer of one call of start(), and one call of generate_responses."
    ),
    words=ON_THE_WAY
    | {
        "optimizer.step() => None": NOT_MOVED,
        "loss.backward() => None": NOT_MOVED,
        "model(prompts).detach() => model(prompts).softmax(dim=-1).detach()": "You "
        "return probabilities. The logits are what model(prompts) gives.",
        "model(prompts).detach() => model(prompts).log_softmax(dim=-1).detach()": "You "
        "return log-probabilities. The logits are what model(prompts) gives.",
    },
    equivalent={"detach lost": "what is compared is a number"},
    insight="Sample, reward, loss, backward, step: a whole update of a policy. "
    "Everything that follows changes one of these lines.",
)
