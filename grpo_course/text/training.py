"""A run on a text task: all its settings, and what is made from them in memory.

Read from top to bottom: the settings and their JSON; the task's problems, the model and
the policy; a tiny model's warm start by imitation; GRPO with a probe on held-out
problems. Left out: how a run is kept on the disk (`runs`), the loop itself (`loop`),
how answers are measured (`evaluation`).
"""

import json
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, fields, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

import torch
from pydantic import (
    AfterValidator,
    Field,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
)
from torch import Generator, Tensor
from torch.optim import AdamW, Optimizer
from torch.optim.lr_scheduler import LambdaLR
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from grpo_course.checks import one_of, settings, unknown_name, unknown_setting
from grpo_course.files import read_text, write_atomically
from grpo_course.formulas import aggregate
from grpo_course.long_work import progress_bar
from grpo_course.loop import (
    History,
    TrainConfig,
    Trainer,
    require_finite_loss,
    take_step,
    tied_groups,
)
from grpo_course.sampling import Sampler
from grpo_course.text.adapters import LoraPolicy, with_adapter
from grpo_course.text.environment import Environment, what_is_lost
from grpo_course.text.evaluation import sampled_scores
from grpo_course.text.lm import CausalPolicy, probe_line, require_learning
from grpo_course.text.models import (
    device_name,
    find_device,
    load_generation,
    load_model,
    load_shape,
    load_tokenizer,
    require_whole_model,
    text_config,
    turn_ends,
)
from grpo_course.text.prompts import as_rollout, decode_responses, reply_tokens
from grpo_course.text.responses import Reward, conversation_text, extract_answer
from grpo_course.text.scoring import make_recompute, require_room
from grpo_course.text.tasks import Problem, TextTask, find_task
from grpo_course.text.tiny import (
    LEAST_VOCABULARY,
    MODELS,
    make_tiny_model,
    make_tokenizer,
)

DEFAULT = "default"  # the first preset of any task, whatever its own name is
TRIED = 8  # gold responses that must come back from a given model's tokenizer


