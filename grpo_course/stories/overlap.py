"""What two sets of stories share: the check behind the word "unseen"."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache

from grpo_course.stories.frames import all_frames, held_out_frames, words_of
from grpo_course.stories.problems import Story, make_stories

# So many stories have names, things and places more often than any invented word.
TOLD, INVENTED = 4000, 2


def shared(known: Iterable[Story], asked: Sequence[Story]) -> dict[str, float]:
    """The share of `asked` that has something in common with one of `known`.

    text: the question. numbers: all numbers, in the order of the steps; reordered: in
    any order. frame: at least one sentence's frame. fact: at least one step; single
    steps recur by design.
    """
    known = list(known)
    seen: dict[str, set] = {name: set() for name in parts_of(asked[0])}
    for story in known:
        for name, parts in parts_of(story).items():
            seen[name].update(parts)
    return {
        name: sum(bool(parts & parts_of(story)[name]) for story in asked) / len(asked)
        for name, parts in seen.items()
    }


def parts_of(story: Story) -> dict[str, set]:
    """What another story could share with this one."""
    return {
        "text": {story.question},
        "numbers": {story.operands},
        "reordered": {tuple(sorted(story.operands))},
        "frame": set(story.frames),
        "fact": set(story.facts),
    }


@cache
def known_words() -> set[str]:
    """The words and numbers of the training stories, but for invented ones.

    A thing that a story invents comes in that story alone. The rarest frames are in
    none of those told here, but training had them all.
    """
    told = make_stories("train", TOLD, "words")
    stories = Counter(word for story in told for word in words_in(story.question))
    often = {word for word, count in stories.items() if count > INVENTED}
    return often.union(*map(words_of, all_frames() - held_out_frames()))


def unknown_words(question: str) -> list[str]:
    """The words and numbers of a question that no training story has, in order."""
    return [word for word in words_in(question) if word not in known_words()]


def words_in(text: str) -> list[str]:
    """Each word and number of a text once, in small letters."""
    return list(dict.fromkeys(re.findall(r"[a-z]+|\d+(?:[.,]\d+)*", text.lower())))
