"""What a checkpoint and the run that goes on from it must share: settings and data."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from grpo_course.runs.checkpoint import CheckpointError
from grpo_course.tasks import Problem
from grpo_course.training import GRPOConfig, load_config, spelled_out

CONFIG = "grpo_config.json"


def differing(one: GRPOConfig, other: GRPOConfig) -> dict[str, tuple[Any, Any]]:
    """The settings in which two configs differ, and what each says."""
    first, second = (asdict(spelled_out(config)) for config in (one, other))
    pairs = {name: (value, second[name]) for name, value in first.items()}
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}


def differences(there: GRPOConfig, now: GRPOConfig) -> str:
    """In which settings two configs differ, in words; empty if in none."""
    return "; ".join(
        f"{name} is {old!r} there and {new!r} now"
        for name, (old, new) in differing(there, now).items()
    )


def require_own(path: Path, config: GRPOConfig) -> None:
    """Check that a checkpoint is of this run: of its seed, sizes and the rest."""
    words = differences(load_config(path / CONFIG), config)
    if words:
        settings = path.parents[1] / CONFIG
        raise CheckpointError(
            f"{path} is the checkpoint of another run, or {settings} was changed: "
            f"{words}. Put the settings back, of which the checkpoint holds a "
            "copy. Or, if the checkpoint was brought here: Remove it, and the run goes "
            "on from the one before."
        )


def data_digest(problems: Sequence[Problem]) -> dict[str, Any]:
    """How many problems there are, and a digest of all in their order."""
    digest = hashlib.sha256()
    for problem in problems:
        digest.update(as_text(problem).encode())
    return {"problems": len(problems), "sha256": digest.hexdigest()}


def as_text(problem: Problem) -> str:
    """A problem as text. An answer that JSON does not know is told by its type."""
    parts = [problem.question, problem.solution, problem.answer]
    return json.dumps(parts, sort_keys=True, default=lambda x: type(x).__name__)


def require_same_data(path: Path, there: Mapping, now: Mapping) -> None:
    """Check that a run goes on with the problems that a checkpoint was made with."""
    for kind in now:
        old, new = there[kind], now[kind]
        if old != new:
            same = old["problems"] == new["problems"]
            raise CheckpointError(
                f"{path} was made with {old['problems']} {kind} problems, and the run "
                f"finds {'as many' if same else new['problems']} now that are not the "
                "same in the same order. Put the data back as they were, or begin a "
                "new run with its newest model: --model and another --out."
            )
