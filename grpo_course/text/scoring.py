"""How likely a model finds what was written: log-probs, with their gradients.

A prompt is read once for all responses to it (`Prefix`), which takes two things for
granted: what a model keeps of a text are keys and values, and its logits are its output
embedding times its last hidden state. `read_once.py` tries it out.
"""

from collections.abc import Iterator

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint
from transformers import DynamicCache, PreTrainedModel

from grpo_course.checks import require_axes
from grpo_course.sampling import Sampler, pick, prompt_mask, up_to_last
from grpo_course.text.models import text_config

# Logits held at once: 16 million float32 numbers are 64 MB.
MOST_LOGITS = 2**24


# --- A prompt is read once for all responses to it


class Prefix:
    """Where the model stands after its prompts, one row for each response to come.

    Reads int [rows pos], padded on the left. A token's position is its place among the
    real ones: padding moves nothing.
    """

    def __init__(self, model: PreTrainedModel, prompts: Tensor, pad: int | None):
        self.model = model
        self.cache = DynamicCache()  # keys and values of what was read
        self.real = real_tokens(prompts, pad)
        self.padded, place = not bool(self.real.all()), self.real.long().cumsum(dim=-1)
        self.position = place[:, -1:]  # int [rows 1], of the token to come
        mask = self.real.long() if self.padded else None  # None is faster
        # [rows dim], of the last token read
        self.hidden = self.read(prompts, mask, (place - 1).clamp(min=0))[:, -1]
        # Where no window moves along, one token's mask, bool [rows 1 1 pos], is made
        # here: transformers takes longer than a small model takes to read the token.
        config = text_config(model)
        windows = [getattr(config, f, None) for f in ("sliding_window", "layer_types")]
        plain = windows[0] is None and {*(windows[1] or ())} <= {"full_attention"}
        how = getattr(config, "_attn_implementation", None)
        self.ready_mask = plain and how == "sdpa"

    def read(self, tokens: Tensor, mask: Tensor | None, position: Tensor) -> Tensor:
        """int [rows pos] -> hidden states [rows pos dim]"""
        out = self.model.base_model(
            input_ids=tokens,
            attention_mask=mask,
            position_ids=position,
            past_key_values=self.cache,
            use_cache=True,
        )
        return out.last_hidden_state

    def extend(self, tokens: Tensor) -> Tensor:
        """Read further tokens, int [rows pos] -> hidden states [rows pos dim].

        None may be padding, unless nothing that counts follows it.
        """
        self.real = torch.cat([self.real, torch.ones_like(tokens).bool()], dim=-1)
        mask = self.real.long() if self.padded else None
        if self.padded and tokens.shape[-1] == 1 and self.ready_mask:
            mask = self.real[:, None, None]
        steps = torch.arange(tokens.shape[-1], device=tokens.device)
        states = self.read(tokens, mask, self.position + steps)
        self.position, self.hidden = self.position + len(steps), states[:, -1]
        return states

    def select(self, rows: Tensor) -> None:
        """Keep some of the rows, or repeat them. int [chosen]"""
        self.cache.batch_select_indices(rows)
        self.hidden, self.real = self.hidden[rows], self.real[rows]
        self.position = self.position[rows]


def real_tokens(prompts: Tensor, pad: int | None) -> Tensor:
    """False on the padding in front. int [rows pos] -> bool [rows pos]"""
    if pad is None:
        return torch.ones_like(prompts, dtype=torch.bool)
    return prompt_mask(prompts, pad)


def hidden_states(
    model: PreTrainedModel, prompts: Tensor, tokens: Tensor, pad: int | None
) -> Tensor:
    """What the model made of the text before each token. -> [rows pos dim]

    int [batch pos] and [(batch trial) pos] in. Gradients reach a prompt's keys and
    values from all of its responses, as if each had read the prompt for itself. What
    recomputes in the backward pass keeps no cache: each response reads its own prompt.
    """
    which = torch.arange(len(tokens), device=tokens.device)
    which = which // (len(tokens) // len(prompts))
    if model.training and recomputes(model):
        texts = torch.cat([prompts[which], tokens[:, :-1]], dim=-1)
        real = torch.ones_like(texts, dtype=torch.bool)
        real[:, : prompts.shape[-1]] = real_tokens(prompts, pad)[which]
        out = model.base_model(
            input_ids=texts,
            attention_mask=None if real.all() else real.long(),
            position_ids=(real.long().cumsum(dim=-1) - 1).clamp(min=0),
            use_cache=False,
        )
        return out.last_hidden_state[:, prompts.shape[-1] - 1 :]
    unique, same = prompts.unique(dim=0, return_inverse=True)
    prefix = Prefix(model, unique, pad)
    prefix.select(same[which])
    before = prefix.hidden[:, None]
    if tokens.shape[-1] == 1:
        return before
    return torch.cat([before, prefix.extend(tokens[:, :-1])], dim=1)


