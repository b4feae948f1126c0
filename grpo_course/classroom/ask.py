"""Ask the models a problem of your own, and see what they write."""

from collections import Counter
from collections.abc import Mapping

from transformers import PreTrainedTokenizerBase

from grpo_course.evaluation import Scores, greedy_scores, sampled_scores
from grpo_course.gsm8k import read_number
from grpo_course.lm import CausalPolicy
from grpo_course.reader import LAPTOP, unknown_words
from grpo_course.tasks import TAGS, Problem
from grpo_course.training import make_environment

WIDTH = 75  # of a printed line
KNOWN = "every word is in training"


def ask(
    question: str,
    models: Mapping[str, CausalPolicy],
    tokenizer: PreTrainedTokenizerBase,
    answer: int | str | None = None,
    num_samples: int = 8,
    seed: int = 0,
) -> None:
    """Print each model's greedy response and its samples, with the reward R of each.

    `models` maps a name to a policy. `answer` is the right one; without it nobody can
    say what a response earns. Equal samples share a line, the most frequent first.
    Words that no training story has are named above: a model spells them from parts.
    Raises ValueError for an empty question, for one that is too long, and for an answer
    that is no number.
    """
    problem = Problem(require_question(question), require_answer(answer))
    environment = make_environment(LAPTOP, [problem], tokenizer)
    unknown = unknown_words(question)
    print(f"not in training: {', '.join(unknown)}" if unknown else KNOWN)
    for name, policy in models.items():
        greedy = greedy_scores(policy, environment)
        samples = sampled_scores(policy, environment, num_samples, seed=seed)
        print(f"{name}\n  greedy   {lines_of(greedy, answer)[0][1]}"[:WIDTH])
        for count, line in lines_of(samples, answer):
            print(f"  {count} of {num_samples}   {line}"[:WIDTH])


def lines_of(scores: Scores, answer: int | str | None) -> list[tuple[int, str]]:
    """Each different response with its reward, and how often it came."""
    written = zip(scores.texts[0], scores.accuracy[0].tolist(), strict=True)
    lines = [
        bare(text) if answer is None else f"R {reward:g}  {bare(text)}"
        for text, reward in written
    ]
    return [(count, line) for line, count in Counter(lines).most_common()]


def bare(text: str) -> str:
    """A response on one line: the answer after an arrow, or as it is without tags."""
    if not all(tag in text for tag in TAGS):
        return repr(text)
    for tag, sign in zip(TAGS, ("", "", " -> ", ""), strict=True):
        text = text.replace(tag, sign)
    return ", ".join(text.split("\n"))


def require_question(question: str) -> str:
    """Check that there is something to ask."""
    if not isinstance(question, str) or not question.strip():
        raise ValueError(
            f"question={question!r}, but it must be a text: ask('Ann has 3 apples. "
            "She buys 4 more. How many has she now?', ...)."
        )
    return question.strip()


def require_answer(answer: int | str | None) -> str:
    """The right answer as the rewards compare it; any where none is known."""
    if answer is not None and read_number(str(answer)) is None:
        raise ValueError(
            f"answer={answer!r}, but it must be one number: answer=7. Leave it out if "
            "you do not want to say."
        )
    return "0" if answer is None else str(answer)
