"""The exercises of 15_own_task."""

import json
from collections.abc import Callable
from inspect import signature

from torch import Tensor, float32, tensor

from grpo_course.classroom.check import Case, case, exercise
from grpo_course.text.responses import completion_texts
from grpo_course.text.tasks import require_numbers


def paid_by(
    function: Callable, completions: list, answer: list, prompts: list | None = None
) -> list | None:
    """The reward of each completion; None where nothing is returned."""
    if prompts is None:
        rewards = function(completions, answer)
    else:
        given = {"completions": completions, "answer": answer, "prompts": prompts}
        rewards = by_name(function, given | {"trainer_state": None})
    if rewards is not None:
        require_numbers(function.__name__, rewards, len(completions))
    return rewards


def earn(function: Callable, *given: list) -> Tensor | None:
    """The rewards of some completions, as one tensor. [completion]"""
    rewards = paid_by(function, *given)
    return None if rewards is None else tensor(rewards, dtype=float32)


def by_name(function: Callable, columns: dict) -> object:
    """Call a reward with columns that it does not use. TypeError says what to keep."""
    try:
        signature(function).bind(**columns)
    except TypeError as error:
        raise TypeError(
            f"{error}. TRL calls it by name, with all columns of the data: keep "
            "(completions, answer, **kwargs)."
        ) from None
    return function(**columns)


def _chat(text: str | None) -> list[dict]:
    return [{"role": "assistant", "content": text}]


CHAT = (
    "A completion may be a chat, a list of messages. completion_texts makes plain "
    "texts of both kinds."
)


@exercise("15.1", use=earn)
def json_reward(completions, answer, **kwargs):
    """lists in, a list of floats out"""
    rewards = []
    for text, gold in zip(completion_texts(completions), answer):
        try:
            given = json.loads(text)
        except ValueError:
            given = None
        if isinstance(given, dict):
            right = sum(given.get(key) == value for key, value in gold.items())
            rewards.append(right / len(given.keys() | gold.keys()))
        else:
            rewards.append(0.0)
    return rewards


MIA = {"name": "Mia", "age": 7, "city": "Rome"}


def _said(description: str, *texts: object, hint: str = "", gold: dict = MIA) -> Case:
    """Some completions for one right answer."""
    return Case(
        description, {"completions": [*texts], "answer": [gold] * len(texts)}, hint
    )


NO_JSON = (
    "json.loads raises ValueError where a text is no JSON, and one such completion "
    "ends the whole run. Catch it, and pay 0."
)
NO_OBJECT = (
    "JSON may be a number, a text or a list as well. Look with isinstance(given, dict) "
    "before you ask it for keys, and pay 0 for the rest."
)
EXTRA = (
    "A key that is not asked for must cost: else a policy writes every key that it "
    "knows. Divide by the number of keys in either, given.keys() | gold.keys()."
)
RUN_IT = (
    "This is Python and no JSON, and eval would run whatever a policy writes. Only "
    "json.loads reads it as data: pay 0 here."
)
MISSING = (
    "A key that is missing is wrong, too: 2/3 here. Divide by the number of keys in "
    "either, given.keys() | gold.keys(), and read them with given.get(key)."
)