def make_recompute(model: PreTrainedModel) -> None:
    """Turn gradient checkpointing on, by the name that this version gives it."""
    names = "activation_checkpointing_enable", "gradient_checkpointing_enable"
    enable = next(getattr(model, name) for name in names if hasattr(model, name))
    enable({"use_reentrant": False})


def recomputes(model: PreTrainedModel) -> bool:
    """Whether gradient checkpointing is on; each version calls the question anew."""
    return any(getattr(m, "gradient_checkpointing", False) for m in model.modules())


# --- Scores


def require_room(model: PreTrainedModel, prompts: Tensor, num_new_tokens: int) -> None:
    """Check that prompt and response fit the positions that the model knows."""
    require_axes("prompts", prompts, "batch pos")
    length = prompts.shape[-1]
    room = getattr(text_config(model), "max_position_embeddings", None)
    if room is not None and length + num_new_tokens > room:
        raise ValueError(
            f"prompts has {length} tokens a row and the response {num_new_tokens}, but "
            f"the model knows {room} positions. Shorten the prompts, ask for fewer new "
            "tokens (--max-new-tokens), or make a tiny model with --context-length "
            f"{length + num_new_tokens}. For real data take a pretrained model."
        )


def response_log_probs(
    model: PreTrainedModel,
    prompts: Tensor,
    responses: Tensor,
    sampler: Sampler,
    mask: Tensor | None = None,
    most_logits: int = MOST_LOGITS,
    read_once: bool = True,
) -> Tensor:
    """Log-probability of each token of each response, in float32. [batch trial pos]

    int [batch pos] padded on the left and int [batch trial pos] in. Tokens outside
    `mask` score 0, and what lies behind the longest response is not read at all. At
    most `most_logits` logits are held at a time. Without `read_once` the model's own
    forward pass reads each text, on any model.
    """
    require_axes("responses", responses, "batch trial pos")
    require_room(model, prompts, responses.shape[-1])
    batch, trial, pos = responses.shape
    if mask is None:
        mask = torch.ones_like(responses, dtype=torch.bool)
    mask = mask.flatten(0, 1)
    longest = int(up_to_last(mask.any(dim=0)).sum())
    longest = max(1, longest)  # even where no token counts
    tokens, mask = responses.flatten(0, 1)[:, :longest], mask[:, :longest]
    if read_once:
        hidden = hidden_states(model, prompts, tokens, sampler.pad)[mask]
        head = model.get_output_embeddings()
        scores = chunked_log_probs(head, hidden, tokens[mask], sampler, most_logits)
    else:
        scores = text_log_probs(model, prompts, tokens, sampler)[mask]
    out = scores.new_zeros(batch * trial, pos)
    out[:, :longest][mask] = scores
    return out.view(batch, trial, pos)


def chunked_log_probs(
    head: nn.Module,
    hidden: Tensor,
    tokens: Tensor,
    sampler: Sampler,
    most_logits: int = MOST_LOGITS,
) -> Tensor:
    """The score of each token from the state before it. [rows dim] -> [rows]

    A chunk's logits are made again in the backward pass (checkpointing: Chen et al.
    2016, arXiv 1604.06174).
    """

    def scores(hidden: Tensor, tokens: Tensor) -> Tensor:
        return pick(sampler.log_probs(head(hidden), keep=tokens), tokens)

    rows = max(1, most_logits // head.get_parameter("weight").shape[0])
    if len(hidden) <= rows:
        return scores(hidden, tokens)
    pairs = zip(hidden.split(rows), tokens.split(rows), strict=True)
    return torch.cat([checkpoint(scores, *pair, use_reentrant=False) for pair in pairs])


def text_log_probs(
    model: PreTrainedModel, prompts: Tensor, tokens: Tensor, sampler: Sampler
) -> Tensor:
    """The slow road: one forward pass over prompts and responses. -> [rows pos]

    int [batch pos] and [(batch trial) pos] in.
    """
    scores, order = [], []
    for which, own in of_one_length(prompts, sampler.pad, len(tokens) // len(prompts)):
        texts = torch.cat([own, tokens[which]], dim=-1)
        every = torch.ones_like(texts)
        out = model(input_ids=texts, attention_mask=every, use_cache=False)
        logits = out.logits[:, own.shape[-1] - 1 : -1]
        scores.append(sampler.token_log_probs(logits, tokens[which]))
        order.append(which)
    return torch.cat(scores)[torch.cat(order).argsort()]


def of_one_length(
    prompts: Tensor, pad: int | None, trial: int
) -> Iterator[tuple[Tensor, Tensor]]:
    """Prompts without their padding, those of one length at a time, a row a response.

    How a model treats padding is its own affair, and recurrent ones see it.
    int [batch pos] -> pairs of int [rows], which of [(batch trial)], and int [rows pos]
    """
    lengths = real_tokens(prompts, pad).sum(dim=-1).repeat_interleave(trial)
    for length in lengths.unique().tolist():
        which = (lengths == length).nonzero().squeeze(-1)
        yield which, prompts[which // trial, prompts.shape[-1] - length :]
