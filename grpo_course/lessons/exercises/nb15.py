"""The exercises of 15_own_task."""

from grpo_course.classroom.check import case, exercise
from grpo_course.lessons.exercises.nb12 import yes_or_no
from grpo_course.text.responses import extract_answer, in_template


def in_tags(text, word):
    return f"<answer>{word}</answer>" in text


@exercise("15.1", use=yes_or_no, exact=True, draft=in_tags)
def is_right(text, word):
    """str, str -> bool"""
    return extract_answer(text) == word


TAGGED = "The word counts between <answer> and </answer>: extract_answer finds it."
OTHER = "Another word stands between the tags: compare it with the right one."
LIST = "Many words stand between the tags. Compare the whole answer by `==`."
PAIRS = (
    "This text tries many answers, each in tags of its own. One answer counts, the "
    "last: extract_answer finds it."
)
LONGER = "There is more between the tags than the word. Compare by `==`."
PART = "A part of the word is not the word. Compare by `==`."


def text_case(description, text, hint="", word="cba"):
    return case(description, hint, text=text, word=word)


is_right.insight = "It grades one answer, and all of it."
is_right.cases = (
    text_case("the right response", in_template("c b a", "cba"), TAGGED),
    text_case("another answer", in_template("c b a", "abc"), OTHER),
    text_case("many words in one pair of tags", in_template("?", "abc cba acb"), LIST),
    text_case(
        "many pairs of tags",
        "<answer>cba</answer><answer>abc</answer><answer>acb</answer>",
        PAIRS,
    ),
    text_case(
        "many pairs of tags, the last right",
        "<answer>abc</answer><answer>cba</answer>",
        "The last answer is right. Pairs before it do not count.",
    ),
    text_case("a longer word", in_template("c b a", "cbaa"), LONGER),
    text_case("a longer word that ends so", in_template("c b a", "acba"), LONGER),
    text_case("a part of the word", in_template("c b a", "cb"), PART),
    text_case("no tags", "cba", TAGGED),
    text_case("nothing", ""),
    text_case("another word", in_template("z d w", "zdw"), TAGGED, word="zdw"),
)
is_right.mistakes = f"""
extract_answer(text) == word => word in (extract_answer(text) or "") | {LIST}
extract_answer(text) == word => text.find(f"<answer>{{word}}</answer>") >= 0 | {PAIRS}
extract_answer(text) == word => word in text | {TAGGED}
extract_answer(text) == word => (extract_answer(text) or "?") in word | {PART}
extract_answer(text) == word => text == word | {TAGGED}
extract_answer(text) == word => text.endswith(word) | {TAGGED}
"""


# 15.2, credit for letters


def level(function, text, word):
    """How much is earned, in words. A missing `return` stays None."""
    earned, given = function(text, word), extract_answer(text) or ""
    if earned is None:
        return None
    if len(given) > len(word):  # how much, is left open
        return "not all" if earned < 1 else "all"
    return "nothing" if earned <= 0 else "a part" if earned < 1 else f"{earned:g}"


def of_those_given(text, word):
    given = extract_answer(text) or ""
    same = sum(a == b for a, b in zip(given, word))
    return same / max(len(given), 1)


@exercise("15.2", use=level, exact=True, draft=of_those_given)
def credit(text, word):
    """str, str -> float"""
    given = extract_answer(text) or ""
    same = sum(a == b for a, b in zip(given, word))
    return same / max(len(given), len(word))


SHORT = "The first letters of the word earn all: a letter that is missing has to cost."
LONG = "The word with more behind it earns all: a letter too many has to cost."
NONE = "Letters that are right and in their places still earn a part."
ALL = "The word itself earns 1."
NOTHING = "No letter is in its place here: that earns 0."

credit.insight = "A missing letter costs, and so does one too many."
credit.cases = (
    text_case("the word", in_template("c b a", "cba"), ALL),
    text_case("its first letter alone", in_template("c", "c"), SHORT),
    text_case("its first two letters", in_template("c b", "cb"), SHORT),
    text_case("the word and more", in_template("c b a", "cbaz"), LONG),
    text_case("a wrong last letter", in_template("c b z", "cbz"), NONE),
    text_case("no letter in its place", in_template("a c b", "acb"), NOTHING),
    text_case("no tags", "cba", TAGGED),
    text_case("a longer word", in_template("d c b a", "dcba"), ALL, word="dcba"),
)
credit.mistakes = f"""
max(len(given), len(word)) => len(word) | {LONG}
max(len(given), len(word)) => max(min(len(given), len(word)), 1) | {SHORT}
same / max(len(given), len(word)) => float(given == word) | {NONE}
same / max(len(given), len(word)) => float(same) | {ALL}
max(len(given), len(word)) => max(len(text), len(word)) | {ALL}
"""
