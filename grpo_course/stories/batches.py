"""What pretraining reads: stories and sums that never repeat, as padded batches."""

import random
from dataclasses import dataclass

import torch
from torch import Tensor
from transformers import PreTrainedTokenizerBase

from grpo_course.gsm8k.prompts import demonstration
from grpo_course.language_model.encoding import prompt_text
from grpo_course.stories.problems import Story, make_stories, make_sums

CHUNK = 8  # batches are cut from so many at a time, sorted by length: less padding
# A batch's width is a multiple of it: torch keeps memory for each shape that it meets.
WIDTHS = 16
Row = tuple[list[int], list[int]]  # the tokens of a prompt, and of its response


@dataclass(frozen=True)
class Batch:
    """Whole conversations, padded on the right; all [batch pos].

    tokens: int. weights: float, of each token in the loss; 0 for padding.
    responses: bool, the tokens of the responses.
    """

    tokens: Tensor
    weights: Tensor
    responses: Tensor


def draw_chunk(
    tokenizer: PreTrainedTokenizerBase,
    number: int,
    size: int,
    *,
    seed: int,
    sums: float,
    prompt_weight: float,
) -> list[Batch]:
    """CHUNK batches of `size` problems, each of problems of about one length.

    `sums` is the share of bare sums. Equal arguments give equal batches.
    """
    key, count = f"{seed} {number}", CHUNK * size
    num_sums = round(sums * count)
    problems = make_stories("train", count - num_sums, key) + make_sums(num_sums, key)
    rows = [encode(tokenizer, problem) for problem in problems]
    rows.sort(key=lambda row: len(row[0]) + len(row[1]))
    cut = [rows[i : i + size] for i in range(0, count, size)]
    random.Random(key).shuffle(cut)
    return [pad(rows, tokenizer.pad_token_id, prompt_weight) for rows in cut]


def encode(tokenizer: PreTrainedTokenizerBase, problem: Story) -> Row:
    """The tokens of the prompt, and those of the response with its end."""
    asked = prompt_text(tokenizer, problem.question, None)
    texts = [asked, demonstration(problem)]
    prompt, response = tokenizer(texts, add_special_tokens=False)["input_ids"]
    return prompt, [*response, tokenizer.eos_token_id]


def pad(rows: list[Row], padding: int, prompt_weight: float) -> Batch:
    """Prompts with their responses as one batch."""
    longest = max(len(prompt) + len(response) for prompt, response in rows)
    width = -(-longest // WIDTHS) * WIDTHS
    tokens = torch.full((len(rows), width), padding)
    weights = torch.zeros(len(rows), width)
    responses = torch.zeros(len(rows), width, dtype=torch.bool)
    for i, (prompt, response) in enumerate(rows):
        end = len(prompt) + len(response)
        tokens[i, :end] = torch.tensor(prompt + response)
        weights[i, : len(prompt)] = prompt_weight
        weights[i, len(prompt) : end] = 1.0
        responses[i, len(prompt) : end] = True
    return Batch(tokens, weights, responses)
