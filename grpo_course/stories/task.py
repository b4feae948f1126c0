"""Stories as a task: the rewards of GSM8K, and a model of the course to begin with."""

from pathlib import Path
from typing import ClassVar

from grpo_course.algorithm.settings import settings
from grpo_course.gsm8k.prompts import demonstration
from grpo_course.gsm8k.task import GSM8K
from grpo_course.language_model.config import GRPOConfig
from grpo_course.language_model.text_task import TextTask, require_count
from grpo_course.stories.handwritten import load_handwritten
from grpo_course.stories.problems import SPLITS, Story, make_stories, make_sums

MODEL = Path(__file__).parent / "model"  # the language model of the course
SUMS, HANDWRITTEN = "sums", "handwritten"
MOST_TOKENS = 64  # of a response; four steps take about 50

# The finale of the course. Prompts are told in sentences that pretraining held out, the
# form is known, so right answers alone are paid, and nothing holds the policy back.
LAPTOP = GRPOConfig(
    model=str(MODEL),
    task="stories",
    num_problems=1920,  # each is asked once
    max_new_tokens=MOST_TOKENS,
    num_epochs=120,
    learning_rate=1e-4,
    kl_penalty=0.0,
    skip_tied_groups=True,
    reward_weights={"format": 0.0},
)

# Where pretraining's sentences are held out, another split stands behind the name.
NEW_FRAMES = {"train": "edge_practice", "validation": "edge_validation"}


@settings()
class Stories(TextTask[Story]):
    """Stories of one to four steps, told in several thousand frames."""

    # train and validate on sentences that the model of the course has not read
    new_frames: bool = True

    rewards: ClassVar = GSM8K.rewards
    measures: ClassVar = GSM8K.measures
    presets: ClassVar = {"laptop": LAPTOP}

    @property
    def splits(self) -> tuple[str, ...]:
        """Those of problems.SPLITS, sums of unseen numbers, and handwritten ones."""
        first = "edge_both" if self.new_frames else "unseen_problems"
        made = tuple(split for split in SPLITS if split not in (first, "train"))
        return (first, *made, SUMS, HANDWRITTEN)

    def problems(self, split: str, count: int | None, seed: int) -> list[Story]:
        """At most `count` problems; the handwritten ones depend on no seed."""
        if split == HANDWRITTEN:
            return load_handwritten()[:count]
        if split == SUMS:
            return make_sums(require_count(count), seed, "unseen")
        split = NEW_FRAMES.get(split, split) if self.new_frames else split
        return make_stories(split, require_count(count), seed)

    def gold(self, problem: Story) -> str:
        """The problem's own solution and answer in the full form."""
        return demonstration(problem)
