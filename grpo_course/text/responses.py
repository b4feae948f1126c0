"""The form of a response, and the texts of completions."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

THINK, CLOSE_THINK = "<think>", "</think>"
ANSWER, CLOSE_ANSWER = "<answer>", "</answer>"
TAGS = (THINK, CLOSE_THINK, ANSWER, CLOSE_ANSWER)
PAD, START, EOS = "<|endoftext|>", "<|im_start|>", "<|im_end|>"
SPECIAL = (PAD, START, EOS)
LEAST_VOCABULARY = 256 + len(SPECIAL) + len(TAGS)  # of a tiny model: the bytes first

# The form of ChatML. `add_generation_prompt` opens the assistant's turn.
CHAT_TEMPLATE = (
    "{% for message in messages %}"
    "<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n"
    "{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)

Completion = str | list[dict]  # a text, or a chat: messages with role and content
# What stands before a question: a system prompt, or the messages of worked examples.
Opening = str | Sequence[dict] | None


Reward = Callable[..., Sequence[float]]  # called as TRL does: see TextTask
SHOWN = 120  # characters of a completion that an error shows


def in_template(thinking: str, answer: str) -> str:
    """A response in the full form."""
    return f"{THINK}{thinking}{CLOSE_THINK}{ANSWER}{answer}{CLOSE_ANSWER}"


def extract_answer(completion: str) -> str | None:
    """The text between the last <answer> and its </answer>; None if there is none.

    Whatever stands before the last </think> is thinking, and no answer.
    """
    behind_thinking = completion.rpartition(CLOSE_THINK)[2]
    before, _, _ = behind_thinking.rpartition(CLOSE_ANSWER)
    _, opened, inside = before.rpartition(ANSWER)
    return inside.partition(CLOSE_ANSWER)[0].strip() if opened else None


def chat_messages(question: str, opening: Opening = None) -> list[dict]:
    """The conversation so far, as a chat template wants it; a text is a system's."""
    if isinstance(opening, str):
        opening = [{"role": "system", "content": opening}] if opening else []
    return [*(opening or ()), {"role": "user", "content": question}]


def conversation_text(question: str, response: str, opening: Opening = None) -> str:
    """A conversation as a tiny tokenizer should learn it: words, roles and tags."""
    messages = chat_messages(question, opening)
    messages += [{"role": "assistant", "content": response}]
    return "".join(f"{m['role']}\n{m['content']}\n" for m in messages)


def completion_texts(completions: Sequence[Completion]) -> list[str]:
    """The texts of plain or chat completions; of a content in parts, those with text.

    Raises TypeError for one text in the place of a list, and for what is no completion.
    """
    if isinstance(completions, str):
        raise TypeError(
            f"completions={completions[:40]!r} is one text. Pass a list of them: "
            "[completion]."
        )

    def text_of(content: Any) -> str:
        if isinstance(content, list | tuple):  # messages, or their parts
            inside = (part.get("content") or part.get("text") for part in content)
            return "".join(map(text_of, inside))
        if not isinstance(content, str | None):
            raise TypeError(f"completion {content!r} is neither a text nor a chat.")
        return content or ""

    return [text_of(completion) for completion in completions]


def graded(
    rule: Callable[[str, Any], bool],
    completions: Sequence[Completion],
    answer: Sequence[Any],
) -> list[float]:
    """1.0 where `rule` holds of a completion's text and its right answer, else 0.0."""
    texts = completion_texts(completions)
    if isinstance(answer, str | Mapping) or len(texts) != len(answer):
        raise ValueError(
            f"answer must be a list with one right answer for each of the {len(texts)} "
            "completions. Repeat an answer for its whole group."
        )
    return [float(rule(t, right)) for t, right in zip(texts, answer, strict=True)]


def format_reward(completions: Sequence[Completion], **kwargs: object) -> list[float]:
    """0.2 for each of the four tags that stands exactly once, 0.2 for good order.

    Good order: the four tags once each, as in the template, with something inside
    both pairs and nothing but white space outside them.
    """
    rewards = []
    for text in completion_texts(completions):
        pieces = re.split(f"({'|'.join(TAGS)})", text)
        tags = pieces[1::2]
        points = sum(tags.count(tag) == 1 for tag in TAGS)
        if tags == [*TAGS]:
            before, thinking, between, answer, after = map(str.strip, pieces[::2])
            points += bool(thinking and answer) and not (before or between or after)
        rewards.append(points / 5)
    return rewards
