"""python -m grpo_course.engines.trl --config laptop|gpu|gpu-smollm2|FILE ...

Train with TRL's GRPOTrainer in place of this course's loop: on one process as above, on
several with torchrun or accelerate. `--task` and the settings are those of `train`.

    torchrun --nproc_per_node 2 -m grpo_course.engines.trl --config laptop
    accelerate launch --config_file grpo_course/engines/fsdp.yaml \\
        -m grpo_course.engines.trl --config gpu

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
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import fields
from pathlib import Path
from typing import Any

from grpo_course.engines.require import require_trl
from grpo_course.language_model.build import load_problems, make_start, use_threads
from grpo_course.language_model.config import GRPOConfig
from grpo_course.language_model.pretrained import save_model
from grpo_course.language_model.tables import evaluation_table
from grpo_course.language_model.text_task import Problem
from grpo_course.runs.cli import (
    choose_config,
    print_settings,
    run_command,
    training_parser,
    with_flags,
)
from grpo_course.runs.folder import alone_in

# Seconds. gloo's thread needs Python to free what it sent, and the end of the group
# waits for that thread without letting go of Python: seen once, both waited for ever.
SETTLE = 0.5


def work(arguments: list[str]) -> int:
    """Train, save, measure. -> the exit status"""
    made = training_parser(
        "trl", "Train a causal LM with TRL's GRPOTrainer.", out="runs/trl"
    )
    made.prog = "python -m grpo_course.engines.trl"
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
    require_known(own)
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


def require_known(own: dict[str, Any]) -> None:
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
    from grpo_course.engines import trl_run  # loads TRL, which is slow

    if (out / "model").exists():
        raise FileExistsError(f"{out} holds a run already. Choose another: --out DIR.")
    use_threads(config)
    world_size = int(os.environ.get("WORLD_SIZE", 1))  # set by the launcher
    args = trl_run.make_args(config, out, world_size, **trl_only)
    problems, first = load_problems(config), args.process_index == 0
    if first:
        print(f"TRL on {args.world_size} process(es), {args.device.type}.", flush=True)
        if config.model is None:
            make_start_folder(config, problems, out / "start")
    args.distributed_state.wait_for_everyone()
    start = config.model or out / "start"
    trainer = trl_run.make_trainer(config, args, start, problems)
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
    from grpo_course.engines.trl_run import measure

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
