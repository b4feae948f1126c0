"""python -m grpo_course.trl --config laptop|gpu|gpu-smollm2|FILE ...

Train with TRL's GRPOTrainer in place of this course's loop: on one process as above, on
several with torchrun or accelerate. `--task` and the settings are those of `train`.

    torchrun --nproc_per_node 2 -m grpo_course.trl --config laptop
    accelerate launch --config_file grpo_course/fsdp.yaml \
        -m grpo_course.trl --config gpu

`accelerate launch --cpu --num_processes 2` starts one process: read the line that says
how many there are. vLLM writes the responses with these flags of TRL's, handed on:

    --trl '{"use_vllm": true, "vllm_mode": "colocate",
            "vllm_gpu_memory_utilization": 0.3}'
    --trl '{"use_vllm": true, "vllm_mode": "server", "vllm_server_port": 8000}'

The second needs `trl vllm-serve --model NAME` on a GPU of its own. Run and tested: one
process and two on CPUs (gloo). Not run: GPUs, vLLM, and FSDP, whose settings accelerate
passes over on CPUs. A stopped run starts anew: this command has no --resume.
"""

import json
import os
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, fields
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import torch
from datasets import Dataset
from einops import rearrange
from torch import Tensor

from grpo_course.checks import unknown_name
from grpo_course.evaluation import Measures, evaluate_policy, evaluation_table
from grpo_course.extras import require_extra
from grpo_course.lm import find_device, load_tokenizer, lora_config, save_model
from grpo_course.loop import TrainConfig
from grpo_course.runs.cli import (
    choose_config,
    print_settings,
    run_command,
    training_parser,
    with_flags,
)
from grpo_course.runs.folder import alone_in
from grpo_course.task_check import changed_answer
from grpo_course.tasks import Problem, Reward, chat_messages
from grpo_course.training import (
    GRPOConfig,
    load_problems,
    load_trained,
    make_start,
    make_task,
    use_threads,
    weigh,
)

# --- engines.require


def require_trl() -> ModuleType:
    """The trl package. Raises MissingExtra with the cure where it is not installed."""
    return require_extra("trl", "scale", "this needs TRL")


# --- engines.translate


# (loss_mode, aggregation): TRL's loss_type
LOSS_TYPES = {
    ("clipped", "sequence_mean"): "grpo",
    ("clipped", "token_mean"): "dapo",
    ("clipped", "constant"): "dr_grpo",
    ("clipped", "sequence_sum"): "luspo",
    ("dual_clipped", "sequence_mean"): "grpo",
    ("dual_clipped", "token_mean"): "dapo",
    ("dual_clipped", "constant"): "dr_grpo",
    ("dual_clipped", "sequence_sum"): "luspo",
    ("cispo", "token_mean"): "cispo",
    ("sapo", "sequence_mean"): "sapo",
}


SCALES = {
    "normalized_rewards": "group",
    "centered_rewards": "none",
    "batch_normalized_rewards": "batch",
}


ESTIMATORS = {"k3": False, "corrected_k3": True}


PER_TOKEN = ("corrected_k3", "sequence")  # here the ratio is a token's all the same


def loss_type(config: TrainConfig) -> dict[str, Any]:
    """The loss and its mean are one name."""
    pair = (config.loss_mode, config.aggregation)
    if pair not in LOSS_TYPES:
        raise unknown_name("(loss_mode, aggregation)", pair, LOSS_TYPES)
    return {"loss_type": LOSS_TYPES[pair]}


def scale_rewards(config: TrainConfig) -> dict[str, Any]:
    """How the deltas are scaled."""
    if config.deltas_mode not in SCALES:
        raise unknown_name("deltas_mode", config.deltas_mode, SCALES)
    return {"scale_rewards": SCALES[config.deltas_mode]}


def upper_bound(config: TrainConfig) -> dict[str, Any]:
    """epsilon_high; CISPO's is the bound itself, not its distance from 1."""
    high = config.epsilon if config.epsilon_high is None else config.epsilon_high
    return {"epsilon_high": 1 + high if config.loss_mode == "cispo" else high}


