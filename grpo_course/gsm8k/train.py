"""python -m grpo_course.gsm8k.train --config laptop|gpu|gpu-smollm2|FILE ...

Train a model with GRPO on GSM8K, or on generated problems in its format.
"""

import argparse
import sys
from pathlib import Path

from grpo_course.gsm8k.command import STOPPED, run_command, training_parser


def parser() -> argparse.ArgumentParser:
    """What the command takes."""
    made = training_parser(
        "python -m grpo_course.gsm8k.train",
        "Train a causal LM with GRPO on word problems.",
        out="runs/gsm8k",
        epilog="A run that was stopped in any way goes on with: --resume --out DIR",
    )
    made.add_argument("--resume", action="store_true", help="go on with the run")
    return made


def main(arguments: list[str]) -> int:
    """Begin a run or go on with one. -> the exit status"""
    from grpo_course.gsm8k.memory import print_estimate
    from grpo_course.gsm8k.presets import choose_config
    from grpo_course.gsm8k.run import Run
    from grpo_course.gsm8k.run_folder import begin, require_same, saved_config

    options = parser().parse_args(arguments)
    out = Path(options.out)
    named = {"model": options.model, "data": options.data, "num_epochs": options.steps}
    if options.resume:
        config = saved_config(out)
        require_same(choose_config(options.config, named, config), config, out)
    else:
        config = choose_config(options.config, named)
    print_estimate(config)
    if not options.resume:
        begin(config, out)
    try:
        run = Run(out)
        run.go()
    except KeyboardInterrupt:
        print(f"\nStopped. To go on: {again(out)}", file=sys.stderr)
        return STOPPED
    print(f"Trained for {run.state.epoch} epochs. The model is in {run.newest()}.")
    print(f"Measure it: python -m grpo_course.gsm8k.evaluate --model {out}")
    return 0


def again(out: Path) -> str:
    """The command that goes on with a run."""
    return f"python -m grpo_course.gsm8k.train --resume --out {out}"


if __name__ == "__main__":
    sys.exit(run_command(main))