@settings()
class GRPOConfig(TrainConfig):
    """What TrainConfig says of the loop, and all else that makes a run what it is.

    After "TRL:" a comment gives the name in TRL's GRPOConfig, where that differs. What
    the loop's own are called there is in the table `grpo_course.text.trl.NAMES`.
    Raises as TrainConfig.
    """

    # The loop, where a run on text begins with other values than TrainConfig

    num_epochs: NonNegativeInt = 200  # rollouts; TRL: max_steps
    num_steps_per_epoch: PositiveInt = 1  # mu; TRL: num_iterations
    num_responses: PositiveInt = 8  # G; TRL: num_generations
    kl_penalty: NonNegativeFloat = 0.04  # beta; 0: no reference policy is kept
    # epochs between two copies of the policy, here: never; TRL: sync_ref_model
    compute_ref_model_period: PositiveInt = 1_000_000
    # a longer gradient is scaled down to it; TRL: max_grad_norm
    max_gradient_norm: PositiveFloat | None = 1.0
    # where pi_old is from: "policy", "sampler", or the only step itself
    old_log_probs_from: Literal["policy", "sampler", "first_step"] = "first_step"

    # What is trained, and on what

    model: str | None = None  # folder or hub name; None: a tiny model from nothing
    task: str = "gsm8k"  # or "countdown", "reverse", or "my_task.py:MyTask"
    # of the task's own settings, those that differ from its defaults
    task_settings: dict[str, Any] = Field(default_factory=dict, strict=False)
    num_problems: PositiveInt | None = 4096  # to train on, at most; None: all there are
    system_prompt: str | None = None  # None: no system message
    # of problems, weights, order and samples
    seed: int = Field(default=0, ge=0, lt=2**63)

    # What an epoch asks and how it is rewarded

    # of a rollout; TRL: generation_batch_size / num_generations
    num_prompts: PositiveInt = 16
    # of the task's rewards, by name, where they differ from its own; TRL: a list
    reward_weights: dict[str, NonNegativeFloat] = Field(
        default_factory=dict, strict=False
    )
    max_new_tokens: PositiveInt = 24  # TRL: max_completion_length
    temperature: PositiveFloat = 1.0  # of the samples to learn from
    top_k: PositiveInt | None = None  # TRL: 0 for None
    top_p: float | None = Field(default=None, gt=0, le=1)  # TRL: 1.0 for None

    # The optimizer: AdamW

    learning_rate: NonNegativeFloat = 2e-4  # after the warmup
    # falls to zero, or stays; TRL: lr_scheduler_type
    schedule: Literal["linear", "constant"] = "linear"
    warmup_epochs: NonNegativeInt = 5  # while the rate rises; TRL: warmup_steps
    weight_decay: NonNegativeFloat = 0.0  # of AdamW
    adam_beta1: float = Field(default=0.9, ge=0, lt=1)  # Adam's memory of gradients
    adam_beta2: float = Field(default=0.95, ge=0, lt=1)  # Adam's, of their squares

    # The machine

    # "auto": a GPU if there is one; or "cpu", "cuda", ...
    device: Annotated[str, AfterValidator(device_name)] = "auto"
    # of matrix products; weights are float32. TRL: bf16=True
    dtype: Literal["float32", "bfloat16"] = "float32"
    # of the CPU; 1 is fastest for a small model. None: as many as are fastest when
    # the run begins, beside what else the machine does
    num_threads: PositiveInt | None = 1
    gradient_checkpointing: bool = False  # less memory, about a third more time
    # of small matrices that learn in place of the model's weights; 0: the weights.
    # TRL: peft_config
    lora_rank: NonNegativeInt = 0

    # The tiny model and its warm start: nothing of this where `model` is given

    architecture: Annotated[str, one_of(MODELS)] = "qwen2"  # or "llama", "gpt2"
    hidden_size: PositiveInt = 96  # a multiple of num_heads
    num_layers: PositiveInt = 2  # of attention and feed-forward
    num_heads: PositiveInt = 4  # of attention
    # tokens that the tokenizer may learn, at most; the bytes come first
    vocab_size: int = Field(default=512, ge=LEAST_VOCABULARY)
    context_length: PositiveInt = 256  # tokens of prompt and response together
    warm_start_steps: NonNegativeInt = 400  # supervised, before GRPO
    warm_start_batch_size: PositiveInt = 32  # demonstrations a step
    warm_start_learning_rate: NonNegativeFloat = 2.5e-3  # of the warm start alone

    # Keeping and measuring

    save_every: PositiveInt = 50  # epochs between checkpoints; TRL: save_steps
    keep_checkpoints: PositiveInt = 2  # beside the first; TRL: save_total_limit
    # epochs between two looks at the accuracy on held-out problems; 0: none
    held_out_every: NonNegativeInt = 20
    # prompts an epoch whose responses are kept as text; TRL: log_completions
    keep_samples: NonNegativeInt = 1
    eval_problems: PositiveInt = 256  # to measure on, at most
    eval_samples: PositiveInt = 8  # responses to each problem
    eval_temperature: PositiveFloat = 1.0  # of those samples

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.hidden_size % self.num_heads:
            raise ValueError(
                f"hidden_size={self.hidden_size} with num_heads={self.num_heads}: each "
                "head takes an equal part, so choose a multiple of num_heads."
            )
        fixed = self.compute_ref_model_period >= self.num_epochs
        if self.lora_rank and not (fixed and self.ref_mixture == 1):
            raise ValueError(
                f"lora_rank={self.lora_rank} with "
                f"compute_ref_model_period={self.compute_ref_model_period} and "
                f"ref_mixture={self.ref_mixture}: the reference is the model with the "
                "adapter off, which never moves. Leave out both settings, or LoRA."
            )

    def save(self, path: Path) -> None:
        """Write it as JSON, whole or not at all."""
        write_atomically(path, json.dumps(asdict(self), indent=2) + "\n")


