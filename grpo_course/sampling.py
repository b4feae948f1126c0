"""How a policy writes: what it samples from, and which of its tokens count.

    Sampler      the settings that sampling and scoring must share; scores of tokens
    draw         one token for each row
    masks        up to the end of a response, from the start of a prompt
    seeds        random weights for one model, or for several side by side

`Sampler.log_probs` is the one place where temperature, top_k and top_p become a
distribution, so that what is scored is what was sampled from.
"""

from collections.abc import Callable, Sequence, Sized
from typing import Annotated

import torch
from pydantic import Field
from torch import Generator, Tensor

from grpo_course.checks import (
    require_at_least,
    require_axes,
    require_finite,
    require_known,
    require_same_shape,
    settings,
)

Generators = Generator | Sequence[Generator] | None
Token = Annotated[int, Field(ge=0)]


@settings(kw_only=False)
class Sampler:
    """How to write: the settings that sampling and scoring must share.

    `eos` ends a response, each of several does, None never does. `pad` fills up what
    comes after it, and stands in front of short prompts; None where all have one
    length. `top_k` keeps
    the k likeliest tokens (Fan et al. 2018, arXiv 1805.04833), `top_p` the fewest
    likeliest ones that hold that much probability (Holtzman et al. 2020, arXiv
    1904.09751); None keeps all. Both come after the temperature, top_k first.
    """

    max_new_tokens: int = Field(ge=1)
    eos: Token | tuple[Token, ...] | None = None
    pad: int | None = Field(default=None, ge=0)
    temperature: float = Field(default=1.0, gt=0)
    top_k: int | None = Field(default=None, ge=1)
    top_p: float | None = Field(default=None, gt=0, le=1)

    def __post_init__(self) -> None:
        if self.eos is not None and self.pad is None:
            raise ValueError(
                f"eos={self.eos} ends responses early, so a token must fill them up: "
                "set pad. It may be the same token."
            )

    def mask(self, responses: Tensor) -> Tensor | None:
        """Which tokens the policy chose; None if it chose all of them."""
        return None if self.eos is None else response_mask(responses, self.eos)

    def finished(self, responses: Tensor) -> Tensor | None:
        """Which responses ended by themselves; None if none can. -> bool [... trial]"""
        return None if self.eos is None else is_end(responses, self.eos).any(dim=-1)

    def log_probs(self, logits: Tensor, keep: Tensor | None = None) -> Tensor:
        """What is sampled from, over the vocabulary. [... vocab] -> [... vocab]

        Temperature, then top_k, then top_p; what falls away gets -inf, and the rest
        adds up to one again. The softmax is taken in float32.

        `keep`, int [...], is a token that stays whatever its rank. A scorer passes
        the token that was sampled: its logits differ from the sampler's by rounding,
        and after an update by more, so the token may have left the top. Its score is
        then low, but not -inf, and the ratio to the old score stays a number. Another
        token at the edge may come or go as well; then all scores beside it move by
        as much as that token's probability.
        """
        scaled = logits.float()
        if self.temperature != 1:  # a pass over the vocabulary that is worth sparing
            scaled = scaled / self.temperature
        if self.top_k is not None or self.top_p is not None:
            scaled = scaled.masked_fill(~self.support(scaled, keep), -torch.inf)
        return scaled.log_softmax(dim=-1)

    def token_log_probs(self, logits: Tensor, tokens: Tensor) -> Tensor:
        """The score of each token under the logits beside it. int [...] -> [...]"""
        require_axes("logits", logits, "pos vocab")
        require_same_shape("tokens", tokens, "logits[..., 0]", logits[..., 0])
        return pick(self.log_probs(logits, keep=tokens), tokens)

    @torch.no_grad()
    def support(self, scaled: Tensor, keep: Tensor | None = None) -> Tensor:
        """Which tokens may be sampled. [... vocab] -> bool [... vocab]"""
        kept = torch.ones_like(scaled, dtype=torch.bool)
        if self.top_k is not None and self.top_k < scaled.shape[-1]:
            least = scaled.topk(self.top_k, dim=-1).values[..., -1:]
            kept = scaled >= least
        if self.top_p is not None and self.top_p < 1:  # 1.0 would fail by rounding
            kept = kept & top_mass(scaled.masked_fill(~kept, -torch.inf), self.top_p)
        return kept if keep is None else kept.scatter(-1, keep[..., None], True)


