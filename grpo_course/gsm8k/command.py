"""What the commands of this world share.

Standard library only, so that it can say what is not installed.
"""

import argparse
import sys
from collections.abc import Callable
from importlib.util import find_spec

NEEDED = ("torch", "einops", "transformers", "tokenizers", "safetensors", "tqdm")
STOPPED = 130  # the exit status of a program that Ctrl-C ended


def missing_packages() -> str | None:
    """What to tell somebody whose Python lacks the packages; None if all are there."""
    missing = [name for name in NEEDED if find_spec(name) is None]
    if not missing:
        return None
    return (
        f"This Python ({sys.executable}) has no {', '.join(missing)}.\n"
        "Make the course's environment once, from the folder of the course:\n"
        "    python3 -m grpo_course lab\n"
        "and run this command with it, for example:\n"
        "    .venv/bin/python -m grpo_course.gsm8k.train --config laptop"
    )


def training_parser(
    prog: str, description: str, out: str, epilog: str | None = None
) -> argparse.ArgumentParser:
    """What every command that trains takes; `out` is the default folder of the run."""
    made = argparse.ArgumentParser(prog, description=description, epilog=epilog)
    add = made.add_argument
    add("--config", help="laptop, gpu, gpu-smollm2, or a JSON file (default: laptop)")
    add("--model", help="folder of a run or a model, or a hub name")
    add("--data", help='"generated", "gsm8k", or a folder with train.jsonl')
    add("--steps", type=int, help="epochs, that is rollouts, in all")
    add("--out", default=out, help="folder of the run (default: %(default)s)")
    return made


def run_command(work: Callable[[list[str]], int]) -> int:
    """Run a command on the arguments of this process. -> the exit status

    What a person can cure is one line on stderr; a bug keeps its traceback.
    """
    problem = missing_packages()
    if problem:
        print(problem, file=sys.stderr)
        return 1
    from grpo_course.gsm8k.checkpoint import CheckpointError

    try:
        return work(sys.argv[1:])
    except KeyboardInterrupt:
        print("\nStopped.", file=sys.stderr)
        return STOPPED
    except (ValueError, OSError, CheckpointError) as error:
        print(f"\nerror: {error}", file=sys.stderr)
        return 1