json_reward.insight = (
    "Credit for a part tells better responses from worse ones long before one is all "
    "right, so that groups are not tied."
)
json_reward.cases = (
    _said(
        "all right, and nothing said",
        json.dumps(MIA),
        "{}",
        hint="The first has all keys and values right: 1. The second is an empty "
        "object: 0.",
    ),
    _said(
        "the right keys, no right value",
        '{"name": "Tom", "age": 8, "city": "Oslo"}',
        hint="Keys alone are no answer: a policy would write them and guess. Count "
        "the keys whose value is right, too.",
    ),
    _said(
        "two of three values right",
        '{"name": "Mia", "age": 7, "city": "Oslo"}',
        '{"city": "Rome", "name": "Tom", "age": 7}',
        hint="Two of three values are right: 2/3. Where they stand does not count.",
    ),
    _said("a key is missing", '{"name": "Mia", "age": 7}', hint=MISSING),
    _said(
        "a key too many",
        '{"name": "Mia", "age": 7, "city": "Rome", "size": 9}',
        '{"name": "Mia", "a": 1, "b": 2, "c": 3}',
        hint=EXTRA,
    ),
    _said(
        "the values under other keys",
        '{"name": "Rome", "age": 7, "city": "Mia"}',
        hint="A value counts under its own key only: compare given.get(key) with "
        "gold[key].",
    ),
    _said("no JSON", "Mia is 7 and lives in Rome.", "", "{", hint=NO_JSON),
    _said("no object", "7", '"Mia"', '["Mia", 7, "Rome"]', "null", hint=NO_OBJECT),
    _said(
        "words around it",
        "Here it is: " + json.dumps(MIA),
        json.dumps(MIA) + " Right?",
        hint="Words stand around the JSON, and a program that reads it would "
        "break. The whole text must be JSON: pay 0.",
    ),
    _said(
        "a number in quotes",
        '{"name": "Mia", "age": "7", "city": "Rome"}',
        hint='The text "7" is not the number 7: compare the values as json.loads '
        "gives them, not as texts.",
    ),
    _said("Python, no JSON", str(MIA), "dict(name='Mia', age=7)", hint=RUN_IT),
    _said(
        "a null too many",
        '{"name": null, "x": null}',
        hint="A null becomes None, and None is what get gives for a key that is not "
        "there: count hits over the keys of the right answer, gold.items().",
    ),
    Case(
        "each completion has its own right answer",
        {
            "completions": ['{"a": 1}', '{"a": 2, "b": 3}', '{"a": 1}'],
            "answer": [{"a": 1}, {"a": 2, "b": 4}, {"a": 2}],
        },
        "Each completion has a right answer of its own, at the same place of "
        "`answer`: zip the two lists.",
    ),
    _said("a chat", _chat(json.dumps(MIA)), _chat(None), hint=CHAT),
    Case(
        "called as TRL calls it",
        {"completions": ['{"a": 1}'], "answer": [{"a": 1}], "prompts": ["?"]},
    ),
)
json_reward.mistakes = """
completion_texts(completions) => completions | A completion may be a chat, a list of \
messages. completion_texts makes plain texts of both kinds.
except ValueError: => except KeyError: | json.loads raises ValueError where a text is \
no JSON, and one such completion ends the whole run. Catch it, and pay 0.
except ValueError: => except KeyError: && isinstance(given, dict) => given is not \
None | json.loads raises ValueError where a text is no JSON, and one such completion \
ends the whole run: catch it. JSON may be a number or a list as well: ask \
isinstance(given, dict). Pay 0 for both.
isinstance(given, dict) => given is not None | JSON may be a number, a text or a list \
as well. Look with isinstance(given, dict) before you ask it for keys, and pay 0 for \
the rest.
given.get(key) == value => given[key] == value | given[key] is an error where the \
response lacks the key, and one such completion ends the whole run: given.get(key) is \
None there.
len(given.keys() | gold.keys()) => max(1, len(given)) | A key that is missing is \
wrong, too: 2/3 here. Divide by the number of keys in either, {*given, *gold}, and \
read them with given.get(key).
len(given.keys() | gold.keys()) => len(gold) | A key that is not asked for must cost: \
else a policy writes every key that it knows. Divide by the number of keys in either, \
{*given, *gold}.
right / len(given.keys() | gold.keys()) => float(given == gold) | All or nothing: two \
right values of three earn as little as none. Pay for each key whose value is right.
given.get(key) == value for key, value in gold.items() => key in given for key in \
gold | Keys alone are no answer: a policy would write them and guess. Count the keys \
whose value is right, too.
"""


def one_of_four(function: Callable, start: dict, end: dict) -> str:
    """What a rule says of a run; it must be one of the four names."""
    said = function(start, end)
    if said not in FOUR:
        branch = " Is there a branch without a `return`?" if said is None else ""
        raise ValueError(f"{said!r} is none of {', '.join(FOUR)}.{branch}")
    return said


FOUR = ("too hard", "format alone", "rate too high", "learns")


@exercise("15.2", use=one_of_four)
def diagnose(start, end):
    """two readings of the panel -> str"""
    if end["kl"] > 1:
        return "rate too high"
    if end["tied_groups"] > 0.8 and end["accuracy"] < 0.1:
        return "too hard"
    if end["tied_groups"] > 0.8 and end["accuracy"] < 0.9:
        return "format alone"
    if end["lenient_accuracy"] < start["lenient_accuracy"] - 0.1:
        return "rate too high"
    return "learns"