def top_mass(logits: Tensor, top_p: float) -> Tensor:
    """The fewest likeliest tokens that hold `top_p`. [... vocab] -> bool [... vocab]

    A token stays if those before it do not hold that much yet; the first always does.
    """
    probs, order = logits.softmax(dim=-1).sort(dim=-1, descending=True)
    before = probs.cumsum(dim=-1) - probs
    inside = (before < top_p) & (probs > 0)
    return torch.zeros_like(inside).scatter(-1, order, inside)


def pick(log_probs: Tensor, tokens: Tensor) -> Tensor:
    """The entry of each token. [... vocab], int [...] -> [...]"""
    return log_probs.gather(dim=-1, index=tokens[..., None]).squeeze(-1)


def token_log_probs(logits: Tensor, tokens: Tensor, temperature: float = 1.0) -> Tensor:
    """Log-probability of each token under the logits beside it: [... pos].

    Logits [... pos vocab] that already stand where their token does, int [... pos];
    `temperature` is the sampler's. Raises ValueError for one that is not above 0 and
    for logits that do not stand beside the tokens.
    """
    sampler = Sampler(max_new_tokens=1, temperature=temperature)
    return sampler.token_log_probs(logits, tokens)


def shifted_log_probs(logits: Tensor, tokens: Tensor) -> Tensor:
    """Log-probability of each token of a text but the first: [... pos-1].

    Logits [... pos vocab] of a causal model on tokens, int [... pos]: those at t
    score token t + 1, and the first token has nothing before it.
    """
    require_axes("logits", logits, "pos vocab")
    require_axes("tokens", tokens, "pos")
    return token_log_probs(logits[..., :-1, :], tokens[..., 1:])


def draw(
    log_probs: Tensor, generator: Generators = None, greedy: bool = False
) -> Tensor:
    """One token for each row. [... rows vocab] -> int [... rows]

    A seed axis in front needs a list of generators, one for each seed. With greedy,
    the likeliest token. Raises ValueError for probabilities that are not numbers.
    """
    if greedy:
        return log_probs.argmax(dim=-1)
    probs = log_probs.exp()
    require_finite("the policy's probabilities", probs, "try a smaller learning rate")
    if probs.ndim == 2:
        return draw_rows(probs[None], [one_generator(generator)])[0]
    return draw_rows(probs, one_generator_each(probs, generator))


def draw_rows(probs: Tensor, generators: Sequence[Generator | None]) -> Tensor:
    """One token for each row: `torch.multinomial`. [seed rows vocab] -> int [seed rows]

    On a CPU the same tokens from the same random numbers, three times as fast. The
    tokens race: each takes an exponential time, the likelier ones are the faster.
    """
    if probs.device.type != "cpu":
        pairs = zip(probs, generators, strict=True)
        drawn = [torch.multinomial(p, 1, generator=g) for p, g in pairs]
        return torch.stack(drawn).squeeze(-1)
    uniform = torch.empty(probs.shape, dtype=torch.double)
    for of_seed, generator in zip(uniform, generators, strict=True):
        of_seed.uniform_(generator=generator)
    times = uniform.neg_().log1p_().neg_()  # in place: twice as large as the logits
    return (probs / times.to(probs.dtype)).argmax(dim=-1)


def one_generator(generator: object) -> Generator | None:
    """The generator of a model without a seed axis; None is torch's own."""
    if generator is None or isinstance(generator, Generator):
        return generator
    raise TypeError(
        f"generator={generator!r}, but a model without a seed axis takes a single one. "
        "Pass a torch.Generator, or None for torch's own."
    )