def dual_clip(config: TrainConfig) -> dict[str, Any]:
    """delta, or None for a loss that has no second bound."""
    has_bound = config.loss_mode == "dual_clipped"
    return {"delta": config.dual_clip if has_bound else None}


def estimator(config: TrainConfig) -> dict[str, Any]:
    """k3, with or without the ratio; without a penalty nobody reads it."""
    if config.kl_penalty and config.kl_estimator not in ESTIMATORS:
        raise unknown_name("kl_estimator", config.kl_estimator, ESTIMATORS)
    if config.kl_penalty and (config.kl_estimator, config.ratio_level) == PER_TOKEN:
        raise ValueError(
            "kl_estimator='corrected_k3' with ratio_level='sequence': TRL would weigh "
            "the KL of each token with the ratio of its whole response, which bends "
            "the gradient. Choose kl_estimator='k3' or ratio_level='token' there."
        )
    return {"use_bias_correction_kl": ESTIMATORS.get(config.kl_estimator, True)}


def reference(config: TrainConfig) -> dict[str, Any]:
    """TRL counts optimizer steps between two references, this course epochs."""
    steps = config.compute_ref_model_period * config.num_steps_per_epoch
    moves = config.compute_ref_model_period < config.num_epochs
    return {
        "sync_ref_model": bool(config.kl_penalty) and moves,
        "ref_model_sync_steps": steps,
    }


def truncated_sampling(config: TrainConfig) -> dict[str, Any]:
    """TRL corrects for vLLM only, and by default: without a cap, as it likes to.

    Here the sampler is the policy itself, so None corrects nothing. vLLM never is, and
    TRL then drops whole responses (mode sequence_mask, at 3).
    """
    if config.sampler_cap is None:
        return {}
    return {
        "vllm_importance_sampling_correction": True,
        "vllm_importance_sampling_mode": "token_truncate",
        "vllm_importance_sampling_clip_max": config.sampler_cap,
    }


def steps(config: TrainConfig) -> dict[str, Any]:
    """The number of optimizer steps in all."""
    if not config.num_epochs:
        raise ValueError(
            "num_epochs=0, but TRL takes a step even with max_steps=0. Choose 1 or "
            "more there."
        )
    return {"max_steps": config.num_epochs * config.num_steps_per_epoch}


def minibatches(config: TrainConfig) -> dict[str, Any]:
    """TRL counts the parts of a rollout, which this config does not know the size of"""
    if config.minibatch_size is not None:
        raise ValueError(
            f"minibatch_size={config.minibatch_size} counts responses; TRL cuts a "
            "rollout into steps_per_generation parts. Set TRL's steps_per_generation, "
            "per_device_train_batch_size and max_steps yourself, and "
            "minibatch_size=None here."
        )
    return {}


def length(config: TrainConfig) -> dict[str, Any]:
    """The most tokens of a response; TRL's default unless set, or divided by."""
    tokens = config.max_length
    if tokens is None and config.aggregation == "constant":
        raise ValueError(
            "aggregation='constant' needs max_length for TRL, which divides by a "
            "default of its own: give the most tokens of a response."
        )
    return {} if tokens is None else {"max_completion_length": tokens}


def norm(config: TrainConfig) -> dict[str, Any]:
    """TRL's word for no limit is 0."""
    return {"max_grad_norm": config.max_gradient_norm or 0.0}


def same(ours: str, trl: str) -> Callable[[TrainConfig], dict[str, Any]]:
    """The same number under another name."""
    return lambda config: {trl: getattr(config, ours)}


def only(ours: str, default: object) -> Callable[[TrainConfig], dict[str, Any]]:
    """What TRL cannot do: nothing to say while it is off, an error else."""

    def check(config: TrainConfig) -> dict[str, Any]:
        if getattr(config, ours) != default:
            raise ValueError(
                f"TRL's GRPOTrainer has nothing like {ours}={getattr(config, ours)!r}. "
                f"Use {ours}={default!r} there."
            )
        return {}

    return check


# --- engines.mapping


