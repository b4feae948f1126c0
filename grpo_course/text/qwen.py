"""GSM8K's own rows, for a pretrained model that can begin them, and what to ask it.

Qwen2.5-0.5B-Instruct (Qwen Team 2024, arXiv 2412.15115) has 494 million weights.

python3 -m grpo_course fetch qwen                           # once, into a folder
python3 -m grpo_course train --task qwen --out runs/qwen
python3 -m grpo_course evaluate --model runs/qwen --split validation --baselines

The rows are GSM8K's, from the hub or from GSM8K_DIR. Left out: the tags of `gsm8k`.
Worked examples in the prompt show a form instead, as in smollm2.py.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any, ClassVar

from grpo_course.checks import settings
from grpo_course.text import fetch, smollm2
from grpo_course.text.grader import lenient_reward
from grpo_course.text.gsm8k import ADVISED, worked_lines
from grpo_course.text.responses import Completion
from grpo_course.text.stories import WordProblem

MARK = "####"  # the answer, behind GSM8K's own mark, is the end of what is written


def accuracy(
    completions: list[Completion], answer: list[str], **kwargs: object
) -> list[float]:
    """1.0 for the right number behind the mark."""
    return smollm2.accuracy(completions, answer, mark=MARK)


# "12." and "12.00" agree.
accuracy.meaning = partial(smollm2.stated, mark=MARK)  # type: ignore[attr-defined]


def form(completions: list[Completion], **kwargs: object) -> list[float]:
    """1.0 for any number behind the mark."""
    return smollm2.form(completions, mark=MARK)


@settings()
class Rows(smollm2.ShortAnswers):
    """GSM8K's problems, worked in short lines; the answer behind a mark at the end."""

    data: str = "gsm8k"

    rewards: ClassVar = {
        "accuracy": (accuracy, 1.0),
        "lenient_accuracy": (lenient_reward, 0.0),
        "form": (form, 0.0),  # learned without pay, too: notebook 18
    }
    measures: ClassVar[Sequence[str]] = ("accuracy", "lenient_accuracy", "form")
    # Our own, none of them GSM8K's. Without one, 0 of 64 answers were right; with two,
    # four and eight, 13, 11 and 10 (tools/rows.py).
    examples: ClassVar[Sequence[tuple[str, str]]] = (
        (
            "A box holds 6 rows of 4 eggs. Five eggs are broken. How many are whole?",
            "6 * 4 = 24 eggs in the box.\n24 - 5 = 19 eggs are whole.\n#### 19",
        ),
        (
            "Nora earns $15 an hour. She works 3 hours on Monday and twice as long on "
            "Tuesday. How much does she earn in all?",
            "3 * 2 = 6 hours on Tuesday.\n3 + 6 = 9 hours in all.\n"
            "9 * 15 = 135 dollars.\n#### 135",
        ),
    )
    presets: ClassVar[dict[str, dict[str, Any]]] = {
        "qwen": {
            **smollm2.ShortAnswers.presets["smollm2"],
            "model": fetch.folder_of("qwen"),
            "system_prompt": "You solve word problems. Write each step as one short "
            f'line, and end with the line "{MARK} NUMBER".',
            "num_problems": None,
            **ADVISED,
            "max_new_tokens": 160,
            # A group at a time, which took 16 GB at most.
            "micro_batch_size": 1,
            "dtype": "bfloat16",
            # Eight updates at 1e-5 took 13 right rows of 64 to 3, twice; at this rate
            # four seeds ended with 13, 6, 16 and 10 (November 2026, two cores,
            # Qwen2.5-Coder-0.5B-Instruct, rounded).
            "learning_rate": 2e-6,
        }
    }

    def gold(self, problem: WordProblem) -> str:
        """The problem's own solution, line by line, and its answer behind the mark."""
        return f"{worked_lines(problem)}\n{MARK} {problem.answer}"
