"""Any causal language model as a policy: it writes responses and scores them.

`CausalPolicy` puts together the sampler (generation.py) and the scores (scoring.py) for
the loop. It tries out on a few tokens whether the model may read a prompt once for all
responses (read_once.py). A model that is of another kind takes the slow road, and one
printed line says so. Where that road is wrong, too, the model is refused. At the end:
the probe that compares sampler and scorer.
"""

import copy
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace

import torch
from torch import Generator, Tensor, nn
from transformers import PreTrainedModel

from grpo_course.long_work import counted
from grpo_course.loop import Rollout
from grpo_course.sampling import Sampler, is_end, pad_rows, response_mask, unpad_rows
from grpo_course.text.generation import cast_once, generate
from grpo_course.text.read_once import why_not_read_once
from grpo_course.text.scoring import recomputes, response_log_probs

Tool = Callable[[list[int]], list[int]]  # the tokens of a turn -> its own


class CausalPolicy:
    """Any causal LM with its sampler and its random numbers, as the loop wants it.

    It works where the model lies, CPU or GPU, and knows tokens only, no text. A deep
    copy of it is a frozen reference.

    Dropout is off in both methods: with it, the ratio of a policy to itself is far from
    1, and clipping throws good samples away.

    Args:
        model: any causal LM of transformers. Where reading a prompt once for its group
            would be wrong, a printed line says why, and the slow road is taken. After
            `model.base_model.compile(dynamic=True)` (torch.compile; it needs a C++
            compiler) the same model is faster once it has run for a minute.
        sampler: how to write; scores follow the same settings.
        generator: random numbers on the model's device; None: torch's own.
        autocast: a dtype to multiply in; the softmax stays in float32.
        prompts_at_once: whose responses are scored in one forward pass where no
            gradient is asked for, as for a reference; None: all. With a gradient, the
            loop splits the batch itself.
        tool: what it writes behind a turn that has ended, from the tokens of that turn
            to its own; where that is none, the response ends. The sampler needs an EOS.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        sampler: Sampler,
        generator: Generator | None = None,
        autocast: torch.dtype | None = None,
        prompts_at_once: int | None = None,
        tool: Tool | None = None,
    ):
        self.model, self.sampler, self.generator = model.eval(), sampler, generator
        self.autocast, self.prompts_at_once = autocast, prompts_at_once
        self.tool = tool
        why = why_not_read_once(self.model, sampler.pad)
        self.read_once = why is None
        if why:
            print(
                f"{type(model).__name__}: each response reads its own prompt, with "
                "the model's generate() and forward pass, which is slower. A prompt "
                f"cannot be read once for its group here: {why}."
            )

    def sample(
        self, prompts: Tensor, num_responses: int, greedy: bool = False
    ) -> Rollout:
        """int [batch pos], padded on the left -> responses [batch trial pos]

        With greedy, the likeliest token at each step.
        """
        if self.tool is not None:
            return take_turns(self, prompts, num_responses, self.tool, greedy)
        tokens, noted = self.write(prompts, num_responses, greedy, self.sampler)
        mask, finished = self.sampler.mask(tokens), self.sampler.finished(tokens)
        return Rollout(prompts.to(tokens.device), tokens, mask, noted, finished)

    def write(
        self, prompts: Tensor, num_responses: int, greedy: bool, sampler: Sampler
    ) -> tuple[Tensor, Tensor]:
        """Responses and the log-probs noted on the way, as `generate` gives them."""
        self.model.eval()
        with self.precision(), cast_once(self.model, self.autocast):
            return generate(
                self.model,
                prompts.to(self.model.device),
                num_responses,
                sampler,
                self.generator,
                greedy=greedy,
                read_once=self.read_once,
            )

    def log_probs(self, rollout: Rollout) -> Tensor:
        """-> float32 [batch trial pos], under the settings of the sampler"""
        # transformers recomputes in training mode only, so there is no other way.
        recompute = torch.is_grad_enabled() and recomputes(self.model)
        if recompute:
            require_no_dropout(self.model)
        self.model.train(recompute)
        rows, scores = len(rollout.prompts), []
        most = rows if torch.is_grad_enabled() else self.prompts_at_once or rows
        with self.precision():
            for first in counted(range(0, rows, most), "scoring", "part"):
                part = slice(first, first + most)
                score = response_log_probs(
                    self.model,
                    rollout.prompts[part],
                    rollout.responses[part],
                    self.sampler,
                    None if rollout.mask is None else rollout.mask[part],
                    read_once=self.read_once,
                )
                scores.append(score)
        return torch.cat(scores)

    def precision(self) -> AbstractContextManager:
        """Where the matrix products run in another dtype than the weights'."""
        if self.autocast is None:
            return nullcontext()
        return torch.autocast(self.model.device.type, self.autocast)


