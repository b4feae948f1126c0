"""The bridge to TRL and verl: your settings under their names, and TRL's own trainer.

`NAMES` is the table of names, `to_trl_arguments` says the same values to TRL or refuses
what TRL lacks, and the command trains a task of this course with TRL's GRPOTrainer in
place of the course's loop. `--task` and the settings are those of `train`.

    python -m grpo_course.text.trl --config sums
    torchrun --nproc_per_node 2 -m grpo_course.text.trl --config sums

TRAINING.md has the rest: FSDP, vLLM, a script of TRL's. Left out: verl's command, and
going on with a stopped run, which starts anew here (no --resume). That the losses are
the same is a matter of the tests, which call TRL's own code.
"""

import os
import sys
import time
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import fields, replace
from functools import wraps
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from datasets import Dataset
from transformers import PreTrainedTokenizerBase

from grpo_course.checks import unknown_name, unknown_setting
from grpo_course.long_work import use_threads
from grpo_course.loop import TrainConfig
from grpo_course.sampling import unpad_rows, up_to_last
from grpo_course.text.adapters import lora_config
from grpo_course.text.cli import (
    choose_config,
    print_settings,
    run_command,
    training_parser,
    with_flags,
)
from grpo_course.text.config import json_object
from grpo_course.text.errors import require_extra, require_peft
from grpo_course.text.evaluation import evaluate_policy, evaluation_table
from grpo_course.text.lm import CausalPolicy
from grpo_course.text.models import find_device, load_tokenizer, save_model
from grpo_course.text.prompts import behind, encode_prompts, opened_tags
from grpo_course.text.responses import (
    TAGS,
    Completion,
    Opening,
    Reward,
    chat_messages,
    completion_texts,
)
from grpo_course.text.runs import alone_in
from grpo_course.text.tasks import Problem, columns
from grpo_course.text.training import (
    GRPOConfig,
    load_problems,
    load_trained,
    make_policy,
    make_start,
    make_task,
    weigh,
)


def require_trl() -> ModuleType:
    """The trl package. Raises MissingExtra with the cure where it is not installed."""
    return require_extra("trl", "scale", "this needs TRL")


# The knobs of the loop: here, in TRL's GRPOConfig, in verl (where `actor.` and
# `rollout.` stand under actor_rollout_ref). A name that would mislead has a note.
NAMES = (
    ("num_epochs", "max_steps", "trainer.total_training_steps"),
    ("num_steps_per_epoch", "num_iterations", "actor.ppo_epochs"),
    ("num_responses", "num_generations", "rollout.n"),
    ("deltas_mode", "scale_rewards", "algorithm.adv_estimator"),
    ("loss_mode", "loss_type", "actor.policy_loss.loss_mode"),
    ("aggregation", "loss_type", "actor.loss_agg_mode"),
    ("max_length", "max_completion_length", "actor.loss_scale_factor"),
    ("epsilon", "epsilon", "actor.clip_ratio_low (1 for cispo)"),
    ("epsilon_high", "epsilon_high", "actor.clip_ratio_high"),
    ("ratio_level", "importance_sampling_level", "actor.policy_loss.loss_mode (gspo)"),
    ("dual_clip", "delta", "actor.clip_ratio_c"),
    ("kl_penalty", "beta", "actor.kl_loss_coef (with use_kl_loss)"),
    ("kl_estimator", "use_bias_correction_kl",
        "actor.kl_loss_type (k3 is clamped at 10; k3+; no r k3)"),
    ("kl_place", "-", "algorithm.use_kl_in_reward (beta is kl_ctrl.kl_coef)"),
    ("kl_target", "-",
        "algorithm.kl_ctrl.target_kl (with use_kl_in_reward, type: adaptive)"),
    ("kl_gain", "-", "algorithm.kl_ctrl.horizon"),
    ("compute_ref_model_period", "ref_model_sync_steps", "-"),
    ("ref_mixture", "ref_model_mixup_alpha", "-"),
    ("num_resamples", "-", "algorithm.filter_groups (with other prompts)"),
    ("mask_truncated", "mask_truncated_completions", "-"),
    ("sampler_cap", "vllm_importance_sampling_clip_max",
        "algorithm.rollout_correction.rollout_is_threshold (token)"),
    ("minibatch_size", "steps_per_generation (counts parts)",
        "actor.ppo_mini_batch_size (counts prompts)"),
    ("minibatch_seed", "-", "actor.data_loader_seed"),
    ("max_gradient_norm", "max_grad_norm", "actor.grad_clip"),
    ("stop_kl", "-", "-"),
    ("old_log_probs_from", "-", "algorithm.rollout_correction.bypass_mode (sampler's)"),
    ("micro_batch_size", "per_device_train_batch_size, gradient_accumulation_steps",
        "actor.ppo_micro_batch_size_per_gpu"),
    ("skip_tied_groups", "-", "-"),
)  # fmt: skip