def one_generator_each(probs: Tensor, generator: object) -> Sequence[Generator]:
    """The generators of a model with a seed axis, one for each seed."""
    if not isinstance(generator, Sequence) or len(generator) != len(probs):
        raise ValueError(
            f"generator={generator!r}, but the model has {len(probs)} seeds. "
            "Pass a list with one torch.Generator for each seed."
        )
    return generator


# --- Masks


def is_end(tokens: Tensor, eos: int | Sequence[int]) -> Tensor:
    """Where a token is EOS, or one of several. int [...] -> bool [...]"""
    if isinstance(eos, Sequence):
        return torch.isin(tokens, torch.tensor(eos, device=tokens.device))
    require_at_least("eos", eos, 0)
    return tokens == eos


def response_mask(tokens: Tensor, eos: int | Sequence[int]) -> Tensor:
    """True up to the first EOS, that EOS included. int [... pos] -> bool [... pos]

    At each position: how many EOS came strictly before it? Only where none did, the
    token was chosen by the policy. The padding token plays no part, so it may be EOS
    itself. A response without EOS was cut off, and all of it counts.
    """
    require_axes("tokens", tokens, "pos")
    is_eos = is_end(tokens, eos).long()
    return is_eos.cumsum(dim=-1) - is_eos == 0


def prompt_mask(prompts: Tensor, pad: int) -> Tensor:
    """False on the padding in front. int [... pos] -> bool [... pos]

    A pad token after the first other token is not padding but part of the prompt.
    """
    require_axes("prompts", prompts, "pos")
    require_at_least("pad", pad, 0)
    return (prompts != pad).long().cumsum(dim=-1) > 0


def up_to_last(mask: Tensor) -> Tensor:
    """True up to the last True, holes included. bool [... pos] -> bool [... pos]"""
    return mask.flip(-1).cummax(dim=-1).values.flip(-1)


def pad_rows(rows: Sequence[Sequence[int]], pad: int, side: str = "left") -> Tensor:
    """Lists of unequal lengths as one tensor, filled up on one side. -> int [rows pos]

    Prompts are padded on the left, so that all end where the response begins.
    """
    require_known("side", side, ("left", "right"))
    require_at_least("pad", pad, 0)
    if not isinstance(rows, Sequence) or not all(isinstance(r, Sized) for r in rows):
        raise TypeError(
            f"rows={rows!r} is not a list of lists. Pass the tokens of each prompt, "
            "[[1, 2], [3]]."
        )
    if not rows or not all(len(row) for row in rows):
        raise ValueError(
            "rows has an empty row, or none. A prompt needs at least one token: "
            "give it a start token."
        )
    width = max(map(len, rows))
    fill = [[pad] * (width - len(row)) for row in rows]
    pairs = zip(fill, map(list, rows), strict=True)
    return torch.tensor([f + r if side == "left" else r + f for f, r in pairs])


def unpad_rows(prompts: Tensor, pad: int) -> list[list[int]]:
    """The tokens of each prompt without the padding in front. int [rows pos]"""
    pairs = zip(prompts, prompt_mask(prompts, pad), strict=True)
    return [row[real].tolist() for row, real in pairs]


# --- Seeds

Draw = Callable[..., Tensor]


def require_seeds(seeds: Sequence[int] | None) -> None:
    """Check that seeds, where they are given, are a list of whole numbers from 0 on."""
    if seeds is None:
        return
    if not isinstance(seeds, Sequence) or isinstance(seeds, str) or not seeds:
        raise ValueError(f"seeds={seeds!r}, but it must list one at least: seeds=(0,).")
    for place, seed in enumerate(seeds):
        require_at_least(f"seeds[{place}]", seed, 0)


def make_draw(seeds: Sequence[int] | None) -> Draw:
    """draw(2, 3): standard normals of that shape, [seed 2 3] where there are seeds."""
    if seeds is None:
        return lambda *shape: torch.randn(shape)
    generators = [Generator().manual_seed(seed) for seed in seeds]
    return lambda *shape: torch.stack(
        [torch.randn(shape, generator=g) for g in generators]
    )
