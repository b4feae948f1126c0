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
        except (ValueError, RecursionError):  # no JSON, or nested too deep
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
UNHASHABLE = (
    "A value may be a list or an object, which no set can hold, and one such "
    "completion ends the whole run. Compare key by key, with given.get(key)."
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
    _said("no JSON", "Mia is 7.", "", "{", json.dumps(MIA), hint=NO_JSON),
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
    _said(
        "a list for a value",
        '{"name": [], "age": 7, "city": {"Rome": 1}}',
        hint=UNHASHABLE,
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
except (ValueError, RecursionError): => except KeyError: | json.loads raises \
ValueError where a text is no JSON, and one such completion ends the whole run. Catch \
it, and pay 0.
except (ValueError, RecursionError): => except KeyError: && isinstance(given, dict) \
=> given is not None | json.loads raises ValueError where a text is no JSON, and one \
such completion ends the whole run: catch it. JSON may be a number or a list as well: \
ask isinstance(given, dict). Pay 0 for both.
given = None => return [0.0] * len(answer) | One text that is no JSON takes the others' \
pay along. Pay 0 for it alone, and go on with the next.
isinstance(given, dict) => given is not None | JSON may be a number, a text or a list \
as well. Look with isinstance(given, dict) before you ask it for keys, and pay 0 for \
the rest.
isinstance(given, dict) => given is not None and [*given] is not None | JSON may be a \
number, a text or a list as well. Look with isinstance(given, dict) before you ask it \
for keys, and pay 0 for the rest.
isinstance(given, dict) => given is not None and ("" in given) is not None | JSON may \
be a number, a text or a list as well. Look with isinstance(given, dict) before you \
ask it for keys, and pay 0 for the rest.
sum(given.get(key) == value for key, value in gold.items()) => \
len({*given.items()} & {*gold.items()}) | A value may be a list or an object, which no \
set can hold, and one such completion ends the whole run. Compare key by key, with \
given.get(key).
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