def names_table() -> str:
    """The table in Markdown, one knob a line."""
    rows = [f"| {' | '.join(row)} |" for row in NAMES]
    return "\n".join(["| here | TRL | verl |", "|---|---|---|", *rows])


SCALES = {  # deltas_mode: TRL's scale_rewards
    "normalized_rewards": "group",
    "centered_rewards": "none",
    "batch_normalized_rewards": "batch",
}
MEANS = {
    "sequence_mean": "grpo",
    "token_mean": "dapo",
    "constant": "dr_grpo",
    "sequence_sum": "luspo",
}
LOSS_TYPES = {  # (loss_mode, aggregation): the loss and its mean are one name in TRL
    **{("clipped", mean): name for mean, name in MEANS.items()},
    **{("dual_clipped", mean): name for mean, name in MEANS.items()},
    ("cispo", "token_mean"): "cispo",
    ("sapo", "sequence_mean"): "sapo",
}
ESTIMATORS = ("k3", "corrected_k3")
LACKS = {
    "kl_place": "loss",
    "kl_target": None,
    "num_resamples": 0,
    "stop_kl": None,
    "minibatch_size": None,  # counts responses; TRL's steps_per_generation counts parts
}


def to_trl_arguments(config: TrainConfig) -> dict[str, Any]:
    """The keyword arguments of TRL's GRPOConfig that say the same. Needs no TRL."""
    refuse_what_trl_lacks(config)
    cispo = config.loss_mode == "cispo"
    high = config.epsilon if config.epsilon_high is None else config.epsilon_high
    ref_period = config.compute_ref_model_period
    arguments = {
        "max_steps": config.num_epochs * config.num_steps_per_epoch,
        "num_iterations": config.num_steps_per_epoch,
        "num_generations": config.num_responses,
        "scale_rewards": SCALES[config.deltas_mode],
        "loss_type": LOSS_TYPES[config.loss_mode, config.aggregation],
        "epsilon": config.epsilon,
        "epsilon_high": 1 + high if cispo else high,  # the bound, not its way from 1
        "importance_sampling_level": config.ratio_level,
        "delta": config.dual_clip if config.loss_mode == "dual_clipped" else None,
        "beta": config.kl_penalty,
        "use_bias_correction_kl": config.kl_estimator != "k3",
        "sync_ref_model": bool(config.kl_penalty) and ref_period < config.num_epochs,
        "ref_model_sync_steps": ref_period * config.num_steps_per_epoch,
        "ref_model_mixup_alpha": config.ref_mixture,
        "mask_truncated_completions": config.mask_truncated,
        "max_grad_norm": config.max_gradient_norm or 0.0,  # TRL's word for no limit
    }
    if config.max_length is not None:
        arguments["max_completion_length"] = config.max_length
    # TRL corrects for vLLM only, and by default. Without a cap, as it likes to: here
    # the sampler is the policy itself, but vLLM never is.
    if config.sampler_cap is not None:
        arguments["vllm_importance_sampling_correction"] = True
        arguments["vllm_importance_sampling_mode"] = "token_truncate"
        arguments["vllm_importance_sampling_clip_max"] = config.sampler_cap
    return arguments


