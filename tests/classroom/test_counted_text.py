"""Characters that a search looks at, held against texts that one counts by eye."""

import pytest

from grpo_course.classroom.counted_text import looks_of
from grpo_course.tasks import extract_answer


@pytest.mark.parametrize(
    ("text", "looks"),
    [
        ("aabaa", {"front": 3, "back": 3}),
        ("baaaa", {"front": 1, "back": 5}),
        ("aaaaa", {"front": 5, "back": 5}),
        ("", {"front": 0, "back": 0}),
    ],
)
def test_a_search_looks_as_far_as_the_tag_or_through_all(text, looks):
    assert looks_of(lambda t: t.partition("b"), text) == looks["front"]
    assert looks_of(lambda t: t.rpartition("b"), text) == looks["back"]


def test_pieces_add_to_the_sum_of_the_whole():
    # Four characters up to the b, then the piece "aaa" as a whole.
    assert looks_of(lambda t: t.partition("b")[0].rpartition("c"), "aaab") == 7


def test_the_answer_is_found_as_in_a_plain_text():
    found = []
    text = "<think>3</think><answer> 7</answer>"
    looks_of(lambda t: found.append(extract_answer(t)), text)
    assert found == [extract_answer(text)] == ["7"]


@pytest.mark.parametrize("tags", [1, 10, 500])
def test_opening_tags_alone_are_looked_through_twice(tags):
    text = "<answer>" * tags
    assert looks_of(extract_answer, text) == 2 * len(text)
