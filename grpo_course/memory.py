"""Copies of a model at scale: what a trainer holds beside `runs.memory`'s one run.

Mixed precision, a critic, an engine that samples with weights of its own. Activations
are not counted: they depend on the batch, on recomputing and on kernels.
"""

from dataclasses import dataclass

from grpo_course.checks import require_at_least
from grpo_course.runs.memory import cache_bytes
from grpo_course.runs.shape import Shape

# --- engines.scale


@dataclass(frozen=True)
class MemoryPlan:
    """What a run keeps, and in how many bytes a number.

    The default is mixed precision: weights and cache in bfloat16; a float32 copy of
    the weights and Adam's two averages. With weight_bytes=4 there is no such copy:
    set master_bytes=0.
    """

    weight_bytes: int = 2
    gradient_bytes: int = 2
    master_bytes: int = 4  # the copy that the optimizer moves; 0: it moves the weights
    average_bytes: int = 4  # of each of Adam's two averages
    cache_bytes: int = 2
    reference: bool = True  # beta above 0
    critic: bool = False  # a second model, trained like the first (PPO)
    engine_copy: bool = False  # the sampler holds weights of its own (vLLM, servers)
    sequences: int = 1  # sampled at a time
    tokens: int = 1024  # of each, prompt included


def memory_parts(shape: Shape, plan: MemoryPlan) -> dict[str, int]:
    """Bytes of each part. The sum is what must fit, on one device or over several.

    Raises ValueError for a negative number of sequences or tokens.
    """
    require_at_least("sequences", plan.sequences, 0)
    require_at_least("tokens", plan.tokens, 0)
    count, weights = shape.parameters, shape.parameters * plan.weight_bytes
    trained = count * (plan.gradient_bytes + plan.master_bytes + 2 * plan.average_bytes)
    cache = cache_bytes(shape, plan.sequences, plan.tokens, plan.cache_bytes)
    return {
        "policy": weights,
        "gradient and optimizer": trained,
        "reference": weights if plan.reference else 0,
        "critic": weights + trained if plan.critic else 0,
        "sampler's copy": weights if plan.engine_copy else 0,
        "key-value cache": cache,
    }


def plan_table(shape: Shape, plans: dict[str, MemoryPlan]) -> str:
    """Plans side by side as text, in units of 10^9 bytes."""
    columns = {name: memory_parts(shape, plan) for name, plan in plans.items()}
    columns = {n: p | {"together": sum(p.values())} for n, p in columns.items()}
    lines = [f"{'GB':<24}" + "".join(f"{name:>14}" for name in columns)]
    for part in next(iter(columns.values())):
        sizes = [f"{parts[part] / 1e9:>14.2f}" for parts in columns.values()]
        lines.append(f"{part:<24}" + "".join(sizes))
    return "\n".join(lines)
