"""How many characters a search looks at: counted, since a time differs each run."""

from collections.abc import Callable


class CountedText(str):
    """A text that adds up what its searches look at; its pieces add to the same sum."""

    seen: list[int]  # one for each search

    def piece(self, text: str) -> "CountedText":
        """A part of this text, with the same sum."""
        found = CountedText(text)
        found.seen = self.seen
        return found

    def cut(self, parts: tuple[str, str, str], looked_at: str):
        """The three parts, with the characters that were looked at counted."""
        self.seen.append(len(looked_at))
        before, tag, after = parts
        return self.piece(before), self.piece(tag), self.piece(after)

    def partition(self, tag: str):
        """From the front to the first tag, or through the whole text."""
        before, found, after = super().partition(tag)
        return self.cut((before, found, after), before + found)

    def rpartition(self, tag: str):
        """From the back to the last tag, or through the whole text."""
        before, found, after = super().rpartition(tag)
        return self.cut((before, found, after), found + after)


def looks_of(function: Callable, text: str) -> int:
    """How many characters a function looks at that cuts with `(r)partition`."""
    counted = CountedText(text)
    counted.seen = []
    function(counted)
    return sum(counted.seen)
