"""On which settings the tests hold this course's loss against TRL's own.

A further test, for those who unpack verl 0.9.1 (tests/engines/test_verl_loss.py), holds
it against verl's vanilla (with and without dual clip), gspo and cispo losses under four
means, and its sapo loss under its one mean. Largest differences, in float64: 4e-9, as
verl adds 1e-8 to a number of tokens; sapo 4e-8, as it keeps a factor in float32.
"""

from collections.abc import Iterator
from itertools import product
from typing import Any

from grpo_course.algorithm.config import TrainConfig
from grpo_course.algorithm.ratio import RATIO_LEVELS
from grpo_course.engines.translate import LOSS_TYPES, PER_TOKEN

TOLERANCE = 1e-9  # of the loss and of each number of its gradient, in float64
KL_TERMS = ((0.0, "k3"), (0.1, "k3"), (0.1, "corrected_k3"))  # beta, estimator
CLIPS: tuple[dict[str, Any], ...] = (
    {"epsilon": 0.2},
    {"epsilon": 0.1, "epsilon_high": 0.4},
)


def compared_settings() -> Iterator[TrainConfig]:
    """Every loss that TRL has too, with both ratios, KL terms and clip ranges.

    But for the corrected KL beside a response's ratio, where TRL means another loss.
    Few tokens, wide log-probs: each bound must be reached to be tested.
    """
    kinds = product(LOSS_TYPES, RATIO_LEVELS, KL_TERMS, CLIPS)
    for (loss_mode, mean), level, (beta, estimator), clip in kinds:
        if (estimator, level) == PER_TOKEN:
            continue
        yield TrainConfig(
            loss_mode=loss_mode,
            aggregation=mean,
            ratio_level=level,
            kl_penalty=beta,
            kl_estimator=estimator,
            max_length=11,
            dual_clip=1.6,
            num_responses=3,
            **clip,
        )