@dataclass(frozen=True)
class Name:
    """One knob: here, in TRL's GRPOConfig, in verl's configuration.

    Where a name alone would mislead, a note in brackets follows it.
    """

    ours: str
    trl: str
    verl: str
    arguments: Callable[[TrainConfig], dict[str, Any]]


def row(ours: str, trl: str, verl: str, arguments: Callable | None = None) -> Name:
    """A row whose number only changes its name, unless told otherwise."""
    return Name(ours, trl, verl, arguments or same(ours, trl))


def alone(ours: str, default: object, verl: str = "-") -> Name:
    """A row for what TRL does not have."""
    return Name(ours, "-", verl, only(ours, default))


def silent(ours: str, trl: str = "-", verl: str = "-") -> Name:
    """A row for what another row translates, or what changes no result."""
    return Name(ours, trl, verl, lambda _: {})


NAMES = (
    row("num_epochs", "max_steps", "trainer.total_training_steps", steps),
    row("num_steps_per_epoch", "num_iterations", "actor.ppo_epochs"),
    row("num_responses", "num_generations", "rollout.n"),
    row(
        "deltas_mode",
        "scale_rewards",
        "algorithm.adv_estimator",
        scale_rewards,
    ),
    row("loss_mode", "loss_type", "actor.policy_loss.loss_mode", loss_type),
    silent("aggregation", "loss_type", "actor.loss_agg_mode"),
    row(
        "max_length",
        "max_completion_length",
        "actor.loss_scale_factor",
        length,
    ),
    row("epsilon", "epsilon", "actor.clip_ratio_low (1 for cispo)"),
    row("epsilon_high", "epsilon_high", "actor.clip_ratio_high", upper_bound),
    row(
        "ratio_level",
        "importance_sampling_level",
        "actor.policy_loss.loss_mode (gspo)",
    ),
    row("dual_clip", "delta", "actor.clip_ratio_c", dual_clip),
    row("kl_penalty", "beta", "actor.kl_loss_coef (with use_kl_loss)"),
    row(
        "kl_estimator",
        "use_bias_correction_kl",
        "actor.kl_loss_type (k3 is clamped at 10; k3+; no r k3)",
        estimator,
    ),
    alone(
        "kl_place",
        "loss",
        "algorithm.use_kl_in_reward (beta is kl_ctrl.kl_coef)",
    ),
    alone(
        "kl_target",
        None,
        "algorithm.kl_ctrl.target_kl (with use_kl_in_reward, type: adaptive)",
    ),
    silent("kl_gain", "-", "algorithm.kl_ctrl.horizon"),
    row("compute_ref_model_period", "ref_model_sync_steps", "-", reference),
    row("ref_mixture", "ref_model_mixup_alpha", "-"),
    alone("num_resamples", 0, "algorithm.filter_groups"),
    row("mask_truncated", "mask_truncated_completions", "-"),
    row(
        "sampler_cap",
        "vllm_importance_sampling_clip_max",
        "algorithm.rollout_correction.rollout_is_threshold (token)",
        truncated_sampling,
    ),
    row(
        "minibatch_size",
        "steps_per_generation (counts parts)",
        "actor.ppo_mini_batch_size (counts prompts)",
        minibatches,
    ),
    silent("minibatch_seed", "-", "actor.data_loader_seed"),
    row("max_gradient_norm", "max_grad_norm", "actor.grad_clip", norm),
    alone("stop_kl", None),
    silent(
        "old_log_probs_from",
        "-",
        "algorithm.rollout_correction.bypass_mode (sampler's)",
    ),
    silent(
        "micro_batch_size",
        "per_device_train_batch_size, gradient_accumulation_steps",
        "actor.ppo_micro_batch_size_per_gpu",
    ),
    silent("skip_tied_groups"),
)


def to_trl_arguments(config: TrainConfig) -> dict[str, Any]:
    """The keyword arguments of TRL's GRPOConfig that say the same. Needs no TRL.

    Raises ValueError for a setting that TRL's GRPOTrainer does not have, or would
    take in another way.
    """
    translated: dict[str, Any] = {}
    for name in NAMES:
        translated |= name.arguments(config)
    return translated