def take_turns(
    policy: CausalPolicy, prompts: Tensor, num_responses: int, tool: Tool, greedy: bool
) -> Rollout:
    """Responses in which a tool has its say, as one text each with holes in its mask.

    A turn of the policy's ends as any response does. Where the tool then writes, the
    policy reads that and goes on, and `max_new_tokens` holds for all of it together.
    """
    sampler, device = policy.sampler, policy.model.device
    width, eos, pad = sampler.max_new_tokens, sampler.eos, sampler.pad
    assert eos is not None and pad is not None  # turns end, and are of unequal length
    shape = len(prompts), num_responses
    read = [row for row in unpad_rows(prompts, pad) for _ in range(num_responses)]
    texts: list[list[int]] = [[] for _ in read]  # the policy's tokens and the tool's
    began = [0] * len(texts)  # where the turn that is being written begins
    tokens = torch.full((len(texts), width), pad, device=device)
    noted = torch.zeros_like(tokens, dtype=torch.float32)
    mask = torch.zeros_like(tokens, dtype=torch.bool)
    finished, waiting = mask[:, 0].clone(), [*range(len(texts))]
    while waiting:
        # Who has written most has least room left: then the others go on.
        room = width - max(len(texts[row]) for row in waiting)
        if room == width:  # at first, when a prompt is read once for its group
            made = policy.write(prompts, num_responses, greedy, sampler)
        else:
            so_far = pad_rows([read[row] + texts[row] for row in waiting], pad)
            some = replace(sampler, max_new_tokens=room)
            made = policy.write(so_far, 1, greedy, some)
        turns, scores = (x.flatten(0, 1) for x in made)
        lengths = response_mask(turns, eos).sum(dim=-1).tolist()
        ends = is_end(turns, eos).any(dim=-1)
        for i, row in enumerate(waiting):
            own = slice(len(texts[row]), len(texts[row]) + lengths[i])
            mask[row, own], noted[row, own] = True, scores[i, : lengths[i]]
            texts[row] += turns[i, : lengths[i]].tolist()
            if ends[i]:
                reply = tool(texts[row][began[row] :])
                texts[row] += reply
                finished[row], began[row] = not reply, len(texts[row])
        waiting = [
            row for row in waiting if not finished[row] and len(texts[row]) < width
        ]
    for row, text in enumerate(texts):
        tokens[row, : len(text)] = torch.tensor(text[:width], device=device)
    return Rollout(
        prompts.to(device),
        tokens.unflatten(0, shape),
        mask.unflatten(0, shape),
        noted.unflatten(0, shape),
        finished.unflatten(0, shape),
    )


def require_no_dropout(model: PreTrainedModel) -> None:
    """Check that training mode changes nothing but the recomputing."""
    for name, part in model.named_modules():
        rate = part.p if isinstance(part, nn.Dropout) else 0.0
        if rate or getattr(part, "attention_dropout", 0.0):
            raise ValueError(
                "the model recomputes in the backward pass, which needs training mode, "
                f"and has dropout there (first in {name}). Set the dropout to 0 in its "
                "config before making or loading it."
            )


# The mean over tokens that rounding explains, in nats. Measured on CPUs with models of
# up to 24 layers: at most 5e-6 in float32, and 0.032 in bfloat16, which has 8 bits.
# There, single tokens differed by up to 0.19.
EXPECTED = {None: 1e-4, torch.bfloat16: 0.05}


@torch.no_grad()
def sampler_gap(
    policy: CausalPolicy, prompts: Tensor, num_responses: int = 2
) -> Tensor:
    """How far note and score of each sampled token are from a forward pass. [token]

    int [batch pos] in. In nats, at temperature 1 and among all tokens: a cut between
    two tokens would turn rounding into more. Each text has a forward pass of the
    model's own, without padding. Random numbers are the probe's own.
    """
    writer = copy.copy(policy)
    writer.generator = Generator(policy.model.device).manual_seed(0)
    writer.sampler = replace(policy.sampler, temperature=1.0, top_k=None, top_p=None)
    rollout = writer.sample(prompts, num_responses)
    assert rollout.sampled_log_probs is not None
    with writer.precision():
        alone = response_log_probs(
            policy.model,
            rollout.prompts,
            rollout.responses,
            writer.sampler,
            rollout.mask,
            read_once=False,
        )
    both = torch.stack([rollout.sampled_log_probs, writer.log_probs(rollout)])
    gaps = (both - alone).abs().amax(dim=0)
    return gaps.flatten() if rollout.mask is None else gaps[rollout.mask]


def probe_line(policy: CausalPolicy, prompts: Tensor) -> str:
    """The gap on the first two prompts beside what rounding explains, in words.

    int [batch pos] in. Raises ValueError for a gap that rounding does not explain.
    """
    gaps, expected = sampler_gap(policy, prompts[:2]), EXPECTED[policy.autocast]
    dtype = "float32" if policy.autocast is None else "bfloat16"
    line = (
        f"Scores differ from what the sampler noted by {gaps.mean():.2g} nats a token, "
        f"{gaps.max():.2g} at most; rounding in {dtype} explains {expected:g}."
    )
    if gaps.mean() <= expected:
        return line
    cure = "Choose another model" if policy.autocast is None else "Try --dtype float32"
    raise ValueError(
        f"{type(policy.model).__name__}: {line} This is more: the gradient would be of "
        f"another policy. Nothing was trained. {cure}."
    )
