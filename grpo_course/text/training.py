"""A run on a text task, made from its settings in memory.

The task's problems, the model and the policy; a tiny model's warm start by imitation;
GRPO with a probe on held-out problems. Left out: the settings (`config`), how a run is
kept on the disk (`runs`), how answers are measured (`evaluation`).
"""

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

import torch
from torch import Generator
from torch.optim import AdamW, Optimizer
from torch.optim.lr_scheduler import LambdaLR
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from grpo_course.formulas import aggregate
from grpo_course.long_work import progress_bar
from grpo_course.loop import (
    History,
    Rollout,
    Trainer,
    require_finite_loss,
    take_step,
    tied_groups,
)
from grpo_course.sampling import Sampler
from grpo_course.text.adapters import LoraPolicy, with_adapter
from grpo_course.text.config import GRPOConfig, make_task, weigh

# What a config is belongs to this story, too: notebooks take it from here.
from grpo_course.text.config import find_preset as find_preset
from grpo_course.text.config import from_values as from_values
from grpo_course.text.config import presets_of as presets_of
from grpo_course.text.environment import Environment, what_is_lost
from grpo_course.text.evaluation import sampled_scores
from grpo_course.text.lm import CausalPolicy, probe_line
from grpo_course.text.models import (
    find_device,
    load_generation,
    load_model,
    load_tokenizer,
    require_whole_model,
    turn_ends,
)
from grpo_course.text.prompts import as_rollout, decode_responses, reply_tokens
from grpo_course.text.responses import conversation_text, extract_answer
from grpo_course.text.scoring import make_recompute, require_room
from grpo_course.text.tasks import Problem
from grpo_course.text.tiny import make_tiny_model, make_tokenizer

TRIED = 8  # gold responses that must come back from a given model's tokenizer


# What a config makes: the problems, the model, the policy, the optimizer


def load_problems(
    config: GRPOConfig, split: str = "train", count: int | None = None
) -> list[Problem]:
    """The problems of one split, at most `count`, or as many as a run trains on."""
    count = config.num_problems if count is None else count
    problems = list(make_task(config).problems(split, count, config.seed))
    if other := [each for each in problems if not isinstance(each, Problem)]:
        raise ValueError(
            f"task={config.task!r}: problems({split!r}, {count}, {config.seed}) has "
            f"{other[0]!r}. Return a list of Problem(question, answer)."
        )
    return problems


def watched_problems(config: GRPOConfig) -> list[Problem]:
    """The problems that a run is measured on while it goes on; none if it never is.

    Those of the split "validation", so that the one to report stays unseen; a task that
    has no such split gives its first. Raises ValueError where there is no problem.
    """
    if not config.held_out_every:
        return []
    splits = make_task(config).splits
    split = "validation" if "validation" in splits else splits[0]
    problems = load_problems(config, split, config.eval_problems)
    if not problems:
        raise ValueError(
            f"task={config.task!r} has no problem in its split {split!r} to measure on "
            "while training. Give it some, or say --held-out-every 0."
        )
    return problems


def make_environment(
    config: GRPOConfig,
    problems: Sequence[Problem],
    tokenizer: PreTrainedTokenizerBase,
) -> Environment:
    """The problems as the loop wants them."""
    task = make_task(config)
    return Environment(
        problems,
        tokenizer,
        weigh(task.rewards, config.reward_weights),
        config.num_prompts,
        config.seed,
        opening=task.opening(config.system_prompt),
        measures=task.measures,
    )