def to_trl_config(config: TrainConfig, **trl_only: Any) -> Any:
    """A trl.GRPOConfig that trains as `config` does.

    `trl_only` are TRL's own arguments: output_dir, learning_rate, batch sizes, ...
    They win over what is translated. A sampler_cap needs use_vllm=True there: TRL
    corrects for no other sampler. Raises MissingExtra where TRL is not installed,
    ValueError as `to_trl_arguments` does.
    """
    arguments = to_trl_arguments(config) | trl_only
    return require_trl().GRPOConfig(**arguments)


def names_table() -> str:
    """The table in Markdown, one knob a line."""
    rows = [f"| {name.ours} | {name.trl} | {name.verl} |" for name in NAMES]
    return "\n".join(["| here | TRL | verl |", "|---|---|---|", *rows])


# --- engines.trl_loss


def trl_loss(
    args: Any,
    log_probs: Tensor,
    deltas: Tensor,
    mask: Tensor,
    *,
    old_log_probs: Tensor | None = None,
    ref_log_probs: Tensor | None = None,
    sampler_weights: Tensor | None = None,
) -> Tensor:
    """What TRL's GRPOTrainer would minimize: a scalar, differentiable in log_probs.

    `args` is a trl.GRPOConfig. Shapes as in `compute_loss`: deltas [batch trial],
    all others [batch trial pos]. Without old_log_probs the batch is on-policy.
    """
    new, mask = flat(log_probs), flat(mask)
    trainer = bare_trainer(args, use_vllm=sampler_weights is not None)
    trainer._get_per_token_logps_and_entropies = lambda *_, **__: (
        new,
        torch.zeros_like(new).detach(),
        None,
    )
    inputs = {
        "prompt_ids": torch.zeros(len(new), 1, dtype=torch.long),
        "prompt_mask": torch.ones(len(new), 1, dtype=torch.long),
        "completion_ids": torch.zeros(new.shape, dtype=torch.long),
        "completion_mask": mask.long(),
        "advantages": deltas.flatten(),
        "num_items_in_batch": mask.sum(),
        "old_per_token_logps": flat_or_none(old_log_probs),
        "ref_per_token_logps": flat_or_none(ref_log_probs),
        "importance_sampling_ratio": flat_or_none(sampler_weights),
    }
    return trainer._compute_loss(None, inputs)


def flat(rows: Tensor) -> Tensor:
    """[batch trial pos] -> [(batch trial) pos]"""
    return rearrange(rows, "b t pos -> (b t) pos")


def flat_or_none(rows: Tensor | None) -> Tensor | None:
    """The same, for what may be left out."""
    return None if rows is None else flat(rows)


def bare_trainer(args: Any, use_vllm: bool = False) -> Any:
    """A GRPOTrainer without model, data or optimizer: what its loss reads, no more."""
    from accelerate import Accelerator

    trainer = object.__new__(require_trl().GRPOTrainer)
    vars(trainer).update(vars(args))  # the constructor copies most of them too
    vars(trainer).update(
        args=args,
        use_vllm=use_vllm,
        epsilon_low=args.epsilon,
        epsilon_high=args.epsilon if args.epsilon_high is None else args.epsilon_high,
        aux_loss_enabled=False,
        _entropy_bonus_enabled=False,
        current_gradient_accumulation_steps=1,
        model=SimpleNamespace(training=True, is_gradient_checkpointing=False),
        accelerator=Accelerator(cpu=True),
        _metrics={"train": defaultdict(list)},
    )
    return trainer


# --- engines.trl_run


SAME_NAMES = (
    "learning_rate",
    "weight_decay",
    "adam_beta1",
    "adam_beta2",
    "gradient_checkpointing",
)


SCHEDULES = {"linear": "linear", "constant": "constant_with_warmup"}


