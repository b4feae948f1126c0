"""Answers to the exercises of 15_own_task, as learners write them.

Each function is named after its exercise. It yields every answer with words that
`check` must print: those of a wrong answer's hint, or that it "is right".
"""

import json
import re

import torch

from grpo_course.gsm8k import correctness_reward, lenient_reward, read_number
from grpo_course.tasks import completion_texts, extract_answer, format_reward


def json_reward():
    def each(pay):
        """A reward that pays each completion for itself."""

        def answer(completions, answer, **kwargs):
            pairs = zip(completion_texts(completions), answer)
            return [float(pay(text, gold)) for text, gold in pairs]

        return answer

    def read(text):
        try:
            return json.loads(text)
        except ValueError:
            return None

    def hits(given, gold):
        return sum(given.get(key) == gold[key] for key in gold)

    def of_dict(pay):
        """Pays for a JSON object, and nothing for all else."""

        def rule(text, gold):
            given = read(text)
            return pay(given, gold) if isinstance(given, dict) else 0

        return each(rule)

    def union(given, gold):
        return hits(given, gold) / len({*given, *gold})

    yield "ends the whole run", each(lambda text, gold: union(json.loads(text), gold))
    yield (
        "JSON may be a number",
        each(lambda text, gold: union(read(text), gold) if read(text) else 0),
    )
    yield "that is not asked for", of_dict(lambda x, gold: hits(x, gold) / len(gold))
    yield (
        "Two of three values",
        of_dict(lambda given, gold: given == gold),
    )
    yield (
        "no answer: a policy would write them",
        of_dict(lambda x, gold: len(x.keys() & gold.keys()) / len({*x, *gold})),
    )
    yield (
        "under its own key only",
        of_dict(
            lambda x, gold: (
                sum(value in x.values() for value in gold.values()) / len({*x, *gold})
            )
        ),
    )
    yield (
        "A key that is missing is wrong",
        of_dict(lambda given, gold: hits(given, gold) / max(1, len(given))),
    )

    def between(text):
        found = re.search("{.*}", text)
        return read(found[0]) if found else None

    yield (
        "Words stand around",
        each(lambda text, gold: union(between(text), gold) if between(text) else 0),
    )
    yield (
        "not the number 7",
        of_dict(
            lambda given, gold: (
                sum(str(given.get(key)) == str(gold[key]) for key in gold)
                / len({*given, *gold})
            )
        ),
    )

    def run(text, gold):
        try:
            given = eval(text)
        except Exception:
            return 0
        return union(given, gold) if isinstance(given, dict) else 0

    yield "eval would run", each(run)

    def answer(completions, answer, **kwargs):
        right = [answer[0]] * len(answer)
        return of_dict(union)(completions, right)

    yield "zip the two lists", answer
    yield (
        "completion_texts makes plain",
        lambda completions, answer, **kwargs: [
            of_dict(union)([text], [gold])[0] if isinstance(text, str) else 0.0
            for text, gold in zip(completions, answer)
        ],
    )
    yield (
        "keep (completions,",
        lambda completions, answer: of_dict(union)(completions, answer),
    )
    yield "`return` missing", lambda completions, answer, **kwargs: None

    def answer(completions, answer, **columns):
        rewards = []
        for text, gold in zip(completion_texts(completions), answer):
            given = read(text)
            if not isinstance(given, dict):
                rewards.append(0)
                continue
            keys = set(given) | set(gold)
            same = [k for k in keys if k in given and k in gold and given[k] == gold[k]]
            rewards.append(len(same) / len(keys))
        return rewards

    yield "is right", answer


