"""What a run keeps of a rollout beside its means: texts, and why groups are tied."""

from typing import TYPE_CHECKING, Any

from torch import Tensor

from grpo_course.algorithm.rollout import tied_groups
from grpo_course.language_model.encoding import decode_responses

if TYPE_CHECKING:
    from grpo_course.language_model.environment import Environment


def split_ties(rewards: Tensor, right: Tensor) -> dict[str, float]:
    """The shares of the groups that teach nothing: all right, and all wrong.

    The rewards, and whether a response is right, [batch trial] each. The rest of
    `tied_groups` is neither: it is right in part, or the rewards say by how much.
    """
    tied = tied_groups(rewards)
    return {
        "tied_right": (tied & (right == 1).all(dim=-1)).float().mean().item(),
        "tied_wrong": (tied & (right == 0).all(dim=-1)).float().mean().item(),
    }


def sample_rows(environment: "Environment", count: int) -> list[dict[str, Any]]:
    """What the first `count` prompts of the latest rollout were answered.

    A row for each response: each of its rewards, `reward`, which is their weighed sum,
    question, right answer and completion.
    """
    if environment.seen is None:
        return []
    rollout, graded = environment.seen
    rewards = {name: column.tolist() for name, column in graded.items()}
    rewards["reward"] = environment.weighed(graded).tolist()
    texts = decode_responses(environment.tokenizer, rollout)
    return [
        {name: column[row][trial] for name, column in rewards.items()}
        | {
            "question": environment.questions[key],
            "answer": str(environment.answers[key]),
            "completion": text,
        }
        for row, key in enumerate(environment.keys(rollout.prompts)[:count])
        for trial, text in enumerate(texts[row])
    ]