def trl_settings(config: GRPOConfig, out: Path, world_size: int = 1) -> dict[str, Any]:
    """What TRL must be told beside the knobs of the loop. Needs no TRL.

    Three differences stay. TRL's warmup begins at a rate of 0, ours at one part of it.
    TRL shuffles the problems its own way. And where top_k or top_p cut the softmax,
    TRL scores the whole of it, ours what is left.
    Raises ValueError as `batch_settings` and `response_limit` do.
    """
    steps = config.num_steps_per_epoch
    on_cpu = torch.device(find_device(config.device)).type == "cpu"
    return (
        batch_settings(config, world_size)
        | {
            "output_dir": str(out),
            "seed": config.seed,
            "reward_weights": [weight for _, weight in paid_rewards(config)],
            "max_completion_length": response_limit(config),
            "temperature": config.temperature,
            "top_k": config.top_k or 0,
            "top_p": 1.0 if config.top_p is None else config.top_p,
            "lr_scheduler_type": SCHEDULES[config.schedule],
            "warmup_steps": config.warmup_epochs * steps,
            "optim": "adamw_torch",
            "use_cpu": on_cpu,
            "bf16": config.dtype == "bfloat16" and not on_cpu,
            "model_init_kwargs": {"dtype": "float32"},
            "save_steps": config.save_every * steps,
            "save_total_limit": config.keep_checkpoints,
            "logging_steps": 1,
            "report_to": "none",
        }
        | {name: getattr(config, name) for name in SAME_NAMES}
    )


def paid_rewards(config: GRPOConfig) -> list[tuple[Reward, float]]:
    """The task's reward functions that pay, with their weights."""
    rewards = weigh(make_task(config).rewards, config.reward_weights)
    return [(function, weight) for function, weight in rewards.values() if weight]


def response_limit(config: GRPOConfig) -> int:
    """The most tokens of a response; TRL also divides by it under "constant".

    Raises ValueError where these are two numbers.
    """
    if config.aggregation == "constant" and config.max_length != config.max_new_tokens:
        raise ValueError(
            f"max_length={config.max_length} with aggregation='constant', but TRL "
            f"divides by max_new_tokens. Set max_length={config.max_new_tokens}."
        )
    return config.max_new_tokens


def batch_settings(config: GRPOConfig, world_size: int) -> dict[str, int]:
    """How the responses to one rollout's prompts are spread over processes and time.

    `micro_batch_size` counts prompts, with all their responses, in one process.
    Raises ValueError where a rollout cannot be cut into equal parts.
    """
    prompts = config.micro_batch_size or max(1, config.num_prompts // world_size)
    parts = world_size * prompts
    if config.num_prompts % parts:
        raise ValueError(
            f"num_prompts={config.num_prompts} cannot be spread over {world_size} "
            f"processes with {prompts} prompts each at a time. Choose a multiple of "
            f"{parts}, or another micro_batch_size or number of processes."
        )
    return {
        "per_device_train_batch_size": prompts * config.num_responses,
        "gradient_accumulation_steps": config.num_prompts // parts,
    }


def chat_dataset(problems: Sequence[Problem], system_prompt: str | None) -> Dataset:
    """A row a problem: the conversation as `prompt`, the right `answer`.

    Raises ValueError for an answer that the table would change.
    """
    answers = [problem.answer for problem in problems]
    if words := changed_answer(answers):
        raise ValueError(words)
    prompts = [chat_messages(p.question, system_prompt) for p in problems]
    return Dataset.from_dict({"prompt": prompts, "answer": answers})


def make_args(
    config: GRPOConfig, out: Path, world_size: int = 1, **trl_only: Any
) -> Any:
    """The trl.GRPOConfig of a run; `trl_only` wins over what follows from `config`."""
    return to_trl_config(config, **trl_settings(config, out, world_size) | trl_only)


def make_trainer(
    config: GRPOConfig,
    args: Any,
    start: str | Path,
    problems: Sequence[Problem],
    trainer_class: type | None = None,
) -> Any:
    """TRL's trainer at the model in `start`, a folder or a name on the hub.

    TRL loads the model itself, and the reference a second time from the same place.
    """
    return (trainer_class or require_trl().GRPOTrainer)(
        model=str(start),
        reward_funcs=[function for function, _ in paid_rewards(config)],
        args=args,
        train_dataset=chat_dataset(problems, config.system_prompt),
        processing_class=load_tokenizer(start),
        peft_config=lora_config(config.lora_rank) if config.lora_rank else None,
    )


def measure(config: GRPOConfig, folder: str | Path) -> Measures:
    """What a saved model can do on problems it was not trained on; name -> [problem]"""
    held_out = make_task(config).splits[0]
    policy, environment = load_trained(config, folder, held_out)
    heat = config.eval_temperature
    return evaluate_policy(policy, environment, config.eval_samples, temperature=heat)


# --- engines.trl


# Seconds. gloo's thread needs Python to free what it sent, and the end of the group
# waits for that thread without letting go of Python: seen once, both waited for ever.
SETTLE = 0.5


def work(arguments: list[str]) -> int:
    """Train, save, measure. -> the exit status"""
    made = training_parser(
        "trl", "Train a causal LM with TRL's GRPOTrainer.", out="runs/trl"
    )
    made.prog = "python -m grpo_course.trl"
    help_text = "JSON object of further arguments of TRL's own"
    made.add_argument("--trl", default="{}", help=help_text)
    options, flags = made.parse_known_args(arguments)
    config = choose_config(options.config, options.task)
    if options.settings:
        print_settings(config, made.prog)
        return 0
    require_trl()
    config = with_flags(config, flags, options, made.prog)
    own = own_arguments(options.trl)
    require_trl_names(own)
    out, rank = Path(options.out), int(os.environ.get("RANK", 0))  # set by the launcher
    with alone_in(out) if rank == 0 else nullcontext():  # the first locks for them all
        run(config, out, own)
    return 0


def own_arguments(text: str) -> dict[str, Any]:
    """TRL's own arguments. Raises ValueError for text that is not a JSON object."""
    try:
        given = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"--trl {text[:60]!r} is not JSON: {error}.") from None
    if not isinstance(given, dict):
        raise ValueError(
            f'--trl {text[:60]!r} must be an object: {{"use_vllm": true}}.'
        )
    return given


