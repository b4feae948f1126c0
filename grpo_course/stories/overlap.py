"""What two sets of stories share: the check behind the word "unseen"."""

from collections.abc import Iterable, Sequence

from grpo_course.stories.problems import Story


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
