"""World 2: a tiny language model that writes token by token, and its tasks.

    TinyLM            embedding, GRU, head: the state of a text, and logits of the next
    SequencePolicy    that model as a policy: it samples until its end, and scores
    tasks             a share of one token; three numbers in order, from all 216 prompts
    train_share, train_sort    a run of each task

Responses end by themselves here, so that there are masks and lengths. No text: a token
is a number.
"""

import math
from collections.abc import Callable, Sequence

import torch
from einops import rearrange, repeat
from torch import Generator, Tensor, nn

from grpo_course.checks import (
    require_at_least,
    require_axes,
    require_inside,
    require_sizes,
    require_vocabulary,
)
from grpo_course.loop import History, Policy, Rollout, TrainConfig, train
from grpo_course.sampling import (
    Generators,
    Sampler,
    draw,
    is_end,
    pick,
    prompt_mask,
    require_seeds,
)


class TinyLM(nn.Module):
    """Reads tokens one by one into a hidden state; the state scores the next token.

    With `seeds=(0, 1, 2)` the weights carry a leading seed axis: independent models
    that train side by side. The dots in the shapes below stand for that axis.
    The recurrent cell is the GRU of Cho et al. 2014, arXiv 1406.1078, as in torch.

    Args:
        vocab_size: how many different tokens there are.
        hidden_size: width of the hidden state.
        context_length: the most tokens of prompt and response together.
        seeds: one random seed for each model, or None for one model of seed 0.
    """

    embedding: Tensor  # [... vocab dim]
    input_weights: Tensor  # [... dim 3*dim]
    input_bias: Tensor  # [... 1 3*dim]
    hidden_weights: Tensor  # [... dim 3*dim]
    hidden_bias: Tensor  # [... 1 3*dim]
    head_weights: Tensor  # [... dim vocab]
    head_bias: Tensor  # [... 1 vocab]

    def __init__(
        self,
        vocab_size: int,
        hidden_size: int = 32,
        context_length: int = 32,
        seeds: Sequence[int] | None = None,
    ):
        super().__init__()
        require_seeds(seeds)
        sizes = {"vocab_size": vocab_size, "hidden_size": hidden_size}
        require_sizes(**sizes, context_length=context_length)
        self.vocab_size, self.context_length = vocab_size, context_length
        self.hidden_size, gates = hidden_size, 3 * hidden_size
        shapes = {
            "embedding": (vocab_size, hidden_size),
            "input_weights": (hidden_size, gates),
            "input_bias": (1, gates),
            "hidden_weights": (hidden_size, gates),
            "hidden_bias": (1, gates),
            "head_weights": (hidden_size, vocab_size),
            "head_bias": (1, vocab_size),
        }
        own = (0,) if seeds is None else seeds
        bound, drawn = 1 / math.sqrt(hidden_size), []
        for seed in own:  # normal embeddings, all else uniform, as torch has it
            generator = Generator().manual_seed(seed)
            weights = {
                name: (2 * torch.rand(shape, generator=generator) - 1) * bound
                for name, shape in shapes.items()
            }
            normal = torch.randn(shapes["embedding"], generator=generator)
            drawn.append(weights | {"embedding": normal})
        for name in shapes:
            stacked = torch.stack([weights[name] for weights in drawn])
            self.register_parameter(
                name, nn.Parameter(stacked[0] if seeds is None else stacked)
            )

    def start(self, tokens: Tensor) -> Tensor:
        """The state before any token: zeros. int [... rows pos] -> [... rows dim]"""
        rows = tokens.shape[-2]
        return self.embedding.new_zeros(
            *self.embedding.shape[:-2], rows, self.hidden_size
        )

    def embed(self, tokens: Tensor) -> Tensor:
        """int [... rows pos] -> [... rows pos dim]"""
        if self.embedding.ndim == 2:
            return self.embedding[tokens]
        seed = torch.arange(len(self.embedding), device=tokens.device)
        return self.embedding[seed[:, None, None], tokens]

    def step(self, inputs: Tensor, hidden: Tensor) -> Tensor:
        """One step of the GRU. [... rows 3 dim], [... rows dim] -> [... rows dim]"""
        reset_in, update_in, new_in = inputs.chunk(3, dim=-1)
        gates = hidden @ self.hidden_weights + self.hidden_bias
        reset, update, new = gates.chunk(3, dim=-1)
        reset, update = (reset_in + reset).sigmoid(), (update_in + update).sigmoid()
        return torch.lerp((new_in + reset * new).tanh(), hidden, update)

    def read(
        self, tokens: Tensor, hidden: Tensor | None = None, real: Tensor | None = None
    ) -> Tensor:
        """The state after each token. int [... rows pos] -> [... rows pos dim]

        `hidden` [... rows dim] carries on from an earlier state. Where `real`, bool
        [... rows pos], is False, the token is padding and the state stays as it is.
        Raises ValueError for tokens that are not in the vocabulary.
        """
        require_vocabulary("tokens", tokens, self.vocab_size)
        hidden = self.start(tokens) if hidden is None else hidden
        embedded = self.embed(tokens).flatten(-3, -2)  # [... rows*pos dim]
        inputs = embedded @ self.input_weights + self.input_bias
        states = []
        for pos, seen in enumerate(inputs.unflatten(-2, tokens.shape[-2:]).unbind(-2)):
            after = self.step(seen, hidden)
            if real is not None:
                after = torch.where(real[..., pos, None], after, hidden)
            hidden = after
            states.append(hidden)
        return torch.stack(states, dim=-2)

    def head(self, hidden: Tensor) -> Tensor:
        """Logits of the next token. [... rows dim] -> [... rows vocab]"""
        return hidden @ self.head_weights + self.head_bias

    def forward(self, tokens: Tensor, real: Tensor | None = None) -> Tensor:
        """int [... rows pos] -> logits [... rows pos vocab], those at t score t + 1."""
        states = self.read(tokens, real=real)
        logits = self.head(states.flatten(-3, -2))
        return logits.unflatten(-2, states.shape[-3:-1])


