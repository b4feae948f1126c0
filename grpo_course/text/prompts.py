"""Prompts and responses as tokens, and back."""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from grpo_course.loop import Rollout
from grpo_course.sampling import pad_rows, response_mask, up_to_last
from grpo_course.text.responses import TAGS, Opening, chat_messages
from grpo_course.text.tasks import TextTask

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

# For a base model that knows no roles: the messages, one below the other.
PLAIN_TEMPLATE = "{% for m in messages %}{{ m['content'] }}\n\n{% endfor %}"
# How tokens become the text that was written, to the letter.
AS_WRITTEN = {"skip_special_tokens": False, "clean_up_tokenization_spaces": False}
DAY = "26 Jul 2024"  # that of Llama's template where nobody tells it one


def plain_template(tokenizer: "PreTrainedTokenizerBase") -> str:
    """`PLAIN_TEMPLATE` behind a BOS, where the tokenizer begins each text with it.

    No other template gets that: those that want it write it themselves.
    """
    first, bos = tokenizer("a")["input_ids"][0], tokenizer.bos_token
    begins = bos is not None and first == tokenizer.bos_token_id
    return (str(bos) if begins else "") + PLAIN_TEMPLATE


def rendered(
    tokenizer: "PreTrainedTokenizerBase", messages: list[dict], **how: Any
) -> str:
    """A conversation as the chat template writes it, or the plain one for want of it.

    Llama's templates tell DAY whatever day it is: the prompts of a run that is resumed
    tomorrow are those of today.
    """
    template = None if tokenizer.chat_template else plain_template(tokenizer)
    how |= {"tokenize": False, "chat_template": template, "date_string": DAY}
    return str(tokenizer.apply_chat_template(messages, **how))


def prompt_text(
    tokenizer: "PreTrainedTokenizerBase", question: str, opening: Opening
) -> str:
    """The one text that the model reads: the conversation, and whose turn it is.

    A template that refuses the role "system", or leaves out what it says, gets that
    before the question.
    Raises ValueError for a template with which the model would not read the question.
    """
    whole = chat_messages(question, opening)
    contents = [message["content"] for message in whole]
    ways = [whole]
    if whole[0]["role"] == "system":
        second = whole[1] | {"content": f"{contents[0]}\n\n{contents[1]}"}
        ways.append([second, *whole[2:]])
    why = "it leaves the question out"
    for messages in ways:
        try:
            text = rendered(tokenizer, messages, add_generation_prompt=True)
        except Exception as error:  # a template raises what it likes
            why = f"{type(error).__name__}: {error}"
            continue
        if all(each.strip() in text for each in contents):
            return text
    raise ValueError(
        f"The chat template of {tokenizer.name_or_path or 'the tokenizer'} cannot ask "
        f"{question[:40]!r} ({why}). Give the tokenizer another chat_template and save "
        "it, or choose another model."
    )


def opened_tags(tokenizer: "PreTrainedTokenizerBase") -> str:
    """The tags in which a prompt ends, "<think>\\n" say; "" for most templates."""
    run = re.compile(rf"((?:{'|'.join(TAGS)})\s*)+$")
    found = run.search(prompt_text(tokenizer, "?", None))
    return found[0] if found else ""


def behind(begun: str, response: str) -> str:
    """A response with the tags that its prompt opened, unless it opens them itself."""
    tag = begun[: begun.find(">") + 1]
    return response if response.lstrip().startswith(tag) else begun + response


def turn_end(tokenizer: "PreTrainedTokenizerBase") -> int:
    """The token that the chat template writes behind an answer; EOS where it has none.

    In Gemma, Phi, and base models with the form of ChatML, it is not EOS.
    """
    answer = "An answer."
    asked = [*chat_messages("?"), {"role": "assistant", "content": answer}]
    after = rendered(tokenizer, asked).rpartition(answer)[2].lstrip()
    names = {*tokenizer.get_added_vocab(), *tokenizer.all_special_tokens} - {*TAGS}
    ends = [name for name in names if after.startswith(name)]
    end = max(ends, key=len, default=tokenizer.eos_token)
    token = tokenizer.convert_tokens_to_ids(end)
    assert isinstance(token, int)  # of one text, not of several
    return token