def require_trl_names(own: dict[str, Any]) -> None:
    """Check that TRL has arguments of these names. Raises ValueError."""
    known = {field.name for field in fields(require_trl().GRPOConfig)}
    for name in own:
        if name not in known:
            raise ValueError(
                f"--trl names {name!r}, which trl.GRPOConfig does not have. "
                "help(trl.GRPOConfig) lists what it has."
            )


def run(config: GRPOConfig, out: Path, trl_only: dict[str, Any]) -> None:
    """The whole run, the same in each process; the first one makes and measures."""

    if (out / "model").exists():
        raise FileExistsError(f"{out} holds a run already. Choose another: --out DIR.")
    use_threads(config)
    world_size = int(os.environ.get("WORLD_SIZE", 1))  # set by the launcher
    args = make_args(config, out, world_size, **trl_only)
    problems, first = load_problems(config), args.process_index == 0
    if first:
        print(f"TRL on {args.world_size} process(es), {args.device.type}.", flush=True)
        if config.model is None:
            make_start_folder(config, problems, out / "start")
    args.distributed_state.wait_for_everyone()
    start = config.model or out / "start"
    trainer = make_trainer(config, args, start, problems)
    trainer.train()
    trainer.save_model(str(out / "model"))  # all of them: a part may lie in each
    # A process that ends with its connections open can take the others down with it.
    args.distributed_state.wait_for_everyone()
    time.sleep(SETTLE)
    args.distributed_state.destroy_process_group()
    if first:
        report(config, start, out / "model")


def report(config: GRPOConfig, start: str | Path, end: Path) -> None:
    """Keep the settings beside the trained model, and print what it can do now."""

    config.save(end / "grpo_config.json")
    measured = {"before": measure(config, start), "after": measure(config, end)}
    print(evaluation_table(measured, config.seed).to_string())
    print(f"The model is in {end}.", flush=True)


def make_start_folder(
    config: GRPOConfig, problems: Sequence[Problem], folder: Path
) -> None:
    """The tiny model after its warm start, on disk, where every process finds it."""
    save_model(*make_start(config, problems), folder)


if __name__ == "__main__":
    sys.exit(run_command(work, sys.argv[1:]))