def my_reward():
    def each(pay):
        """A reward that pays each completion for itself."""

        def answer(completions, answer, **kwargs):
            pairs = zip(completion_texts(completions), answer)
            return [float(pay(text, gold)) for text, gold in pairs]

        return answer

    def given(text):
        return extract_answer(text) or ""

    def plus(bonus, weight=0.2):
        """The right number, and some of a bonus for the text."""
        return each(
            lambda text, gold: (
                correctness_reward([text], [gold])[0] + weight * bonus(text)
            )
        )

    yield (
        "The form is whole and the number is wrong",
        each(lambda text, gold: format_reward([text])[0]),
    )
    yield (
        "The form is whole and the number is wrong",
        each(lambda text, gold: given(text).isdigit()),
    )
    yield "somewhere in the text", each(lambda text, gold: gold in text)
    yield (
        "somewhere in the text",
        each(lambda text, gold: gold in re.findall("[0-9]+", text)),
    )
    yield (
        "somewhere in the text",
        lambda completions, answer, **kwargs: lenient_reward(completions, answer),
    )
    yield (
        "Several answers at once",
        each(lambda text, gold: gold in re.findall("-?[0-9]+", given(text))),
    )
    yield (
        "a part of 17",
        each(lambda text, gold: given(text).endswith(gold) and " " not in given(text)),
    )
    yield (
        "It answers twice",
        each(
            lambda text, gold: any(
                read_number(found) == read_number(gold)
                for found in re.findall("<answer>([^<]*)</answer>", text)
            )
        ),
    )
    yield "Tags without an answer", plus(lambda text: text.count("<answer>"))
    yield "pays for length", plus(lambda text: text.count("="))
    yield "pays for length", plus(len, weight=0.01)
    yield (
        "The answer is not closed",
        each(
            lambda text, gold: (
                read_number(text.rpartition("<answer>")[2].split("<")[0])
                == read_number(gold)
            )
        ),
    )
    yield (
        "the minus belongs to the number",
        each(lambda text, gold: given(text).strip(" -$") == gold.strip("-")),
    )

    def computed(text):
        try:
            return eval(given(text))
        except Exception:
            return None

    yield "never run it", each(lambda text, gold: computed(text) == int(gold))
    yield (
        "read_number reads it as the course",
        each(lambda text, gold: given(text) == gold),
    )
    yield (
        "zip the two lists",
        lambda completions, answer, **kwargs: correctness_reward(
            completions, answer[:1] * len(answer)
        ),
    )
    yield "`return` missing", lambda completions, answer, **kwargs: None
    yield (
        "Return a list of floats",
        lambda completions, answer, **kwargs: sum(
            correctness_reward(completions, answer)
        ),
    )
    yield (
        "keep (completions,",
        lambda completions, answer: correctness_reward(completions, answer),
    )
    yield (
        "completion_texts makes plain",
        lambda completions, answer, **kwargs: [
            correctness_reward([c], [gold])[0] if isinstance(c, str) else 0.0
            for c, gold in zip(completions, answer)
        ],
    )

    def answer(completions, answer, **kwargs):
        right = correctness_reward(completions, answer)
        form = format_reward(completions)
        return [3 * r + f - 1 for r, f in zip(right, form)]

    yield "is right", answer
    yield (
        "is right",
        lambda completions, answer, **columns: torch.tensor(
            correctness_reward(completions, answer)
        ).tolist(),
    )


