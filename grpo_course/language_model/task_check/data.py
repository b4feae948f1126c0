"""What is wrong with the problems of a task."""

from typing import Any

from datasets import Dataset

from grpo_course.language_model.task_check.attack import answer_in
from grpo_course.language_model.task_check.look import Look
from grpo_course.language_model.text_task import Problem


def count_fault(look: Look) -> str:
    """What is no problem, or too few or too many of them."""
    problems, most = look.problems, look.config.num_problems
    least = look.config.warm_start_batch_size if look.config.model is None else 1
    if not all(isinstance(problem, Problem) for problem in problems):
        return "problems must return Problem(question, answer) objects."
    if most is not None and len(problems) > most:
        return f"problems returns {len(problems)} where count={most} is the most."
    if len(problems) >= least:
        return ""
    return (
        f"problems returns {len(problems)} for split 'train', and a step of the warm "
        f"start takes {least}. Make more, or lower warm_start_batch_size."
    )


def answer_fault(look: Look) -> str:
    """One question with two right answers."""
    answers: dict[str, Any] = {}
    for problem in look.problems:
        if answers.setdefault(problem.question, problem.answer) != problem.answer:
            return (
                f"Two problems ask {problem.question!r}, and their answers are "
                f"{answers[problem.question]!r} and {problem.answer!r}. Say in the "
                "question what tells them apart."
            )
    return ""


def repeat_fault(look: Look) -> str:
    """Equal arguments, other problems."""
    if look.ask("train") == look.problems:
        return ""
    return (
        "Equal arguments give other problems each time. Draw them from a generator of "
        'their own, random.Random(f"{split} {seed}"): a resumed run asks for its '
        "problems again."
    )


def split_fault(look: Look) -> str:
    """What is measured on has been trained on.

    No split may ask a question of "train"; the first, which is reported, none that
    counts as the same problem.
    """
    first, *others = look.task.splits
    for split in (first, *(split for split in others if split != "train")):
        name = "group" if split == first else "question"
        trained, asked = (
            {getattr(problem, name) for problem in problems}
            for problems in (look.problems, look.ask(split))
        )
        if shared := trained & asked:
            return (
                f"{len(shared)} of the {len(asked)} problems of split {split!r} are "
                f"in 'train' too, such as {min(shared)!r}: memory would pass for "
                "learning. Keep a problem only where split_of(its text) == split."
            )
    return ""


def leak_fault(look: Look) -> str:
    """The right answer stands in the question, more often than another's does."""
    answers = [answer_in(gold).strip() for gold in look.golds]
    asked = [problem.question for problem in look.some]

    def share(said: list[str]) -> float:
        return sum(map(str.__contains__, asked, said)) / len(asked)

    if share(answers) - share(answers[1:] + answers[:1]) < 0.5:
        return ""
    return (
        f"The right answer stands in the question, in {share(answers):.0%} of the "
        f"problems, such as {asked[0]!r}. Copying is all there is to learn."
    )


def table_fault(look: Look) -> str:
    """Answers that come out of a table other than they went in."""
    return changed_answer([problem.answer for problem in look.some])


def changed_answer(answers: list[Any]) -> str:
    """Words on the first answer that a table gives back otherwise; "" if none."""
    try:
        back = list(Dataset.from_dict({"answer": answers})["answer"])
    except Exception:
        back = []
    for given, returned in zip(answers, back or [None] * len(answers), strict=True):
        if given != returned:
            return (
                f"The answer {given!r} comes back from the table that TRL reads as "
                f"{returned!r}. Make all answers texts, numbers, or dicts with the "
                "same keys; json.dumps makes a text of anything."
            )
    return ""