# Scoring and sampling


def prompt_state(model: TinyLM, prompts: Tensor, pad: int | None = None) -> Tensor:
    """The state after each prompt. int [batch pos] -> [... batch dim]

    With `pad`, padding in front of a prompt leaves no trace in its state.
    """
    real = None if pad is None else prompt_mask(prompts, pad)
    return model.read(prompts, real=real)[..., -1, :]


def response_logits(
    model: TinyLM, prompts: Tensor, responses: Tensor, pad: int | None = None
) -> Tensor:
    """What the model thought before each token of each response.

    int [batch pos] and [... batch trial pos] -> [... batch trial pos vocab]. The
    state before the first token is the prompt's; each prompt is read once.
    """
    require_axes("responses", responses, "batch trial pos")
    require_context(prompts, responses.shape[-1], model.context_length)
    batch, trial = responses.shape[-3:-1]
    if len(prompts) != batch:
        raise ValueError(
            f"prompts has shape {list(prompts.shape)}, but responses has shape "
            f"{list(responses.shape)}: they must agree in batch."
        )
    before = prompt_state(model, prompts, pad)
    before = repeat(before, "... batch dim -> ... (batch trial) dim", trial=trial)
    rows = rearrange(responses, "... batch trial pos -> ... (batch trial) pos")
    states = [before[..., None, :]]
    if rows.shape[-1] > 1:
        states.append(model.read(rows[..., :-1], before))
    logits = model.head(torch.cat(states, dim=-2).flatten(-3, -2))
    pattern = "... (batch trial pos) vocab -> ... batch trial pos vocab"
    return rearrange(logits, pattern, batch=batch, trial=trial)


def require_context(prompts: Tensor, num_new_tokens: int, context_length: int) -> None:
    """Check that prompt and response fit what the model can hold."""
    require_axes("prompts", prompts, "batch pos")
    length = prompts.shape[-1]
    if length + num_new_tokens > context_length:
        raise ValueError(
            f"prompts has {length} tokens a row and the response {num_new_tokens}, but "
            f"the model holds {context_length}. Shorten the prompts, ask for fewer new "
            "tokens, or build the model with a larger context_length."
        )


