"""The form of a response, and of the conversation that it is part of.

A response thinks between <think> and </think>, and answers between <answer> and
</answer>. A chat template turns messages into the one text that a model reads.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

THINK, CLOSE_THINK = "<think>", "</think>"
ANSWER, CLOSE_ANSWER = "<answer>", "</answer>"
TAGS = (THINK, CLOSE_THINK, ANSWER, CLOSE_ANSWER)

# The form of ChatML. `add_generation_prompt` opens the assistant's turn.
CHAT_TEMPLATE = (
    "{% for message in messages %}"
    "<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n"
    "{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)

Completion = str | list[dict]


def chat_messages(question: str, system_prompt: str | None = None) -> list[dict]:
    """The conversation so far, as a chat template wants it. None: no system prompt."""
    system = [{"role": "system", "content": system_prompt}] if system_prompt else []
    return [*system, {"role": "user", "content": question}]


def conversation_text(
    question: str, response: str, system_prompt: str | None = None
) -> str:
    """A whole conversation as a tiny tokenizer should learn it: words, roles and tags.

    A tokenizer that never saw the roles spends a token on each of their letters.
    """
    messages = chat_messages(question, system_prompt)
    messages += [{"role": "assistant", "content": response}]
    return "".join(f"{m['role']}\n{m['content']}\n" for m in messages)


def in_template(thinking: str, answer: str) -> str:
    """A response in the full form."""
    return f"{THINK}{thinking}{CLOSE_THINK}{ANSWER}{answer}{CLOSE_ANSWER}"


def extract_answer(completion: str) -> str | None:
    """The text between the last <answer> and its </answer>; None if there is none.

    Whatever stands before the last </think> is thinking, and no answer.
    """
    said = completion.rpartition(CLOSE_THINK)[2]
    before, _, _ = said.rpartition(CLOSE_ANSWER)
    _, opened, inside = before.rpartition(ANSWER)
    return inside.partition(CLOSE_ANSWER)[0].strip() if opened else None


def completion_texts(completions: Sequence[Completion]) -> list[str]:
    """The texts of plain or chat completions.

    Raises TypeError for one text in the place of a list, and for what is neither a text
    nor a list of messages.
    """
    if isinstance(completions, str):
        raise TypeError(
            f"completions={completions[:40]!r} is one text. Pass a list of them: "
            "[completion]."
        )
    return [completion_text(completion) for completion in completions]


def completion_text(completion: Completion) -> str:
    """The text of one completion; of a list of parts, those that hold text."""
    if isinstance(completion, str):
        return completion
    if isinstance(completion, list | tuple) and all(
        isinstance(message, dict) for message in completion
    ):
        contents = [message.get("content") for message in completion]
        return "".join(map(content_text, contents))
    raise TypeError(
        f"A completion is a {type(completion).__name__}. Pass a string, or a list of "
        'messages like {"role": "assistant", "content": "..."}.'
    )


def content_text(content: object) -> str:
    """A message's content: a text, nothing, or parts {"type": "text", "text": ...}."""
    if isinstance(content, list | tuple):
        return "".join(str(part.get("text") or "") for part in content)
    return str(content or "")


def graded(
    rule: Callable[[str, Any], bool],
    completions: Sequence[Completion],
    answer: Sequence[Any],
) -> list[float]:
    """1.0 where `rule` holds of a completion's text and its own right answer, else 0.0.

    Raises ValueError where there is not one answer for each completion.
    """
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
    return [_format_points(text) / 5 for text in completion_texts(completions)]


def _format_points(text: str) -> int:
    """0 to 5: one for each tag that stands exactly once, one for good order."""
    points = sum(text.count(tag) == 1 for tag in TAGS)
    return points + (points == len(TAGS) and _in_order(text))


def _in_order(text: str) -> bool:
    """Whether the tags, once each, cut the text as the template does."""
    parts = []
    for tag in TAGS:
        part, found, text = text.partition(tag)
        if not found:
            return False
        parts.append(part.strip())
    before, thinking, between, given = parts
    return bool(thinking and given) and not (before or between or text.strip())
