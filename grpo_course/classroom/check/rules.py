"""What learners write instead: each rule turns one piece of a solution into another.

A pattern is Python. A single capital stands for any expression, and a word in capitals
for one of the names in `NAMES`; the same capital means the same in the replacement.
`words` are for whoever made the mistake: they name it, and leave the code to them.
They are empty where general advice says more.
Calls are written as methods, with `dim=` by name (see `mutations.canonical`).
"""

from dataclasses import dataclass

NAMES = {
    "REDUCE": ("sum", "mean", "amax", "amin", "std", "var", "all", "any"),
    "ALONG": ("softmax", "log_softmax", "cumsum", "sort"),
}


@dataclass(frozen=True)
class Rule:
    """One misconception, and the pieces of code that show it."""

    kind: str
    words: str
    pairs: tuple[str, ...]


def _rule(kind: str, words: str, *pairs: str) -> Rule:
    """A pair is written `pattern => replacement`."""
    return Rule(kind, words, pairs)


RULES = (
    _rule(
        "axis",
        "Your {REDUCE}{ALONG} runs along the wrong axis. Name the axes of what it is "
        "given: along which one do the numbers belong together?",
        "A.REDUCE(dim=-1) => A.REDUCE(dim=0)",
        "A.REDUCE(dim=-1) => A.REDUCE(dim=-2)",
        "A.REDUCE(dim=-1, keepdim=True) => A.REDUCE(dim=0, keepdim=True)",
        "A.REDUCE(dim=-1, keepdim=True) => A.REDUCE(dim=-2, keepdim=True)",
        "A.ALONG(dim=-1) => A.ALONG(dim=0)",
        "A.ALONG(dim=-1) => A.ALONG(dim=-2)",
    ),
    _rule(
        "whole",
        "Your {REDUCE} runs over everything at once, and mixes rows that have nothing "
        "to do with each other. Say along which axis.",
        "A.REDUCE(dim=B) => A.REDUCE()",
        "A.REDUCE(dim=B, keepdim=True) => A.REDUCE()",
    ),
    _rule(
        "keepdim lost",
        "Your {REDUCE} lost its axis, and the result is lined up with another one. "
        "Keep an axis of size 1: keepdim=True.",
        "A.REDUCE(dim=B, keepdim=True) => A.REDUCE(dim=B)",
    ),
    _rule(
        "keepdim kept",
        "Your {REDUCE} keeps an axis of size 1. Here it has to go: leave keepdim out.",
        "A.REDUCE(dim=B) => A.REDUCE(dim=B, keepdim=True)",
    ),
    _rule(
        "sum for mean",
        "You add up where a mean is asked for: your result grows with how many numbers "
        "there are.",
        "A.mean(dim=B, keepdim=True) => A.sum(dim=B, keepdim=True)",
        "A.mean(dim=B) => A.sum(dim=B)",
        "A.mean() => A.sum()",
    ),
    _rule(
        "mean for sum",
        "You take a mean where a sum is asked for: your result is too small by the "
        "number of entries.",
        "A.sum(dim=B, keepdim=True) => A.mean(dim=B, keepdim=True)",
        "A.sum(dim=B) => A.float().mean(dim=B)",
        "A.sum() => A.float().mean()",
    ),
    _rule(
        "sum along one axis",
        "You add up along one axis and average along the others, so a larger batch or "
        "a longer response counts for more. Take one mean over all.",
        "A.mean() => A.sum(dim=-1).mean()",
        "A.mean() => A.sum(dim=0).mean()",
    ),
    _rule(
        "mean left open",
        "You average along one axis only. The result is one number: the mean over all.",
        "A.mean() => A.mean(dim=-1)",
        "A.mean() => A.mean(dim=0)",
        "A.mean() => A",
    ),
    _rule(
        "sign lost",
        "The sign is reversed: a minus is missing.",
        "-A => A",
    ),
    _rule(
        "difference turned",
        "A difference is the wrong way round: ask what is taken away from what.",
        "A - B => B - A",
    ),
    _rule(
        "plus for minus",
        "You add what has to be taken away.",
        "A - B => A + B",
    ),
    _rule(
        "minus for plus",
        "You take away what has to be added.",
        "A + B => A - B",
    ),
    _rule(
        "difference lost",
        "A difference is asked for, and you use one of its two sides alone.",
        "A - B => A",
        "A - B => B",
    ),
    _rule(
        "term lost",
        "One of two terms that have to be added is missing.",
        "A + B => A",
        "A + B => B",
    ),
    _rule(
        "factor lost",
        "One factor of a product is missing.",
        "A * B => A",
        "A * B => B",
    ),
    _rule(
        "quotient turned",
        "A quotient is upside down.",
        "A / B => B / A",
    ),
    _rule(
        "times for divided",
        "You multiply where you have to divide.",
        "A / B => A * B",
    ),
    _rule(
        "not divided",
        "A division is missing.",
        "A / B => A",
    ),
    _rule(
        "exp lost",
        "You stop at a logarithm: the exp is missing.",
        "A.exp() => A",
        "A.expm1() => A",
    ),
    _rule(
        "one not taken away",
        "exp of zero is 1: a 1 has to be taken away, so that nothing is left where "
        "both policies agree.",
        "A.expm1() => A.exp()",
    ),
    _rule(
        "logarithms divided",
        "You divide logarithms. A quotient of probabilities is exp of a difference of "
        "their logarithms.",
        "(A - B).exp() => A / B",
        "(A - B).exp() => (A / B).exp()",
    ),
    _rule(
        "exp too early",
        "You leave the logarithms too early: exp of a very negative number is zero, "
        "and 0/0 is not a number. Subtract first, exp last.",
        "(A - B).exp() => A.exp() / B.exp()",
        "torch.nn.functional.logsigmoid(A) => A.sigmoid().log()",
    ),
    _rule(
        "log too late",
        "softmax rounds an unlikely token to zero, and log(0) is infinite. "
        "log_softmax does both at once and stays finite.",
        "A.log_softmax(dim=B) => A.softmax(dim=B).log()",
    ),
    _rule(
        "log of padded softmax",
        "A small number added before the logarithm changes every score, and bounds "
        "the unlikely ones. log_softmax needs none.",
        "A.log_softmax(dim=B) => (A.softmax(dim=B) + 1e-8).log()",
    ),
    _rule(
        "log lost",
        "These are probabilities: the logarithm is missing.",
        "A.log_softmax(dim=B) => A.softmax(dim=B)",
        "torch.nn.functional.logsigmoid(A) => A.sigmoid()",
    ),
    _rule(
        "log added",
        "These are logarithms of weights. The weights themselves are asked for.",
        "A.softmax(dim=B) => A.log_softmax(dim=B)",
    ),
    _rule(
        "not normalized",
        "These are raw logits. They have to be normalized over the vocabulary first.",
        "A.log_softmax(dim=B) => A",
        "A.softmax(dim=B) => A",
    ),
    _rule(
        "detach lost",
        "",  # general advice names the argument
        "A.detach() => A",
    ),
    _rule(
        "min for max",
        "You take the larger of two where the smaller is asked for, or the other way "
        "round.",
        "A.minimum(B) => A.maximum(B)",
        "A.maximum(B) => A.minimum(B)",
        "A.amax(dim=B) => A.amin(dim=B)",
        "A.amin(dim=B) => A.amax(dim=B)",
    ),
    _rule(
        "min lost",
        "You keep only one of the two that have to be compared.",
        "A.minimum(B) => A",
        "A.minimum(B) => B",
    ),
    _rule(
        "clamp one-sided",
        "You bound on one side only.",
        "A.clamp(B, C) => A.clamp(min=B)",
        "A.clamp(B, C) => A.clamp(max=C)",
    ),
    _rule(
        "clamp two-sided",
        "You bound on both sides. One of the two is left open here.",
        "A.clamp(max=1.2) => A.clamp(0.8, 1.2)",
    ),
    _rule(
        "clamp turned",
        "You bound from the wrong side: min= keeps what is larger, max= what is "
        "smaller.",
        "A.clamp(min=B) => A.clamp(max=B)",
        "A.clamp(max=B) => A.clamp(min=B)",
    ),
    _rule(
        "clamp lost",
        "A bound is missing.",
        "A.clamp(B, C) => A",
        "A.clamp(max=B) => A",
    ),
    _rule(
        "floor lost",
        "Where nothing is counted you divide zero by zero. Give the divisor a floor.",
        "A.clamp(min=B) => A",
    ),
    _rule(
        "floor too high",
        "Your floor is so high that it changes what was right already.",
        "A.clamp(min=1) => A + 1",
        "A.clamp(min=1) => A.clamp(min=2)",
    ),
    _rule(
        "mask multiplied",
        "Padding may hold anything, and 0 times infinity is not a number. Choose what "
        "counts instead of multiplying.",
        "torch.where(A, B, 0.0) => A * B",
    ),
    _rule(
        "mask lost",
        "The mask is not used here, so padding takes part.",
        "torch.where(A, B, 0.0) => B",
    ),
    _rule(
        "mask inverted",
        "The mask is the wrong way round: you keep the padding and drop what counts.",
        "torch.where(A, B, C) => torch.where(~A, B, C)",
    ),
    _rule(
        "condition lost",
        "Two conditions have to hold, and you ask for one of them.",
        "A & B => A",
        "A & B => B",
        "A and B => A",
        "A and B => B",
    ),
    _rule(
        "either lost",
        "There are two ways to qualify, and you let only one of them count.",
        "A | B => A",
        "A | B => B",
    ),
    _rule(
        "and for or",
        "You ask for one of two where both are needed, or for both where one is "
        "enough.",
        "A & B => A | B",
        "A | B => A & B",
        "A and B => A or B",
    ),
    _rule(
        "spread biased",
        "You divide the squares by G. The sample spread divides them by G - 1, as "
        "torch does by default.",
        "A.std(dim=B, keepdim=True) => A.std(dim=B, keepdim=True, correction=0)",
    ),
    _rule(
        "variance",
        "You divide by the variance. The spread is its square root.",
        "A.std(dim=B, keepdim=True) => A.var(dim=B, keepdim=True)",
    ),
    _rule(
        "root lost",
        "The square root is missing.",
        "A ** 0.5 => A",
    ),
    _rule(
        "square lost",
        "The square is missing.",
        "A ** 2 => A",
        "A ** 2 => A.abs()",
    ),
    _rule(
        "added up early",
        "You average the logarithms along an axis before exp. Each token has a ratio "
        "of its own.",
        "A.exp() => A.mean(dim=-1, keepdim=True).exp()",
    ),
    _rule(
        "trial axis",
        "The new axis stands in the wrong place, so the numbers meet the wrong "
        "partners. Name the axes on both sides.",
        "A[..., None] => A[:, None]",
        "A[..., None] => A[None]",
        "A[..., None] => A",
        "A[..., None] => A.T[..., None]",
        "A[:, None, :] => A[None]",
        "A[:, None, :] => A",
    ),
    _rule(
        "squeezed too much",
        "squeeze() without an axis also drops a batch, trial or pos axis of size 1. "
        "Say which axis has to go.",
        "A.squeeze(-1) => A.squeeze()",
    ),
    _rule(
        "axis left",
        "",  # general advice says which
        "A.squeeze(-1) => A",
    ),
    _rule(
        "shift lost",
        "The two are not shifted against each other by one place.",
        "A[:, :-1] => A",
        "A[:, 1:] => A",
        "A[:, :-1] => A[:, 1:]",
        "A[:, 1:] => A[:, :-1]",
        "A[:, 1:, None] => A[:, :-1, None]",
        "A[:, 1:, None] => A[:, :, None]",
    ),
    _rule(
        "first group",
        "You use the first group's number for all groups. Each group needs its own.",
        "A[:, :1] => A[:1, :1]",
        "A[..., :1] => A[:1, :1]",
    ),
    _rule(
        "wrong count",
        "You count along the wrong axis: ask how many of what you divide by.",
        "A.shape[-1] => A.shape[-2]",
        "A.shape[-1] => A.shape[0]",
        "A.shape[-1] => A.numel()",
        "A.numel() => A.shape[-1]",
        "A.numel() => A.shape[0]",
        "A.shape[1] => A.shape[0]",
        "A.shape[0] => A.shape[1]",
    ),
    _rule(
        "comparison",
        "A comparison lets the wrong ones through: ask what happens at equality, and "
        "which side is meant.",
        "A > B => A >= B",
        "A > B => A < B",
        "A < B => A <= B",
        "A < B => A > B",
        "A <= B => A < B",
        "A <= B => A >= B",
        "A == B => A != B",
    ),
    _rule(
        "almost equal",
        "A small difference is a difference. Ask whether the numbers are equal, not "
        "whether they are close.",
        "A == B => (A - B).abs() < 1e-2",
        "A == B => (A - B).abs() < 1e-6",
    ),
    _rule(
        "not sorted",
        "You compare with the numbers as they stand. The truth is the sorted list.",
        "sorted(A) => A",
        "A.sort(dim=B).values => A",
    ),
    _rule(
        "sorted too much",
        "You sort the response too, which does the policy's work for it.",
        "zip(A, B) => zip(sorted(A), B)",
    ),
    _rule(
        "count without limit",
        "What occurs twice still pays. Ask for exactly one.",
        "A.count(B) == 1 => A.count(B) > 0",
        "A.count(B) == 1 => A.count(B)",
    ),
    _rule(
        "cut at the other end",
        "You cut at the first place where the last one is meant, or the other way "
        "round.",
        "A.rpartition(B) => A.partition(B)",
        "A.partition(B) => A.rpartition(B)",
    ),
    _rule(
        "cut lost",
        "A cut is missing, and more of the text is left than counts.",
        "A.rpartition(B)[0] => A",
        "A.rpartition(B)[2] => A",
        "A.partition(B)[0] => A",
    ),
    _rule(
        "not stripped",
        "White space is left around the text.",
        "A.strip() => A",
    ),
    _rule(
        "branch lost",
        "You answer the same in both branches. Ask first which of them holds.",
        "A if B else C => A",
        "A if B else C => C",
        "A if B else C => C if B else A",
    ),
    _rule(
        "running count lost",
        "You look at each place alone. Count along the row what came before it.",
        "A.cumsum(dim=B) => A",
    ),
    _rule(
        "order",
        "The order is wrong: begin at the other end.",
        "reversed(A) => A",
    ),
    _rule(
        "repeated as a block",
        "The whole block is repeated, so neighbours belong to different groups.",
        "A.repeat_interleave(B, dim=0) => A.repeat(B, 1)",
        "A.repeat_interleave(B, dim=0) => A.repeat_interleave(B, dim=1)",
        "A.repeat_interleave(B, dim=0) => A.repeat_interleave(B)",
    ),
    _rule(
        "another statistic",
        "You take another number than the mean of the group: the middle one, or an "
        "extreme one.",
        "A.mean(dim=B, keepdim=True) => A.median(dim=B, keepdim=True).values",
        "A.mean(dim=B, keepdim=True) => A.amax(dim=B, keepdim=True)",
        "A.mean(dim=B) => A.median(dim=B).values",
        "A.mean(dim=B) => A.amax(dim=B)",
    ),
    _rule(
        "factor twice",
        "A factor stands there twice.",
        "A * B => A * A * B",
        "A * B => A * B * B",
    ),
    _rule(
        "plus for times",
        "You add two numbers that have to be multiplied.",
        "A * B => A + B",
    ),
    _rule(
        "last one only",
        "You keep the last one along an axis where all of them count.",
        "A.sum(dim=-1) => A[..., -1]",
        "A.mean(dim=-1) => A[..., -1]",
    ),
    _rule(
        "another axis squeezed",
        "You squeeze another axis than the one that gather left.",
        "A.squeeze(-1) => A.squeeze(-2)",
        "A.squeeze(-1) => A.squeeze(0)",
        "A.squeeze(-1) => A.squeeze(1)",
    ),
    _rule(
        "range for spread",
        "You divide by the distance from the smallest to the largest. The spread is "
        "the standard deviation.",
        "A.std(dim=B, keepdim=True) => "
        "(A.amax(dim=B, keepdim=True) - A.amin(dim=B, keepdim=True))",
    ),
    _rule(
        "sign dropped",
        "You take the size of a difference, without its sign. Here the sign counts.",
        "A - B => (A - B).abs()",
    ),
    _rule(
        "difference squared",
        "You square a difference. That is another measure: small ones count for less, "
        "and the sign is lost.",
        "A.expm1() - A => A ** 2 / 2",
        "A.expm1() - A => A ** 2",
        "A.expm1() - A => A.abs()",
    ),
    _rule(
        "difference of probabilities",
        "You take a difference of probabilities. Here it is one of their logarithms.",
        "A - B => A.exp() - B.exp()",
    ),
    _rule(
        "logarithm for probability",
        "You use a logarithm where the probability itself is the weight, or the other "
        "way round.",
        "A * B => A.log() * B",
        "A * B => A * B.exp()",
    ),
    _rule(
        "gradient in part",
        "The values are right, but the exp no longer carries a gradient: it was "
        "detached on the way.",
        "A.exp() => A.detach().exp()",
        "A.expm1() => A.detach().expm1()",
    ),
    _rule(
        "linear for exp",
        "1 + x is exp(x) only near zero. The exp itself is asked for.",
        "A.exp() => 1 + A",
    ),
    _rule(
        "group for batch",
        "You divide by another number than that of what you added up.",
        "A.mean(dim=-1) => A.sum(dim=-1) / A.shape[0]",
        "A.sum(dim=B) => A.float().sum(dim=B) / A.shape[1]",
    ),
    _rule(
        "sorted the wrong way",
        "You sort from the largest to the smallest.",
        "sorted(A) => sorted(A, reverse=True)",
        "A.sort(dim=B) => A.sort(dim=B, descending=True)",
    ),
    _rule(
        "both sorted",
        "You sort the responses too, which does the policy's work for it.",
        "A == B => A.sort(dim=-1).values == B",
    ),
    _rule(
        "size of the difference",
        "You add up how far the numbers are apart. What counts is whether they are "
        "equal.",
        "(A == B).sum(dim=C) => (A - B).abs().sum(dim=C)",
    ),
    _rule(
        "number type",
        "The values are right, but not their type: a later cell calculates with them.",
        "A.float() => A",
    ),
)