def refuse_what_trl_lacks(config: TrainConfig) -> None:
    """Raises ValueError for the first setting that TRL has nothing like."""
    if config.deltas_mode not in SCALES:
        raise unknown_name("deltas_mode", config.deltas_mode, SCALES)
    pair = (config.loss_mode, config.aggregation)
    if pair not in LOSS_TYPES:
        raise unknown_name("(loss_mode, aggregation)", pair, LOSS_TYPES)
    if config.aggregation == "constant" and config.max_length is None:
        raise ValueError(
            "aggregation='constant' needs max_length for TRL, which divides by a "
            "default of its own: give the most tokens of a response."
        )
    if config.kl_penalty:
        if config.kl_estimator not in ESTIMATORS:
            raise unknown_name("kl_estimator", config.kl_estimator, ESTIMATORS)
        if config.kl_estimator != "k3" and config.ratio_level == "sequence":
            raise ValueError(
                "kl_estimator='corrected_k3' with ratio_level='sequence': TRL would "
                "weigh the KL of each token with the ratio of its whole response, "
                "which bends the gradient. Choose kl_estimator='k3' or "
                "ratio_level='token' there."
            )
    for ours, off in LACKS.items():
        if (value := getattr(config, ours)) != off:
            raise ValueError(
                f"TRL's GRPOTrainer has nothing like {ours}={value!r}. Use "
                f"{ours}={off!r} there."
            )


def to_trl_config(config: TrainConfig, **trl_only: Any) -> Any:
    """A trl.GRPOConfig that trains as `config` does.

    `trl_only` are TRL's own arguments: output_dir, learning_rate, batch sizes, ...
    They win over what is translated. A sampler_cap needs use_vllm=True there: TRL
    corrects for no other sampler.
    """
    arguments = to_trl_arguments(config) | trl_only
    return require_trl().GRPOConfig(**arguments)


SCHEDULES = {"linear": "linear", "constant": "constant_with_warmup"}


