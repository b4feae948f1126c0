"""The same trainer by other hands: what may differ in a healthy one."""

import inspect
import random
import re
import textwrap

IN_A_METHOD = " " * 8  # before each line of the script that an edit changes

# Each an edit of the script, written as a defect is, after which it does the same. The
# first three draw other random numbers, so from a seed come other problems and
# samples; N is a number of the hand's own.
DRAWS = {
    "another seed": """
        - torch.manual_seed(s.seed)
        - self.random = random.Random(s.seed)
        + torch.manual_seed(s.seed + N)
        + self.random = random.Random(s.seed + N)
        """,
    "each list is drawn with its length": """
        - sizes = [
        -     self.random.randint(low, high) for _ in range(self.settings.num_prompts)
        - ]
        - return [self.random.sample(range(LARGEST + 1), size) for size in sizes]
        + count, values = self.settings.num_prompts, range(LARGEST + 1)
        + return [
        +     self.random.sample(values, self.random.randint(low, high))
        +     for _ in range(count)
        + ]
        """,
    "a token wins a race": """
        -     token = torch.multinomial(probs, 1)
        +     race = torch.empty_like(probs).exponential_()
        +     token = (probs / race).argmax(-1, keepdim=True)
        """,
}
FORMS = {
    "rows ask for their list": """
        - problems = [p for p in drawn for _ in range(self.settings.num_responses)]
        + size = self.settings.num_responses
        + problems = [drawn[row // size] for row in range(len(drawn) * size)]
        """,
    "ended before": """
        - is_eos = (responses == self.tokenizer.eos).long()
        - return is_eos.cumsum(dim=1) - is_eos == 0
        + is_eos = responses == self.tokenizer.eos
        + ended_before = is_eos.cumsum(dim=1) - is_eos.long() > 0
        + return ~ended_before
        """,
    "the spread counts all members": """
        - return (centered / (groups.std(dim=1, keepdim=True) + 1e-4)).flatten()
        + spread = centered.square().mean(dim=1, keepdim=True).sqrt()
        + return (centered / (spread + 1e-4)).flatten()
        """,
    "a logit minus the logsumexp": """
        - log_probs = (logits[:, :-1] / self.settings.temperature).log_softmax(-1)
        - return log_probs.gather(-1, batch.tokens[:, 1:, None]).squeeze(-1)
        + scaled = logits[:, :-1] / self.settings.temperature
        + picked = scaled.gather(-1, batch.tokens[:, 1:, None]).squeeze(-1)
        + return picked - scaled.logsumexp(-1)
        """,
    "the reference is asked first": """
        - batch.old_log_probs = self.score(batch)
          with self.model.disable_adapter():
              batch.ref_log_probs = self.score(batch)
        + batch.old_log_probs = self.score(batch)
        """,
    "a bound on the side of the sign": """
        - clipped = ratio.clamp(1 - s.epsilon, 1 + s.epsilon)
        - gain = torch.minimum(ratio * deltas, clipped * deltas)
        + low, high = 1 - s.epsilon, 1 + s.epsilon
        + clipped = torch.where(deltas > 0, ratio.clamp(max=high), ratio.clamp(low))
        + gain = clipped * deltas
        """,
    "expm1": """
        - kl = log_ratio.exp() - log_ratio - 1
        + kl = torch.expm1(log_ratio) - log_ratio
        """,
    "the last part first": """
        - for start in range(0, len(batch.tokens), size):
        + for start in reversed(range(0, len(batch.tokens), size)):
        """,
    "a product with the mask": """
        -     loss = losses[part.mask].sum() / num_tokens
        +     loss = (losses * part.mask).sum() / num_tokens
        """,
    "steps that are left": """
        - self.schedule = LambdaLR(self.optimizer, lambda step: max(0, \
1 - step / total))
        + self.schedule = LambdaLR(
        +     self.optimizer, lambda step: max(0, total - step) / total
        + )
        """,
}
NAMES = {  # of locals
    "drawn": ("lists", "chosen"),
    "responses": ("completions", "replies"),
    "prompts": ("questions", "inputs"),
    "kept": ("is_written", "counted"),
    "finished": ("is_over", "done"),
    "groups": ("by_prompt", "table"),
    "centered": ("above_mean", "relative"),
    "logits": ("outputs", "unscaled"),
    "clipped": ("bounded", "limited"),
    "gain": ("objective", "surrogate"),
    "log_ratio": ("log_quotient", "difference"),
    "losses": ("terms", "per_token"),
    "seen": ("logged", "collected"),
    "norm": ("grad_norm", "steepness"),
    "ended": ("is_whole", "complete"),
    "is_eos": ("ends", "is_last"),
    "found": ("matched", "hit"),
}


def edits_of(diff: str) -> list[tuple[str, str]]:
    """Pairs of text: what stands in a script once, and what comes in its place."""
    hunks = [text.splitlines() for text in inspect.cleandoc(diff).split("\n\n")]
    return [(_lines(hunk, kept=" -"), _lines(hunk, kept=" +")) for hunk in hunks]


def _lines(hunk: list[str], kept: str) -> str:
    """The lines of a hunk with one of these marks, as they stand in the script."""
    text = "".join(f"{line[2:]}\n" for line in hunk if line[0] in kept)
    return textwrap.indent(text, IN_A_METHOD)


def rewritten(hand: int, *scripts: str) -> list[str]:
    """Scripts, as somebody else would have written them: all by one hand.

    Another number is another hand, and 0 leaves them as they are. An edit is made where
    it fits all of the scripts, so a script and the same with a defect stay as near to
    each other as they were.
    """
    if not hand:
        return [*scripts]
    rng, texts = random.Random(hand), [*scripts]
    draws = [diff.replace("+ N", f"+ {1000 * hand}") for diff in DRAWS.values()]
    forms = [diff for diff in FORMS.values() if rng.random() < 0.6]
    for diff in (*draws, *forms):
        for old, new in edits_of(diff):
            if all(text.count(f"\n{old}") == 1 for text in texts):
                texts = [text.replace(f"\n{old}", f"\n{new}") for text in texts]
    names = {old: rng.choice((old, *others)) for old, others in NAMES.items()}
    words = re.compile(rf"(?<![.\w])({'|'.join(names)})\b(?!=)")
    return [words.sub(lambda found: names[found[1]], text) for text in texts]