def encode_prompts(
    tokenizer: "PreTrainedTokenizerBase",
    questions: Sequence[str],
    opening: Opening = None,
) -> Tensor:
    """The prompts of some questions, padded on the left. -> int [batch pos]

    The template has written every special token already, so the tokenizer adds none.
    """
    texts = [prompt_text(tokenizer, q, opening) for q in questions]
    rows = tokenizer(texts, add_special_tokens=False)["input_ids"]
    return pad_rows(rows, tokenizer.pad_token_id)


def as_rollout(
    tokenizer: "PreTrainedTokenizerBase",
    questions: Sequence[str],
    responses: Sequence[str],
    opening: Opening = None,
) -> Rollout:
    """Questions with one given response each, as if a policy had sampled them.

    Each response ends as the template ends a turn, [batch 1 pos], padded on the right.
    What the prompt has opened already is not written again.
    """
    prompts = encode_prompts(tokenizer, questions, opening)
    begun, end = opened_tags(tokenizer), turn_end(tokenizer)
    bare = [r.removeprefix(begun).removeprefix(begun.strip()) for r in responses]
    rows = tokenizer(bare, add_special_tokens=False)["input_ids"]
    rows = [[*row, end] for row in rows]
    tokens = pad_rows(rows, tokenizer.pad_token_id, side="right")[:, None]
    mask = response_mask(tokens, end)
    return Rollout(prompts, tokens, mask, finished=mask.any(dim=-1))


def reply_tokens(
    tokenizer: "PreTrainedTokenizerBase", task: TextTask, turn: list[int]
) -> list[int]:
    """What stands behind a turn of the policy's, up to its next turn; none, if none.

    The tool's answer as the template writes a message of the user's.
    """
    reply = task.reply(str(tokenizer.decode(turn[:-1], **AS_WRITTEN)))
    if reply is None:
        return []
    end = str(tokenizer.convert_ids_to_tokens(turn_end(tokenizer)))
    turn_text = "An answer."
    asked = [*chat_messages("?"), {"role": "assistant", "content": turn_text}]
    asked += chat_messages(reply)
    whole = rendered(tokenizer, asked, add_generation_prompt=True)
    behind = whole.partition(turn_text)[2]
    if behind.lstrip().startswith(end):  # which the policy has written
        behind = behind.lstrip().removeprefix(end)
    return list(tokenizer(behind, add_special_tokens=False)["input_ids"])


def decode_responses(
    tokenizer: "PreTrainedTokenizerBase", rollout: Rollout
) -> list[list[str]]:
    """The texts of the responses, without what stands after their end.

    One list for each prompt. Padding, ends and what the template writes are left out;
    other tokens stay, special or not: a tag may be one.
    """
    begun, end = opened_tags(tokenizer), turn_end(tokenizer)
    written = tokenizer(prompt_text(tokenizer, "?", None), add_special_tokens=False)
    added = tokenizer.added_tokens_decoder
    marks = {t for t in written["input_ids"] if t in added and added[t].special}
    marks |= {tokenizer.pad_token_id, tokenizer.eos_token_id, end}
    marks -= {tokenizer.convert_tokens_to_ids(tag) for tag in TAGS}
    trial, tokens = rollout.responses.shape[-2], rollout.responses
    mask = torch.ones_like(tokens).bool() if rollout.mask is None else rollout.mask
    # Up to the last that counts: what a tool has said in between is read, too.
    mask = up_to_last(mask)
    if rollout.finished is not None:  # the last is an end, which only the model knows
        last = mask.long().sum(dim=-1, keepdim=True) - 1
        at = torch.arange(tokens.shape[-1], device=tokens.device)
        mask = mask & ~((at == last) & rollout.finished[..., None])
    pairs = zip(tokens.flatten(0, 1).tolist(), mask.flatten(0, 1).tolist(), strict=True)
    rows = [
        [t for t, kept in zip(*pair, strict=True) if kept and t not in marks]
        for pair in pairs
    ]
    texts = tokenizer.batch_decode(rows, **AS_WRITTEN)
    texts = [behind(begun, text) for text in texts]
    return [texts[i : i + trial] for i in range(0, len(texts), trial)]