@torch.no_grad()
def sample_sequences(
    model: TinyLM,
    prompts: Tensor,
    num_responses: int,
    sampler: Sampler,
    generator: Generators = None,
    greedy: bool = False,
) -> tuple[Tensor, Tensor]:
    """Responses and the log-probs noted on the way; both [... batch trial pos].

    int [batch pos] in. pos is always max_new_tokens: after EOS come `pad` tokens with
    log-probability 0, which no policy chose. A model with a seed axis needs a
    generator for each seed. With greedy, the likeliest token at each step.
    Raises ValueError for prompts that do not fit the context, and for an eos or pad
    that the model cannot write.
    """
    require_at_least("num_responses", num_responses, 1)
    require_own_tokens(sampler, model.vocab_size)
    require_context(prompts, sampler.max_new_tokens, model.context_length)
    hidden = prompt_state(model, prompts, sampler.pad)
    hidden = repeat(
        hidden, "... batch dim -> ... (batch trial) dim", trial=num_responses
    )
    finished = torch.zeros(hidden.shape[:-1], dtype=torch.bool, device=hidden.device)
    tokens, scores = [], []
    for _ in range(sampler.max_new_tokens):
        log_probs = sampler.log_probs(model.head(hidden))
        token = draw(log_probs, generator, greedy)
        score = pick(log_probs, token)
        if sampler.eos is not None and sampler.pad is not None:
            token = torch.where(finished, sampler.pad, token)
            score = torch.where(finished, 0.0, score)
            finished = finished | is_end(token, sampler.eos)
        tokens.append(token)
        scores.append(score)
        hidden = model.read(token[..., None], hidden)[..., 0, :]
    pattern, trial = "pos ... (batch trial) -> ... batch trial pos", num_responses
    responses = rearrange(torch.stack(tokens), pattern, trial=trial)
    return responses, rearrange(torch.stack(scores), pattern, trial=trial)


def require_own_tokens(sampler: Sampler, vocab_size: int) -> None:
    """Check that a sampler's eos and pad, where it has them, are in the vocabulary."""
    if not isinstance(sampler, Sampler):
        raise TypeError(
            f"sampler={sampler!r} is no Sampler. Pass Sampler(max_new_tokens), say."
        )
    allowed = {"at least": 0, "below": vocab_size}
    for name in ("eos", "pad"):
        tokens = getattr(sampler, name)
        for token in tokens if isinstance(tokens, tuple) else [tokens]:
            if token is not None:
                require_inside(name, token, allowed, ", as the model's vocabulary is")


class SequencePolicy:
    """A language model with its sampler and its random numbers, as the loop wants it.

    A deep copy of it is a frozen reference: the loop makes one where beta is not 0
    and asks it for log-probabilities only, without a gradient.
    """

    def __init__(self, model: TinyLM, sampler: Sampler, generator: Generators = None):
        self.model, self.sampler, self.generator = model, sampler, generator

    def sample(self, prompts: Tensor, num_responses: int) -> Rollout:
        """int [batch pos] -> a rollout with responses [... batch trial pos]"""
        responses, noted = sample_sequences(
            self.model, prompts, num_responses, self.sampler, self.generator
        )
        mask, finished = self.sampler.mask(responses), self.sampler.finished(responses)
        return Rollout(prompts, responses, mask, noted, finished)

    def log_probs(self, rollout: Rollout) -> Tensor:
        """-> [... batch trial pos], under the settings of the sampler"""
        logits = response_logits(
            self.model, rollout.prompts, rollout.responses, self.sampler.pad
        )
        return self.sampler.token_log_probs(logits, rollout.responses)

    def answer(self, prompts: Tensor) -> Tensor:
        """The greedy response to each prompt. int [batch pos] -> int [... batch pos]"""
        responses, _ = sample_sequences(
            self.model, prompts, 1, self.sampler, greedy=True
        )
        return responses[..., 0, :]


# Tasks

LENGTH = 3  # of the sort task: three of the numbers 0 to 5
ASK = 6  # the token after the numbers: now answer


def token_share(responses: Tensor, mask: Tensor | None, token: int) -> Tensor:
    """The share of one token among those that count. [... pos] -> [...]

    int responses and bool mask [... batch trial pos] (None: all count) give float
    [... batch trial]. An empty response has a share of 0.
    """
    mask = torch.ones_like(responses, dtype=torch.bool) if mask is None else mask
    hits = ((responses == token) & mask).sum(dim=-1)
    return hits / mask.sum(dim=-1).clamp(min=1)


def share_reward(token: int) -> Callable[[Rollout], Tensor]:
    """A reward for the loop: the share of `token` in each response, from 0 to 1."""
    return lambda rollout: token_share(rollout.responses, rollout.mask, token)


def all_sort_prompts() -> Tensor:
    """Every list of three of the numbers 0 to 5, then ASK. -> int [216 4]

    ASK says that the answer comes next. Without such a token the model must count.
    """
    numbers = torch.cartesian_prod(*[torch.arange(ASK)] * LENGTH)
    return torch.cat([numbers, torch.full((len(numbers), 1), ASK)], dim=-1)