def _verdict(start, end):
    return diagnose(start, end)


# What a reading shows, for a rule that does as no known mistake does.
FAR = (
    "The KL is above 1: this policy was thrown far from its start, and whatever else "
    "is wrong follows from that. Ask for the KL first."
)
HARD = (
    "Nearly all groups are tied, and the accuracy is below 0.1: nothing is paid, so "
    "there is nothing to learn from."
)
ALONE = (
    "Nearly all groups are tied, though the accuracy lies between 0.1 and 0.9: a reward "
    "that saw the answers would tell responses apart. The format does not decide it."
)
FELL = (
    "Groups still differ, and yet lenient accuracy fell by more than 0.1: the steps "
    "are too large."
)
LEARNED = (
    "Nothing is wrong here: the KL is not above 1, lenient accuracy fell by no more "
    "than 0.1, and either groups differ or nine responses in ten are right."
)
SHOWN = {"too hard": HARD, "format alone": ALONE, "learns": LEARNED}


def _reading(*values):
    names = ("accuracy", "lenient_accuracy", "format", "tied_groups", "kl")
    return dict(zip(names, values))


# Made up, in the ranges that the runs of the notebook show.
START, LOW, HIGH = (0.3, 0.6, 0.5, 0.1), (0.2, 0.3, 0.5, 0.1), (0.5, 0.95, 0.5, 0.1)
NOTHING = (0.01, 0.03, 0.5, 0.95)


def _run(description, end, start=START, hint="", kl=0.3):
    """Two readings; `kl` is that of the end, for a run begins at its reference."""
    begun, ended = _reading(*start, 0.0), _reading(*end, kl)
    shown = SHOWN.get(_verdict(begun, ended), FAR if kl > 1 else FELL)
    return case(description, hint or shown, start=begun, end=ended)