def diagnose():
    def too_far(end):
        return "rate too high" if end["kl"] > 1 else None

    def nearly_all_tied(end, bound=0.8, hard=0.1):
        """The first half of a right answer; None where groups differ."""
        if too_far(end):
            return too_far(end)
        if end["tied_groups"] > bound and end["accuracy"] < 0.9:
            return "too hard" if end["accuracy"] < hard else "format alone"
        return None

    def fall(start, end):
        """The second half of a right answer."""
        fell = end["lenient_accuracy"] < start["lenient_accuracy"] - 0.1
        return "rate too high" if fell else "learns"

    yield (
        "Ask the accuracy which it is",
        lambda start, end: "too hard" if end["tied_groups"] > 0.8 else fall(start, end),
    )

    def answer(start, end):
        if end["accuracy"] > start["accuracy"]:
            return "learns"
        if end["tied_groups"] <= 0.8:
            return "rate too high"
        return "too hard" if end["accuracy"] < 0.1 else "format alone"

    yield "rises with the form alone", answer

    def answer(start, end):
        if end["tied_groups"] <= 0.8:
            return too_far(end) or "learns"
        if end["accuracy"] < 0.1:
            return "too hard"
        tied = "format alone" if end["accuracy"] < 0.9 else "learns"
        return too_far(end) or tied

    yield "hides sums that got worse", answer

    def answer(start, end):
        if end["accuracy"] < 0.1:
            return "too hard"
        return fall(start, end) if end["format"] < 1 else "learns"

    yield "what is new here", answer

    def answer(start, end):
        if end["tied_groups"] > 0.8 and end["accuracy"] > 0.1:
            return too_far(end) or "format alone"
        return "too hard" if end["tied_groups"] > 0.8 else fall(start, end)

    yield "ask for an accuracy below 0.9", answer

    def answer(start, end):
        fell = end["lenient_accuracy"] < start["lenient_accuracy"]
        return nearly_all_tied(end) or ("rate too high" if fell else "learns")

    yield "Any fall counts", answer

    def answer(start, end):
        low = end["lenient_accuracy"] < 0.5
        return nearly_all_tied(end) or ("rate too high" if low else "learns")

    yield "where lenient accuracy ends", answer

    def answer(start, end):
        form_only = end["format"] > 0.9 and end["accuracy"] < 0.5
        return nearly_all_tied(end) or ("rate too high" if form_only else "learns")

    yield "what is new here", answer

    def answer(start, end):
        change = abs(start["lenient_accuracy"] - end["lenient_accuracy"])
        return nearly_all_tied(end) or ("rate too high" if change > 0.1 else "learns")

    yield "without abs()", answer

    def answer(start, end):
        share = end["lenient_accuracy"] / start["lenient_accuracy"]
        return nearly_all_tied(end) or ("rate too high" if share < 0.9 else "learns")

    yield "no share of the start", answer

    def answer(start, end):
        fell = end["accuracy"] < start["lenient_accuracy"] - 0.1
        return nearly_all_tied(end) or ("rate too high" if fell else "learns")

    yield "part of the form is missing", answer

    def answer(start, end):
        if end["accuracy"] < 0.1:
            return "too hard"
        return nearly_all_tied(end) or fall(start, end)

    yield "while groups differ", answer
    yield (
        "hardly any response right",
        lambda start, end: nearly_all_tied(end, hard=0.5) or fall(start, end),
    )
    yield (
        "tied groups is too low",
        lambda start, end: nearly_all_tied(end, bound=0.49) or fall(start, end),
    )
    yield (
        "tied groups is too high",
        lambda start, end: nearly_all_tied(end, bound=0.9) or fall(start, end),
    )

    def answer(start, end):
        tied = start["tied_groups"]
        return nearly_all_tied({**end, "tied_groups": tied}) or fall(start, end)

    yield "ties off the start", answer

    def answer(start, end):
        tied = max(start["tied_groups"], end["tied_groups"])
        return nearly_all_tied({**end, "tied_groups": tied}) or fall(start, end)

    yield "What a run became stands in `end`", answer

    def answer(start, end):
        said = nearly_all_tied(end) or fall(start, end)
        return "format alone" if said == "too hard" and end["format"] >= 0.95 else said

    yield "too hard in perfect form", answer

    def answer(start, end):
        said = fall(start, end)
        return said if said == "rate too high" else nearly_all_tied(end) or said

    yield "for the fall after them", answer

    def answer(start, end):
        fell = end["lenient_accuracy"] < start["lenient_accuracy"] - 0.1
        if end["tied_groups"] > 0.8 and end["accuracy"] < 0.9:
            return "too hard" if end["accuracy"] < 0.1 else "format alone"
        return "rate too high" if fell else "learns"

    yield "Ask the KL which it is", answer
    yield (
        "bound for the KL is too low",
        lambda start, end: (
            "rate too high"
            if end["kl"] > 0.5
            else nearly_all_tied(end) or fall(start, end)
        ),
    )

    def answer(start, end):
        tied, right = end["tied_groups"] > 0.8, end["accuracy"]
        if tied and right < 0.9:
            alone = "rate too high" if end["kl"] > 1 else "format alone"
            return "too hard" if right < 0.1 else alone
        change = end["lenient_accuracy"] - start["lenient_accuracy"]
        return "learns" if change >= -0.1 else "rate too high"

    yield "is right", answer