def sorted_numbers(prompts: Tensor) -> Tensor:
    """The right answers. int [batch pos+1] -> int [batch pos]"""
    return prompts[..., :-1].sort(dim=-1).values


def place_reward(rollout: Rollout) -> Tensor:
    """The share of places that hold the right number. -> [... batch trial]"""
    truth = sorted_numbers(rollout.prompts)[:, None, :]
    return (rollout.responses == truth).float().mean(dim=-1)


# A run of each task

Watch = Callable[[History], None]
NEVER = 10**9  # epochs until the reference is copied again
SHARE_TOKEN, SHARE_VOCAB, SHARE_LENGTH = 1, 10, 20
SHARE_PROMPTS = torch.zeros(4, 5, dtype=torch.long)  # four times the same five tokens


def make_policy(
    model: TinyLM, sampler: Sampler, seeds: Sequence[int]
) -> SequencePolicy:
    """A policy with random numbers of its own for each seed."""
    require_seeds(() if seeds is None else seeds)
    generators = [Generator().manual_seed(1000 + seed) for seed in seeds]
    return SequencePolicy(model, sampler, generators)


def train_share(
    seeds: Sequence[int] = (0,),
    num_epochs: int = 15,
    learning_rate: float = 1e-3,
    watch: Watch | None = None,
    sampler: Sampler = Sampler(SHARE_LENGTH),  # noqa: B008, it is frozen
    observe: Callable[[SequencePolicy], dict] | None = None,
    **knobs,
) -> tuple[SequencePolicy, History]:
    """Train for a large share of one token among 20; curves are [step seed].

    Four prompts, four responses each; two passes over each rollout in minibatches of
    four; a reference, if beta is not 0, that is never copied again. A sampler with an
    EOS lets responses end. `observe` is that of `Trainer`; further knobs are those of
    TrainConfig.
    """
    settings = {
        "num_epochs": num_epochs,
        "num_steps_per_epoch": 2,
        "num_responses": 4,
        "minibatch_size": 4,
        "max_gradient_norm": 1.0,
        "compute_ref_model_period": NEVER,
    }
    model = TinyLM(SHARE_VOCAB, hidden_size=64, seeds=seeds)
    policy = make_policy(model, sampler, seeds)
    optimizer = torch.optim.AdamW(model.parameters(), lr=learning_rate)
    config = TrainConfig(**(settings | knobs))
    reward = share_reward(SHARE_TOKEN)
    history = train(policy, SHARE_PROMPTS, reward, optimizer, config, observe, watch)
    return policy, history


def train_sort(
    reward_fn: Callable[[Rollout], Tensor] = place_reward,
    seeds: Sequence[int] = (0,),
    num_epochs: int = 300,
    learning_rate: float = 3e-3,
    num_prompts: int = 16,
    watch: Watch | None = None,
    wrap: Callable[[SequencePolicy], Policy] | None = None,
    sampler: Sampler = Sampler(LENGTH),  # noqa: B008, it is frozen
    **knobs,
) -> tuple[SequencePolicy, History]:
    """Train to write three numbers in order; curves are [step seed].

    Each epoch asks `num_prompts` of the 216, eight responses each, eight steps.
    The seeds get the same prompts. `wrap` puts something between the policy and the
    loop, such as a StaleSampler. Further knobs are those of TrainConfig.
    """
    settings = {"num_epochs": num_epochs, "num_steps_per_epoch": 8, "num_responses": 8}
    model = TinyLM(ASK + 1, hidden_size=32, seeds=seeds)
    policy = make_policy(model, sampler, seeds)
    optimizer = torch.optim.Adam(model.parameters(), lr=learning_rate)
    config = TrainConfig(**(settings | knobs))
    prompts = draw_prompts(all_sort_prompts(), num_prompts, seed=0)
    actor = wrap(policy) if wrap else policy
    history = train(actor, prompts, reward_fn, optimizer, config, watch=watch)
    return policy, history


def draw_prompts(prompts: Tensor, count: int, seed: int) -> Callable[[int], Tensor]:
    """For the loop: `count` different prompts for each epoch. [all pos] -> [count pos]

    Raises ValueError if there are not that many.
    """
    if not 1 <= count <= len(prompts):
        raise ValueError(
            f"count={count}, but there are {len(prompts)} prompts to draw from. "
            f"Choose 1 to {len(prompts)}."
        )

    def drawn(epoch: int) -> Tensor:
        generator = Generator().manual_seed(1_000_003 * seed + epoch)
        return prompts[torch.randperm(len(prompts), generator=generator)[:count]]

    return drawn