def load_config(path: str | Path, task: str | None = None) -> GRPOConfig:
    """Read a JSON file: every setting, as `save` writes it, or those that differ from a
    preset, {"base": "gpu", "learning_rate": 1e-6}. `task` goes before the file's.

    Raises ValueError for a file that is not JSON, and as `from_values`.
    """
    text = read_text(Path(path))
    try:
        values = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is not JSON: {error}.") from None
    if not isinstance(values, dict):
        raise ValueError(f'{path} must hold one object: {{"base": "gpu", ...}}.')
    try:
        return from_values(values | ({"task": task} if task else {}))
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def from_values(values: Mapping[str, Any]) -> GRPOConfig:
    """A config from names and values as JSON has them.

    Raises ValueError for an unknown setting or base, and for settings that are left out
    without a base to say what they are.
    """
    task = values.get("task", "gsm8k")
    changes = {name: value for name, value in values.items() if name != "base"}
    known = [field.name for field in fields(GRPOConfig)]
    if unknown := [name for name in changes if name not in known]:
        name, own = unknown[0], [field.name for field in fields(find_task(task))]
        if name in own:
            raise ValueError(
                f"{name!r} is a setting of the task. Put it with those: "
                f'"task_settings": {json.dumps({name: changes[name]})}'
            )
        raise ValueError(unknown_setting(name, ["base", *known]))
    if "base" in values:
        return replace(find_preset(task, values["base"], "base"), **changes)
    missing = [name for name in known if name not in changes]
    if missing:
        raise ValueError(
            f"not set: {', '.join(missing)}. Set all, or say whose the rest are: "
            f'"base": one of {", ".join(find_task(task).presets) or DEFAULT}.'
        )
    return GRPOConfig(**changes)


def presets_of(task: str) -> dict[str, GRPOConfig]:
    """A task's settings of whole runs by name; "default" where it has none of its own.

    A task of a learner's own is known by the name that it is asked for.
    """
    presets = find_task(task).presets or {DEFAULT: {}}
    return {
        name: GRPOConfig(**dict(preset) | {"task": task})
        for name, preset in presets.items()
    }


def find_preset(task: str, name: str | None, argument: str = "config") -> GRPOConfig:
    """One of a task's presets, the first where none is named, or "default".

    Raises ValueError for a name that is none.
    """
    presets = presets_of(task)
    names = list(presets)
    if name is None or (name == DEFAULT and name not in names):
        name = names[0]
    if name not in names:
        raise unknown_name(argument, name, names)
    return presets[name]


# What a config makes: the task and its problems, the model, the policy, the optimizer


def make_task(config: GRPOConfig) -> TextTask:
    """The task of a config, with the settings that the config has for it.

    Raises ValueError for one that the task lacks, or refuses.
    """
    kind = find_task(config.task)
    try:
        return kind(**config.task_settings)
    except ValueError as error:
        raise ValueError(f"task_settings: {error}") from None


def weigh(
    rewards: Mapping[str, tuple[Reward, float]], weights: Mapping[str, float]
) -> dict[str, tuple[Reward, float]]:
    """A task's rewards with other weights. Raises ValueError for another name."""
    for name in weights:
        if name not in rewards:
            raise unknown_name("reward_weights", name, rewards)
    return {name: (f, weights.get(name, w)) for name, (f, w) in rewards.items()}


def spelled_out(config: GRPOConfig) -> GRPOConfig:
    """The config with all that its task leaves at the default: settings and weights."""
    task = make_task(config)
    rewards = weigh(task.rewards, config.reward_weights)
    weights = {name: weight for name, (_, weight) in rewards.items()}
    return replace(config, task_settings=asdict(task), reward_weights=weights)


def load_problems(
    config: GRPOConfig, split: str = "train", count: int | None = None
) -> list[Problem]:
    """The problems of one split, at most `count`, or as many as a run trains on.

    Raises ValueError where the task gives other things than problems.
    """
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
        tagged=answers_in_tags(task, problems),
    )