def trl_settings(config: GRPOConfig, out: Path, world_size: int = 1) -> dict[str, Any]:
    """What TRL must be told of a run beside the knobs of the loop. Needs no TRL.

    `micro_batch_size` counts prompts, with all their responses, in one process.
    Three differences stay. TRL's warmup begins at a rate of 0, ours at one part of it.
    TRL shuffles the problems its own way. And where top_k or top_p cut the softmax,
    TRL scores the whole of it, ours what is left.
    Raises ValueError where a rollout cannot be cut into equal parts, and where the
    limit of a response and what its sum is divided by are two numbers.
    """
    prompts = config.micro_batch_size or max(1, config.num_prompts // world_size)
    at_once = world_size * prompts
    if config.num_prompts % at_once:
        raise ValueError(
            f"num_prompts={config.num_prompts} cannot be spread over {world_size} "
            f"processes with {prompts} prompts each at a time. Choose a multiple of "
            f"{at_once}, or another micro_batch_size or number of processes."
        )
    if config.aggregation == "constant" and config.max_length != config.max_new_tokens:
        raise ValueError(
            f"max_length={config.max_length} with aggregation='constant', but TRL "
            f"divides by max_new_tokens. Set max_length={config.max_new_tokens}."
        )
    steps = config.num_steps_per_epoch
    on_cpu = torch.device(find_device(config.device)).type == "cpu"
    return {
        "per_device_train_batch_size": prompts * config.num_responses,
        "gradient_accumulation_steps": config.num_prompts // at_once,
        "output_dir": str(out),
        "seed": config.seed,
        "reward_weights": [weight for _, weight in weighed_rewards(config)],
        "max_completion_length": config.max_new_tokens,
        "temperature": config.temperature,
        "top_k": config.top_k or 0,
        "top_p": 1.0 if config.top_p is None else config.top_p,
        "learning_rate": config.learning_rate,
        "lr_scheduler_type": SCHEDULES[config.schedule],
        "warmup_steps": config.warmup_epochs * steps,
        "optim": "adamw_torch",
        "weight_decay": config.weight_decay,
        "adam_beta1": config.adam_beta1,
        "adam_beta2": config.adam_beta2,
        "gradient_checkpointing": config.gradient_checkpointing,
        "use_cpu": on_cpu,
        "bf16": config.dtype == "bfloat16" and not on_cpu,
        "model_init_kwargs": {"dtype": "float32"},
        "save_steps": config.save_every * steps,
        "save_total_limit": config.keep_checkpoints,
        "logging_steps": 1,
        "report_to": "none",
    }


def weighed_rewards(config: GRPOConfig) -> list[tuple[Reward, float]]:
    """The task's reward functions with their weights; at 0, TRL logs them only."""
    return [*weigh(make_task(config).rewards, config.reward_weights).values()]


def make_trainer(
    config: GRPOConfig, args: Any, start: str | Path, problems: Sequence[Problem]
) -> Any:
    """TRL's trainer at the model in `start`, a folder or a name on the hub.

    `args` is a trl.GRPOConfig. TRL loads the model itself, and the reference a second
    time from the same place. Raises ValueError as `chat_dataset`, and for tags that are
    special tokens: TRL takes those out before it asks the rewards.
    """
    tokenizer = load_tokenizer(start)
    special = [t.content for t in tokenizer.added_tokens_decoder.values() if t.special]
    if hidden := [tag for tag in TAGS if tag in special]:
        raise ValueError(
            f"{hidden[0]} is a special token of {start}, and TRL hides those from the "
            "rewards. Train with this course's loop: python -m grpo_course train."
        )
    begun = opened_tags(tokenizer)
    functions = [function for function, _ in weighed_rewards(config)]
    task = make_task(config)
    opening = task.opening(config.system_prompt)
    return require_trl().GRPOTrainer(
        model=str(start),
        reward_funcs=[with_opened(f, begun) for f in functions] if begun else functions,
        args=args,
        train_dataset=chat_dataset(problems, opening),
        processing_class=tokenizer,
        peft_config=lora_config(config.lora_rank) if config.lora_rank else None,
        rollout_func=in_turns(config, tokenizer) if task.has_tool else None,
    )


def in_turns(config: GRPOConfig, tokenizer: PreTrainedTokenizerBase) -> Any:
    """Responses with a task's tool in them, written by this course's sampler.

    TRL's own `tools` need a template that tells it what a call is; its `rollout_func`
    needs none, and takes the mask as `env_mask`.
    """
    made: list[CausalPolicy] = []

    def rollout(asked: list[list[dict]], trainer: Any) -> dict[str, Any]:
        model = trainer.accelerator.unwrap_model(trainer.model)
        trains = model.training
        if not made:  # the adapter, where there is one, is TRL's
            seed = config.seed + trainer.args.process_index
            own = replace(config, lora_rank=0, gradient_checkpointing=False, seed=seed)
            made.append(make_policy(own, model, tokenizer))
        questions = [messages[-1]["content"] for messages in asked]  # one opening
        prompts = encode_prompts(tokenizer, questions, asked[0][:-1])
        seen = made[0].sample(prompts, 1)
        model.train(trains)
        assert seen.mask is not None  # turns end
        mask = seen.mask[:, 0]
        kept = up_to_last(mask)
        written = zip(seen.responses[:, 0], mask, kept, strict=True)
        both = [(row[keep].tolist(), own[keep].tolist()) for row, own, keep in written]
        return {
            "prompt_ids": unpad_rows(prompts, tokenizer.pad_token_id),
            "completion_ids": [ids for ids, _ in both],
            "env_mask": [[int(each) for each in own] for _, own in both],
            "logprobs": None,  # TRL asks for them where vLLM writes
        }

    return rollout


def with_opened(function: Reward, begun: str) -> Reward:
    """A reward that sees the tags that the prompt opened, as in the course's loop."""

    @wraps(function)
    def paid(completions: Sequence[Completion], **columns: Any) -> Sequence[float]:
        texts = [behind(begun, text) for text in completion_texts(completions)]
        return function(completions=texts, **columns)

    return paid


def chat_dataset(problems: Sequence[Problem], opening: Opening) -> Dataset:
    """A row a problem: the conversation as `prompt`, and each field as a column.

    So a reward gets the columns that it gets here. A field that the table would change,
    such as a list of numbers and texts, is left out; for an answer it would change,
    raises ValueError.
    """
    held = {"prompt": [chat_messages(p.question, opening) for p in problems]}
    for name, values in columns(problems).items():
        try:
            back = list(Dataset.from_dict({name: values})[name])
        except Exception:  # pyarrow has many
            back = [None] * len(values)
        if back == values:
            held[name] = values
        elif name == "answer":
            pairs = zip(values, back, strict=True)
            sent, returned = next((a, b) for a, b in pairs if a != b)
            raise ValueError(
                f"The answer {sent!r} comes back from the table that TRL reads as "
                f"{returned!r}. Make all answers texts, numbers, or dicts with the "
                "same keys; json.dumps makes a text of anything."
            )
    return Dataset.from_dict(held)


# Seconds. gloo's thread needs Python to free what it sent, and the end of the group
# waits for that thread without letting go of Python: seen once, both waited for ever.
SETTLE = 0.5


def run(config: GRPOConfig, out: Path, trl_only: dict[str, Any]) -> None:
    """The whole run, the same in each process; the first one makes and measures.

    Leaves `out / "model"`, the settings beside it, and `out / "start"`, the tiny model
    after its warm start, where the config names no other.
    """
    if (out / "model").exists():
        raise FileExistsError(f"{out} holds a run already. Choose another: --out DIR.")
    use_threads(config.num_threads)
    world_size = int(os.environ.get("WORLD_SIZE", 1))  # set by the launcher
    args = to_trl_config(config, **trl_settings(config, out, world_size) | trl_only)
    problems, first = load_problems(config), args.process_index == 0
    start, end = config.model or out / "start", out / "model"
    if first:
        print(f"TRL on {args.world_size} process(es), {args.device.type}.", flush=True)
        if config.model is None:  # on disk, where every process finds it
            save_model(*make_start(config, problems), out / "start")
    args.distributed_state.wait_for_everyone()
    trainer = make_trainer(config, args, start, problems)
    trainer.train()
    trainer.save_model(str(end))  # all of them: a part may lie in each
    # A process that ends with its connections open can take the others down with it.
    args.distributed_state.wait_for_everyone()
    time.sleep(SETTLE)
    args.distributed_state.destroy_process_group()
    if first:
        measured = {}
        for name, folder in {"before": start, "after": end}.items():
            held_out = load_trained(config, folder, make_task(config).splits[0])
            measured[name] = evaluate_policy(
                *held_out, config.eval_samples, temperature=config.eval_temperature
            )
        config.save(end / "grpo_config.json")
        print(evaluation_table(measured, config.seed).to_string())
        print(f"The model is in {end}.", flush=True)


def main(arguments: list[str]) -> int:
    """Read the command line, then train, save, measure. -> the exit status"""
    what = "Train a causal LM with TRL's GRPOTrainer."
    parser = training_parser("python -m grpo_course.text.trl", what, out="runs/trl")
    help_text = "JSON object of further arguments of TRL's own"
    parser.add_argument("--trl", default="{}", help=help_text)
    script = "print a script that does it with TRL alone, and do nothing"
    parser.add_argument("--print-trl-config", action="store_true", help=script)
    options, flags = parser.parse_known_args(arguments)
    config = choose_config(options.config, options.task)
    if options.settings:
        print_settings(config, parser.prog)
        return 0
    config = with_flags(config, flags, options, parser.prog)
    if options.print_trl_config:
        own = {} if options.trl == "{}" else own_arguments(options.trl)
        print(script_of(config, Path(options.out), **own))
        return 0
    require_trl()
    if config.lora_rank:
        require_peft()
    own = own_arguments(options.trl)
    out, rank = Path(options.out), int(os.environ.get("RANK", 0))  # set by the launcher
    with alone_in(out) if rank == 0 else nullcontext():  # the first locks for them all
        run(config, out, own)
    return 0


SCRIPT = """\
# GRPO with TRL's own trainer, as `python -m grpo_course.text.trl` runs it. Of the
# course it takes the task: its problems, its rewards, and its prompt.

import torch
from trl import GRPOConfig, GRPOTrainer

{imports}from grpo_course.text.models import load_tokenizer
from grpo_course.text.prompts import opened_tags
from grpo_course.text.tasks import find_task
from grpo_course.text.trl import chat_dataset, with_opened

model = {model!r}
task = find_task({task!r})(
{settings})
problems = task.problems("train", {num_problems!r}, {seed!r})
opening = task.opening({system_prompt!r})
tokenizer = load_tokenizer(model)
begun = opened_tags(tokenizer)  # by the chat template, as "<think>"
on_gpu = {on_gpu}
args = GRPOConfig(
{arguments}    use_cpu=not on_gpu,
    bf16={bf16},
)
trainer = GRPOTrainer(
    model=model,
    reward_funcs=[with_opened(reward, begun) for reward, _ in task.rewards.values()],
    args=args,
    train_dataset=chat_dataset(problems, opening),
    processing_class=tokenizer,{adapter}
)
trainer.train()
trainer.save_model({end!r})
"""
FOR_ADAPTER = "from grpo_course.text.adapters import lora_config\n"
ADAPTER = """
    peft_config=lora_config({rank!r}),"""


def script_of(config: GRPOConfig, out: Path, **trl_only: Any) -> str:
    """A program that trains as the config says, with TRL's trainer. Needs no TRL.

    `trl_only` are TRL's own arguments, as of `to_trl_config`.
    """
    if config.model is None:
        raise ValueError(
            "A tiny model from nothing lies in no folder that a script could name. "
            "Name a model: --model FOLDER, which may be that of a run of this course."
        )
    if make_task(config).has_tool:
        raise ValueError(
            f"task={config.task!r} has a tool, which is more than a script holds. Run "
            "it without --print-trl-config."
        )
    arguments = to_trl_arguments(config) | trl_settings(config, out)
    for name in ("use_cpu", "bf16"):  # of the machine that runs the script
        del arguments[name]
    arguments |= trl_only

    def lines(values: dict[str, Any]) -> str:
        return "".join(f"    {name}={value!r},\n" for name, value in values.items())

    adapter = ADAPTER.format(rank=config.lora_rank) if config.lora_rank else ""
    return SCRIPT.format(
        imports=FOR_ADAPTER if adapter else "",
        model=config.model,
        task=config.task,
        settings=lines(config.task_settings),
        num_problems=config.num_problems,
        seed=config.seed,
        system_prompt=config.system_prompt,
        on_gpu=config.device != "cpu" and "torch.cuda.is_available()",
        arguments=lines(arguments),
        bf16=config.dtype == "bfloat16" and "on_gpu",
        adapter=adapter,
        end=str(out / "model"),
    )


def own_arguments(text: str) -> dict[str, Any]:
    """TRL's own arguments. Raises ValueError for what is no JSON object of them."""
    values = json_object(text, f"--trl {text[:60]!r}")
    known = [field.name for field in fields(require_trl().GRPOConfig)]
    if unknown := [name for name in values if name not in known]:
        raise ValueError(f"--trl: {unknown_setting(unknown[0], known)}")
    return values


if __name__ == "__main__":
    sys.exit(run_command(main, sys.argv[1:]))
