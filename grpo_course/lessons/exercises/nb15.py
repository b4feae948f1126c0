"""The exercise of 15_own_task."""

from grpo_course.classroom.check import case, exercise
from grpo_course.lessons.exercises.nb12 import yes_or_no
from grpo_course.text.responses import extract_answer, in_template


def anywhere(text, word):
    return word in text


@exercise("15.1", use=yes_or_no, exact=True, draft=anywhere)
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
    text_case("a longer word", in_template("c b a", "cbaa"), LONGER),
    text_case("a longer word that ends so", in_template("c b a", "acba"), LONGER),
    text_case("a part of the word", in_template("c b a", "cb"), PART),
    text_case("no tags", "cba", TAGGED),
    text_case("nothing", ""),
    text_case("another word", in_template("z d w", "zdw"), TAGGED, word="zdw"),
)
is_right.mistakes = f"""
extract_answer(text) == word => word in (extract_answer(text) or "") | {LIST}
extract_answer(text) == word => f"<answer>{{word}}</answer>" in text | {PAIRS}
extract_answer(text) == word => (extract_answer(text) or "?") in word | {PART}
extract_answer(text) == word => text == word | {TAGGED}
extract_answer(text) == word => text.endswith(word) | {TAGGED}
"""