def answers_in_tags(task: TextTask, problems: Sequence[Problem]) -> bool | None:
    """Whether gold answers between tags; None where gold has no answer to these.

    Problems that are written by hand may lack what gold reads.
    """
    try:
        return extract_answer(task.gold(problems[0])) is not None
    except Exception:  # of a task's own code; check-task tells of it
        return None


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
        tokenizer,
        config.architecture,
        hidden_size=config.hidden_size,
        num_layers=config.num_layers,
        num_heads=config.num_heads,
        context_length=config.context_length,
        seed=config.seed,
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


def find_lost_text(
    config: GRPOConfig,
    problems: Sequence[Problem],
    loaded: tuple[PreTrainedModel, PreTrainedTokenizerBase] | None = None,
) -> str:
    """What of a gold response would not come back from a model, in one line; or "".

    That of the config, of which no weights are read then, unless one is loaded already.
    """
    few, task = problems[:TRIED], make_task(config)
    if loaded:
        model, tokenizer = loaded
        generation, shape = model.generation_config, model.config
    else:
        path = str(config.model)
        tokenizer, shape = load_tokenizer(path), load_shape(path)
        generation = load_generation(path)
    lost_texts = what_is_lost(
        make_environment(config, few, tokenizer),
        [task.gold(problem) for problem in few],
        turn_ends(generation, tokenizer),
        text_config(shape).vocab_size,
        config.max_new_tokens,
    )
    return next(lost_texts, "")


def load_trained(
    config: GRPOConfig, path: str | Path, split: str
) -> tuple[CausalPolicy, Environment]:
    """A saved model, and the problems of one split to measure it on.

    `path` is a folder or a name on the hub. Raises ValueError or OSError for a model or
    problems that cannot be loaded, and for a model that writes other than it scores.
    """
    tokenizer = load_tokenizer(path)
    model = load_model(path, find_device(config.device))
    problems = load_problems(config, split, config.eval_problems)
    if lost := find_lost_text(config, problems, (model, tokenizer)):
        print(f"[x] {path}: {lost}.")
    # Nothing is trained here, so nothing needs to be made again.
    config = replace(config, gradient_checkpointing=False)
    policy = make_policy(config, model, tokenizer)
    environment = make_environment(config, problems, tokenizer)
    probe_line(policy, environment.tokens)
    return policy, environment


def make_optimizer(config: GRPOConfig, policy: CausalPolicy) -> AdamW:
    """AdamW with the settings of the config. Raises ValueError for a frozen model."""
    require_learning(policy.model)
    return AdamW(
        [weight for weight in policy.model.parameters() if weight.requires_grad],
        lr=config.learning_rate,
        betas=(config.adam_beta1, config.adam_beta2),
        weight_decay=config.weight_decay,
    )