diagnose.insight = (
    "Reward, format and strict accuracy rise in good runs and in bad ones. Tied "
    "groups, lenient accuracy and KL tell them apart."
)
# Each bound has a case close to either side of it. The last four are the notebook's.
diagnose.cases = (
    _run("accuracy up", (0.8, 0.8, 0.99, 0.3)),
    _run("all tied, all right by now", (0.97, 0.97, 1.0, 0.95)),
    _run("all tied, nine in ten right", (0.91, 0.91, 1.0, 0.85)),
    _run("all tied, nothing ever right", (0.01, 0.02, 0.6, 0.95), NOTHING),
    _run(
        "all tied, nothing right but the form",
        (0.0, 0.02, 1.0, 0.95),
        NOTHING,
        "Answers can be too hard to find in perfect form too. With hardly any response "
        "right, do not ask for the format.",
    ),
    _run("all tied, hardly any right", (0.09, 0.1, 0.7, 0.81), NOTHING),
    _run("all tied, half of them right", (0.5, 0.5, 1.0, 0.85)),
    _run("all tied, half of them right, half in form", (0.5, 0.6, 0.5, 0.9)),
    _run("all tied, a third right", (0.3, 0.5, 1.0, 0.9)),
    _run("all tied, one in nine right", (0.11, 0.55, 1.0, 0.81)),
    _run("all tied, most of them right", (0.89, 0.89, 1.0, 0.85)),
    _run("all tied, answers got worse", (0.3, 0.4, 1.0, 0.9)),
    _run("many tied, not nearly all", (0.5, 0.6, 0.9, 0.79)),
    _run("many tied, hardly any right", (0.05, 0.56, 0.9, 0.79)),
    _run(
        "all tied at the start only",
        (0.5, 0.6, 0.9, 0.3),
        (0.3, 0.6, 0.5, 0.9),
        "These groups were tied at the start and are not any more. What a run became "
        'stands in `end`: ask for end["tied_groups"] alone.',
    ),
    _run("tied at the start, hardly any right yet", (0.08, 0.1, 0.7, 0.5), NOTHING),
    _run("few tied at the start, too hard at the end", (0.05, 0.55, 0.9, 0.9)),
    _run("answers got worse", (0.35, 0.36, 0.99, 0.3)),
    _run("answers got worse, half in form", (0.3, 0.4, 0.5, 0.3)),
    _run("answers a little worse", (0.51, 0.51, 0.99, 0.3)),
    _run(
        "answers a little worse, form not there yet",
        (0.4, 0.58, 0.7, 0.3),
        hint="Strict accuracy is low here since part of the form is missing. Compare "
        "lenient accuracy at the end with lenient accuracy at the start.",
    ),
    _run("answers got worse, few right, few tied", (0.05, 0.06, 0.9, 0.3)),
    _run("low from the start, then better", (0.45, 0.45, 0.99, 0.3), LOW),
    _run(
        "low from the start, a little worse",
        (0.23, 0.23, 0.99, 0.3),
        LOW,
        "Lenient accuracy fell by less than 0.1 here. A fall is a difference, start "
        "minus end, of more than 0.1, and no share of the start.",
    ),
    _run("all tied, far away", (0.17, 0.17, 1.0, 0.93), kl=2.0),
    _run("all tied, far away, half of them right", (0.5, 0.55, 1.0, 0.9), kl=1.05),
    _run("all tied, half of them right, not that far", (0.5, 0.5, 1, 0.9), kl=0.95),
    _run("all tied, far away, hardly any right", (0.05, 0.06, 0.9, 0.9), kl=1.5),
    _run("far away, and more right than ever", (0.8, 0.8, 0.99, 0.3), kl=1.3),
    _run("all tied, far away, all right", (0.96, 0.96, 1.0, 0.9), kl=1.3),
    _run("answers got worse, far away", (0.3, 0.3, 1.0, 0.5), kl=1.6),
    _run("all tied, far away, half in form", (0.5, 0.6, 0.5, 0.9), kl=1.4),
    _run("good at the start, then far less", (0.6, 0.6, 0.99, 0.3), HIGH),
    _run("good at the start, then clearly less", (0.84, 0.84, 0.99, 0.3), HIGH),
    *(
        _run(f"the notebook's run: {name}", end, (0.32, 0.32, 0.98, 0.28), kl=kl)
        for name, end, kl in (
            ("GRPO", (0.60, 0.60, 0.99, 0.21), 0.06),
            ("rate too high", (0.0, 0.0, 0.52, 1.0), 2.66),
            ("format alone", (0.15, 0.18, 0.99, 0.84), 0.14),
            ("too hard", (0.0, 0.0, 0.95, 1.0), 0.0),
        )
    ),
)
diagnose.mistakes = """
end["kl"] > 1 => end["kl"] > 1 and not (end["tied_groups"] > 0.8 and end["accuracy"] \
< 0.1) | You ask for `too hard` before the KL. A rate that is too high may destroy \
the policy: then nothing is right and all is tied as well, but far from its start. \
Ask for the KL first.
end["kl"] > 1 => end["kl"] > 1 and end["tied_groups"] > 0.8 | You ask for the KL only \
where groups are tied. A policy that is far from its start is in danger whatever else \
looks good: ask for the KL first, and alone.
end["kl"] > 1 => False | A rate that is too high may end in one answer to everything, \
and then groups are tied as under the form alone. Ask the KL which it is: only such a \
rate took the policy that far.
and end["accuracy"] < 0.1 => | Groups are tied where all responses are wrong, where \
all are right, and where the reward does not look at them. Ask the accuracy which it is.
end["tied_groups"] > 0.8 and end["accuracy"] < 0.1 => end["accuracy"] < 0.1 | Few \
right answers alone are not `too hard`: while groups differ, the policy can learn. \
Ask for tied groups as well.
and end["accuracy"] < 0.9 => | You call a run that learns broken. Where all is right, \
groups are tied too, and that is no fault: ask for an accuracy below 0.9.
and end["accuracy"] < 0.9 => and end["accuracy"] < 0.9 and end["format"] > 0.9 | You \
ask for the format as well, and it decides nothing: where nearly all groups are tied \
although part of the responses is right, the reward does not see the answers.
end["lenient_accuracy"] < start["lenient_accuracy"] - 0.1 => False | A rising format \
hides answers that got worse: lenient accuracy fell by more than 0.1 in some of these \
runs.
return _verdict(end, start) | You exchanged the two readings: `end` is what the run \
has become.
"""
