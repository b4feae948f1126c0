"""From problems to the tokens that a policy reads and writes, and back to text."""

from collections.abc import Sequence

from torch import Tensor
from transformers import PreTrainedTokenizerBase

from grpo_course.algorithm.masks import pad_rows, response_mask
from grpo_course.algorithm.rollout import Rollout
from grpo_course.language_model.template import chat_messages


def prompt_text(
    tokenizer: PreTrainedTokenizerBase, question: str, system_prompt: str | None
) -> str:
    """The one text that the model reads: the conversation, and whose turn it is.

    Where the tokenizer has no chat template, the messages stand below one another.
    """
    messages = chat_messages(question, system_prompt)
    if tokenizer.chat_template is None:
        return "".join(message["content"] + "\n\n" for message in messages)
    text = tokenizer.apply_chat_template(
        messages, tokenize=False, add_generation_prompt=True
    )
    return str(text)


def encode_prompts(
    tokenizer: PreTrainedTokenizerBase,
    questions: Sequence[str],
    system_prompt: str | None = None,
) -> Tensor:
    """The prompts of some questions, padded on the left. -> int [batch pos]

    The template has written every special token already, so the tokenizer adds none.
    """
    texts = [prompt_text(tokenizer, q, system_prompt) for q in questions]
    rows = tokenizer(texts, add_special_tokens=False)["input_ids"]
    return pad_rows(rows, tokenizer.pad_token_id)


def encode_responses(
    tokenizer: PreTrainedTokenizerBase, responses: Sequence[str]
) -> Tensor:
    """Texts as a policy would have written them, EOS at the end. -> int [batch pos]"""
    rows = tokenizer(list(responses), add_special_tokens=False)["input_ids"]
    rows = [[*row, tokenizer.eos_token_id] for row in rows]
    return pad_rows(rows, tokenizer.pad_token_id, side="right")


def as_rollout(
    tokenizer: PreTrainedTokenizerBase,
    questions: Sequence[str],
    responses: Sequence[str],
    system_prompt: str | None = None,
) -> Rollout:
    """Questions with one given response each, as if a policy had sampled them."""
    prompts = encode_prompts(tokenizer, questions, system_prompt)
    tokens = encode_responses(tokenizer, responses)[:, None]
    return Rollout(prompts, tokens, response_mask(tokens, tokenizer.eos_token_id))


def decode_responses(
    tokenizer: PreTrainedTokenizerBase, rollout: Rollout
) -> list[list[str]]:
    """The texts of the responses, without what stands after their end.

    One list for each prompt. Special tokens are left out; the tags are none.
    """
    tokens = rollout.responses
    if rollout.mask is not None:
        tokens = tokens.masked_fill(~rollout.mask, tokenizer.pad_token_id)
    trial = tokens.shape[-2]
    texts = tokenizer.batch_decode(tokens.flatten(0, 1), skip_special_tokens=True)
    return [texts[i : i + trial] for i in range(0, len(texts), trial)]