def make_model(
    config: GRPOConfig, problems: Sequence[Problem]
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """The given model, or a tiny one with random weights and its own tokenizer."""
    device = find_device(config.device)
    if config.model is not None:
        require_whole_model(config.model)
        return load_model(config.model, device), load_tokenizer(config.model)
    task = make_task(config)
    opening = task.opening(config.system_prompt)
    texts = [conversation_text(p.question, task.gold(p), opening) for p in problems]
    tokenizer = make_tokenizer(texts, config.vocab_size)
    model = make_tiny_model(
        tokenizer, config.architecture, seed=config.seed, **config.sizes
    )
    model.to(device)
    return model, tokenizer


def make_policy(
    config: GRPOConfig, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase
) -> CausalPolicy:
    """The model with its sampler and random numbers of its own."""
    policy_class: type[CausalPolicy] = CausalPolicy
    if config.lora_rank:
        model, policy_class = with_adapter(model, config.lora_rank), LoraPolicy
    if config.gradient_checkpointing:
        make_recompute(model)
    sampler = Sampler(
        config.max_new_tokens,
        turn_ends(model.generation_config, tokenizer),
        tokenizer.pad_token_id,
        config.temperature,
        config.top_k,
        config.top_p,
    )
    generator = Generator(model.device)
    generator.manual_seed(config.seed)
    task = make_task(config)
    return policy_class(
        model,
        sampler,
        generator,
        autocast=torch.bfloat16 if config.dtype == "bfloat16" else None,
        prompts_at_once=config.micro_batch_size,
        tool=partial(reply_tokens, tokenizer, task) if task.has_tool else None,
    )


def find_lost_text(config: GRPOConfig, problems: Sequence[Problem]) -> str:
    """What of a gold response would not come back from the config's model, in one line.

    "" for nothing. No weights are read.
    """
    few, task, path = problems[:TRIED], make_task(config), str(config.model)
    tokenizer = load_tokenizer(path)
    lost_texts = what_is_lost(
        make_environment(config, few, tokenizer),
        [task.gold(problem) for problem in few],
        turn_ends(load_generation(path), tokenizer),
        config.max_new_tokens,
    )
    return next(lost_texts, "")


def open_model(
    config: GRPOConfig, path: str | Path
) -> tuple[CausalPolicy, PreTrainedTokenizerBase]:
    """A saved model to be asked, from a folder or by its name on the hub."""
    model = load_model(path, find_device(config.device))
    tokenizer = load_tokenizer(path)
    # Nothing is trained here, so nothing needs to be made again.
    config = replace(config, gradient_checkpointing=False)
    return make_policy(config, model, tokenizer), tokenizer


def load_trained(
    config: GRPOConfig, path: str | Path, split: str
) -> tuple[CausalPolicy, Environment]:
    """A saved model as `open_model`, and the problems of a split to measure it on."""
    policy, tokenizer = open_model(config, path)
    problems = load_problems(config, split, config.eval_problems)
    if lost := find_lost_text(replace(config, model=str(path)), problems):
        print(f"[x] {path}: {lost}.")
    environment = make_environment(config, problems, tokenizer)
    probe_line(policy, environment.tokens)
    return policy, environment


def make_optimizer(config: GRPOConfig, policy: CausalPolicy) -> AdamW:
    """AdamW with the settings of the config, of the weights that learn."""
    return AdamW(
        [weight for weight in policy.model.parameters() if weight.requires_grad],
        lr=config.learning_rate,
        betas=(config.adam_beta1, config.adam_beta2),
        weight_decay=config.weight_decay,
    )


def linear_schedule(
    optimizer: Optimizer, num_steps: int, warmup: int = 0, final_share: float = 0.0
) -> LambdaLR:
    """The learning rate rises over `warmup` steps, then falls in a straight line.

    Call its `step` after each step of the optimizer; the last share is `final_share`.
    """

    def share(step: int) -> float:
        if step < warmup:
            return (step + 1) / (warmup + 1)
        left = (num_steps - step) / max(1, num_steps - warmup)
        return final_share + (1 - final_share) * max(0.0, left)

    return LambdaLR(optimizer, share)


# The warm start: GRPO can only make likelier what a model sometimes writes, so a model
# from nothing first imitates demonstrations of its task


def make_start(
    config: GRPOConfig, problems: Sequence[Problem], show: bool = True
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """The model that GRPO begins with: a given one, or a tiny one with a warm start."""
    torch.manual_seed(config.seed)
    random.seed(config.seed)
    model, tokenizer = make_model(config, problems)
    prompts = make_environment(config, problems, tokenizer).tokens
    require_room(model, prompts, config.max_new_tokens)
    if config.model is not None:
        if lost := find_lost_text(config, problems):
            print(f"[x] {config.model}: {lost}.")
        return model, tokenizer
    if config.lora_rank:
        raise ValueError(
            f"lora_rank={config.lora_rank} needs a model to stand beside: name one "
            "with --model, or leave it out: a tiny model from nothing learns whole."
        )
    if config.warm_start_steps:
        steps = config.warm_start_steps
        with progress_bar(
            total=steps, desc="warm start", unit="step", disable=not show
        ) as bar:

            def watch(losses: list[float]) -> None:
                bar.set_postfix(loss=f"{losses[-1]:.3f}", refresh=False)
                bar.update()

            run_warm_start(config, model, tokenizer, problems, watch)
    return model, tokenizer


def run_warm_start(
    config: GRPOConfig,
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    problems: Sequence[Problem],
    watch: Callable[[list[float]], None] | None = None,
) -> list[float]:
    """`warm_start` of `model` on its task's demonstrations; the loss of each step."""
    policy, task = make_policy(config, model, tokenizer), make_task(config)
    return warm_start(policy, tokenizer, problems, task.demonstration, config, watch)


def warm_start(
    policy: CausalPolicy,
    tokenizer: PreTrainedTokenizerBase,
    problems: Sequence[Problem],
    demonstrate: Callable[[Problem, random.Random], str],
    config: GRPOConfig,
    watch: Callable[[list[float]], None] | None = None,
) -> list[float]:
    """Train on demonstrations of the problems; returns the loss of each step, in nats.

    `demonstrate` is a task's: a problem to a response. Of `config`, what begins with
    warm_start counts, the system prompt, the seed, and micro_batch_size: so many are
    read at once. The loss is minus the mean log-probability of the tokens of the
    responses. `watch` sees the losses after each step.
    """
    steps, size = config.warm_start_steps, config.warm_start_batch_size
    if len(problems) < size:
        raise ValueError(
            f"There are {len(problems)} problems, and a step of the warm start takes "
            f"warm_start_batch_size={size}. Give it more problems (--num-problems, "
            "where the task has them), or say --warm-start-batch-size "
            f"{max(len(problems), 1)}."
        )
    # AdamW (Loshchilov & Hutter 2019, arXiv 1711.05101) that remembers squares of
    # gradients for about 20 steps, not 1000: the run is short.
    optimizer = AdamW(
        policy.model.parameters(),
        lr=config.warm_start_learning_rate,
        betas=(0.9, 0.95),
        weight_decay=0.01,
    )
    schedule = linear_schedule(optimizer, steps, warmup=20, final_share=0.1)
    rng, losses = random.Random(config.seed), []
    most = config.micro_batch_size or size
    opening = make_task(config).opening(config.system_prompt)
    for step in range(steps):
        chosen = rng.sample(problems, size)
        questions = [problem.question for problem in chosen]
        responses = [demonstrate(problem, rng) for problem in chosen]
        parts = [
            as_rollout(
                tokenizer, questions[i : i + most], responses[i : i + most], opening
            )
            for i in range(0, size, most)
        ]
        place = f"step {step} of the warm start"
        losses.append(imitation_step(policy, parts, optimizer, place))
        schedule.step()
        if watch:
            watch(losses)
    return losses


def imitation_step(
    policy: CausalPolicy, parts: Sequence[Rollout], optimizer: Optimizer, place: str
) -> float:
    """One step that makes responses likelier, read part by part; the loss, in nats.

    It is minus the mean log-probability of all their tokens.
    """
    counts = [int(part.mask.sum()) for part in parts if part.mask is not None]
    loss = 0.0
    optimizer.zero_grad()
    for part, count in zip(parts, counts, strict=True):
        mean = -aggregate(policy.log_probs(part), part.mask, "token_mean")
        share = mean * (count / sum(counts))
        require_finite_loss(share, place)
        share.backward()
        loss += share.item()
    take_step(optimizer, max_norm=1.0, place=place)
    return loss


def first_words(config: GRPOConfig, environment: Environment) -> str:
    """What to change where the latest rollout teaches nothing, in words; else "".

    That is if each of its groups is tied, or if no response has an answer in the form
    that the gold response has.
    """
    if environment.seen is None:
        return ""
    rollout, graded = environment.seen
    groups = decode_responses(environment.tokenizer, rollout)
    answers = [extract_answer(text) for texts in groups for text in texts]
    gold = extract_answer(make_task(config).gold(environment.problems[0]))
    formless = gold is not None and all(answer is None for answer in answers)
    if not (formless or tied_groups(environment.weighed(graded)).all()):
        return ""
    steps, tiny = config.warm_start_steps, config.model is None
    if environment.latest["tied_right"] > environment.latest["tied_wrong"]:
        what = "leaves nothing to learn: no group is mixed, and most are all right"
        cures = ["harder problems", "a higher --temperature"]
        cures += [f"--warm-start-steps {steps // 2}"] if tiny and steps else []
    else:
        what = "is too weak: no group is mixed, so none teaches"
        if formless:
            what = "is too weak: no response holds <answer>...</answer>"
        more = f"--warm-start-steps {2 * steps or 100}"
        cures = [more if tiny else "a worked example in --system-prompt"]
        if rollout.finished is not None and not rollout.finished.any():
            cures.append(f"--max-new-tokens {2 * config.max_new_tokens}")
        cures += [f"--num-responses {2 * config.num_responses}", "easier problems"]
        cures += [] if tiny else ["imitation of demonstrations first (a warm start)"]
    return f"The start {what}. What may help: {', or '.join(cures)}."


# Imitating one's own right answers, the plain alternative that GRPO is compared with


def sample_right(
    policy: CausalPolicy, environment: Environment, num_samples: int = 8, seed: int = 0
) -> dict[str, list[str]]:
    """What is right among so many samples of each problem; none twice.

    -> question: its right responses, in alphabetical order. Right is what earns all of
    the first of the environment's rewards. A question without any is left out.
    """
    scores = sampled_scores(policy, environment, num_samples, seed=seed)
    right = {}
    rows = zip(environment.problems, scores.texts, scores.accuracy, strict=True)
    for problem, texts, earned in rows:
        kept = {text for text, x in zip(texts, earned, strict=True) if x >= 1}
        if kept:
            right[problem.question] = sorted(kept)
    return right


def imitate_right(
    config: GRPOConfig,
    policy: CausalPolicy,
    environment: Environment,
    watch: Callable[[list[float]], None] | None = None,
) -> list[float]:
    """Train the policy on its own right answers, sampled once; the loss of each step.

    Of `config`, num_responses is the number of samples a problem.
    """
    right = sample_right(policy, environment, config.num_responses, config.seed)
    solved = [p for p in environment.problems if p.question in right]

    def one_of_them(problem: Problem, rng) -> str:
        return rng.choice(right[problem.question])

    return warm_start(policy, environment.tokenizer, solved, one_of_them, config, watch)


# GRPO, and the look at held-out problems while it goes on


def train_policy(
    config: GRPOConfig,
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    environment: Environment,
    watch: Callable[[History], None] | None = None,
    observe: Callable[[CausalPolicy], dict] | None = None,
) -> tuple[CausalPolicy, History]:
    """Train `model` itself, not a copy of it; returns its policy and what was seen.

    The first record of each epoch holds the mean of each of the task's rewards beside
    the columns of every run. `watch` and `observe` as in `train`.
    """
    policy = make_policy(config, model, tokenizer)
    trainer, schedule = make_trainer(config, policy, environment, observe)

    def after_epoch(history: History) -> None:
        environment.note(history)
        schedule.step()
        if watch:
            watch(history)

    trainer.watch = after_epoch
    with naming_epoch(trainer):
        return policy, trainer.train()


def make_trainer(
    config: GRPOConfig,
    policy: CausalPolicy,
    environment: Environment,
    observe: Callable[[CausalPolicy], dict] | None = None,
) -> tuple[Trainer, LambdaLR]:
    """The loop at its first epoch, and its learning rate, a step of it an epoch.

    The rate warms up, then falls to zero or stays.
    """
    optimizer = make_optimizer(config, policy)
    final_share = 0.0 if config.schedule == "linear" else 1.0
    schedule = linear_schedule(
        optimizer, config.num_epochs, config.warmup_epochs, final_share
    )
    trainer = Trainer(
        policy,
        environment.prompts,
        environment.reward,
        optimizer,
        config,
        observe=observe,
    )
    return trainer, schedule


@contextmanager
def naming_epoch(trainer: Trainer) -> Iterator[None]:
    """What goes wrong inside, in a reward say, is raised with the epoch as a note."""
    try:
        yield
    except Exception as error:
        if f"epoch {trainer.epoch}" not in str(error):
            error.add_note(f"This was in epoch {trainer.epoch}.")
        raise


class HeldOutProbe:
    """Measures other problems every so many epochs: pass it as `observe`.

    Adds the column `held_out`, the accuracy of one response a problem.
    """

    def __init__(self, environment: Environment, every: int = 10):
        self.environment, self.every, self.calls = environment, every, 0

    def __call__(self, policy: CausalPolicy) -> dict:
        """What joins the record of the epoch that begins."""
        record = self.look(policy) if self.calls % self.every == 0 else {}
        self.calls += 1
        return record

    def look(self, policy: CausalPolicy) -> dict:
        """The accuracy now; after a run, that of the policy it ended with."""
        scores = sampled_scores(policy, self.environment, 1)
        return {"held_out": scores.accuracy.mean()}