def make_schedule(config: GRPOConfig, optimizer: AdamW) -> LambdaLR:
    """The learning rate over the epochs: warmup, then down to zero or constant."""
    final_share = 0.0 if config.schedule == "linear" else 1.0
    return linear_schedule(
        optimizer, config.num_epochs, config.warmup_epochs, final_share
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
    """The model that GRPO begins with: a given one, or a tiny one with a warm start.

    Raises ValueError before the warm start for what GRPO could not begin with: a tiny
    model with LoRA, a prompt and response that do not fit the model's positions.
    """
    torch.manual_seed(config.seed)
    random.seed(config.seed)
    model, tokenizer = make_model(config, problems)
    prompts = make_environment(config, problems, tokenizer).tokens
    if config.model is not None:
        require_room(model, prompts, config.max_new_tokens)
        if lost := find_lost_text(config, problems, (model, tokenizer)):
            print(f"[x] {config.model}: {lost}.")
        return model, tokenizer
    if config.lora_rank:
        raise ValueError(
            f"lora_rank={config.lora_rank} needs a model to stand beside: name one "
            "with --model, or leave it out: a tiny model from nothing learns whole."
        )
    longest = prompts.shape[-1]
    needed = longest + config.max_new_tokens
    if needed > config.context_length:
        raise ValueError(
            f"the longest prompt has {longest} tokens and a response may have "
            f"{config.max_new_tokens} (max_new_tokens), but the model knows "
            f"{config.context_length} positions (context_length). For real data, such "
            "as GSM8K, take a pretrained model: --config gpu, or --model. For "
            f"problems of your own, --context-length {needed}."
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
    warm_start counts, the system prompt, and the seed of order and demonstrations.
    The loss is minus the mean log-probability of the tokens of the responses: the
    prompt is read, not scored. `watch` sees the losses after each step.
    Raises ValueError for a frozen model, and for fewer problems than a step takes.
    """
    require_learning(policy.model)
    steps, size = config.warm_start_steps, config.warm_start_batch_size
    if len(problems) < size:
        raise ValueError(
            f"There are {len(problems)} problems, and a step of the warm start takes "
            f"warm_start_batch_size={size}. Give it more problems (--num-problems, "
            "where the task has them), or say --warm-start-batch-size "
            f"{max(len(problems), 1)}."
        )
    # AdamW (Loshchilov & Hutter 2019, arXiv 1711.05101) that remembers squares of
    # gradients for about 20 steps, not 1000: the run is short, and gradients shrink
    # fast in it.
    optimizer = AdamW(
        policy.model.parameters(),
        lr=config.warm_start_learning_rate,
        betas=(0.9, 0.95),
        weight_decay=0.01,
    )
    schedule = linear_schedule(optimizer, steps, warmup=20, final_share=0.1)
    rng, losses = random.Random(config.seed), []
    opening = make_task(config).opening(config.system_prompt)
    for step in range(steps):
        chosen = rng.sample(problems, size)
        questions = [problem.question for problem in chosen]
        responses = [demonstrate(problem, rng) for problem in chosen]
        batch = as_rollout(tokenizer, questions, responses, opening)
        loss = -aggregate(policy.log_probs(batch), batch.mask, "token_mean")
        place = f"step {step} of the warm start"
        require_finite_loss(loss, place)
        optimizer.zero_grad()
        loss.backward()
        take_step(optimizer, max_norm=1.0, place=place)
        schedule.step()
        losses.append(loss.item())
        if watch:
            watch(losses)
    return losses


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
    right, wrong = (environment.latest[f"tied_{what}"] for what in ("right", "wrong"))
    if right > wrong:
        what = "leaves nothing to learn: no group is mixed, and most are all right"
        cures = [f"--warm-start-steps {steps // 2}"] if tiny and steps else []
        cures += ["harder problems", "a higher --temperature"]
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

    Of `config`, num_responses is the number of samples a problem, and what begins with
    warm_start says how to train. Raises ValueError where fewer problems than a step
    takes have a right sample.
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
    optimizer = make_optimizer(config, policy)
    schedule = make_schedule(config, optimizer)

    def after_epoch(history: History) -> None:
        environment.note(history)
        schedule.step()
        if watch:
            watch(history)

    trainer = Trainer(
        policy,
        environment.prompts,
        environment.reward,
        optimizer,
        config,
        observe=observe,
        watch=after_epoch,
    )
    with naming_epoch(trainer):
        return policy, trainer.train()


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

    Adds the column `held_out`, the accuracy of `num_samples` responses a problem, and
    keeps what each of them earned: `rewards[epoch]` is [problem sample]. `calls` is the
    epoch that a resumed run begins with.
    """

    def __init__(
        self,
        environment: Environment,
        every: int = 10,
        calls: int = 0,
        num_samples: int = 1,
    ):
        self.environment, self.every, self.calls = environment, every, calls
        self.num_samples = num_samples
        self.rewards: dict[int, Tensor] = {}

    def __call__(self, policy: CausalPolicy) -> dict:
        """What joins the record of the epoch that begins."""
        record = self.look(policy) if self.calls % self.every == 0 else {}
        self.calls += 1
        return record

    def look(self, policy: CausalPolicy) -> dict:
        """The accuracy now; after a run, that of the policy it ended with."""
        scores = sampled_scores(policy, self.environment, self.num_samples)
        self.rewards[self.calls] = scores.accuracy
        return {"held_out": scores.accuracy.mean()}
