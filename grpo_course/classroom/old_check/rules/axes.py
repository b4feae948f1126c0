"""Axes: along which one, kept or lost, shifted, squeezed, counted."""

from grpo_course.classroom.old_check.rules.rule import rule

RULES = (
    rule(
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
    rule(
        "whole",
        "Your {REDUCE} runs over everything at once, and mixes rows that have nothing "
        "to do with each other. Say along which axis.",
        "A.REDUCE(dim=B) => A.REDUCE()",
        "A.REDUCE(dim=B, keepdim=True) => A.REDUCE()",
    ),
    rule(
        "keepdim lost",
        "Your {REDUCE} lost its axis, and the result is lined up with another one. "
        "Keep an axis of size 1: keepdim=True.",
        "A.REDUCE(dim=B, keepdim=True) => A.REDUCE(dim=B)",
    ),
    rule(
        "keepdim kept",
        "Your {REDUCE} keeps an axis of size 1. Here it has to go: leave keepdim out.",
        "A.REDUCE(dim=B) => A.REDUCE(dim=B, keepdim=True)",
    ),
    rule(
        "sum for mean",
        "You add up where a mean is asked for: your result grows with how many numbers "
        "there are.",
        "A.mean(dim=B, keepdim=True) => A.sum(dim=B, keepdim=True)",
        "A.mean(dim=B) => A.sum(dim=B)",
        "A.mean() => A.sum()",
    ),
    rule(
        "mean for sum",
        "You take a mean where a sum is asked for: your result is too small by the "
        "number of entries.",
        "A.sum(dim=B, keepdim=True) => A.mean(dim=B, keepdim=True)",
        "A.sum(dim=B) => A.float().mean(dim=B)",
        "A.sum() => A.float().mean()",
    ),
    rule(
        "sum along one axis",
        "You add up along one axis and average along the others, so a larger batch or "
        "a longer response counts for more. Take one mean over all.",
        "A.mean() => A.sum(dim=-1).mean()",
        "A.mean() => A.sum(dim=0).mean()",
    ),
    rule(
        "mean left open",
        "You average along one axis only. The result is one number: the mean over all.",
        "A.mean() => A.mean(dim=-1)",
        "A.mean() => A.mean(dim=0)",
        "A.mean() => A",
    ),
    rule(
        "added up early",
        "You average the logarithms along an axis before exp. Each token has a ratio "
        "of its own.",
        "A.exp() => A.mean(dim=-1, keepdim=True).exp()",
    ),
    rule(
        "trial axis",
        "The new axis is missing or stands in the wrong place, so the numbers meet "
        "the wrong partners. Name the axes on both sides.",
        "A[..., None] => A[:, None]",
        "A[..., None] => A[None]",
        "A[..., None] => A",
        "A[..., None] => A.T[..., None]",
        "A[:, None, :] => A[None]",
        "A[:, None, :] => A",
    ),
    rule(
        "squeezed too much",
        "squeeze() without an axis also drops a batch, trial or pos axis of size 1. "
        "Say which axis has to go.",
        "A.squeeze(-1) => A.squeeze()",
    ),
    rule(
        "axis left",
        "",  # general advice says which
        "A.squeeze(-1) => A",
    ),
    rule(
        "shift lost",
        "The two are not shifted against each other by one place.",
        "A[:, :-1] => A",
        "A[:, 1:] => A",
        "A[:, :-1] => A[:, 1:]",
        "A[:, 1:] => A[:, :-1]",
        "A[:, 1:, None] => A[:, :-1, None]",
        "A[:, 1:, None] => A[:, :, None]",
    ),
    rule(
        "first group",
        "You use the first group's number for all groups. Each group needs its own.",
        "A[:, :1] => A[:1, :1]",
        "A[..., :1] => A[:1, :1]",
    ),
    rule(
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
    rule(
        "running count lost",
        "You look at each place alone. Count along the row what came before it.",
        "A.cumsum(dim=B) => A",
    ),
    rule(
        "last one only",
        "You keep the last one along an axis where all of them count.",
        "A.sum(dim=-1) => A[..., -1]",
        "A.mean(dim=-1) => A[..., -1]",
    ),
    rule(
        "another axis squeezed",
        "You squeeze another axis than the one that gather left.",
        "A.squeeze(-1) => A.squeeze(-2)",
        "A.squeeze(-1) => A.squeeze(0)",
        "A.squeeze(-1) => A.squeeze(1)",
    ),
    rule(
        "group for batch",
        "You divide by another number than that of what you added up.",
        "A.mean(dim=-1) => A.sum(dim=-1) / A.shape[0]",
        "A.sum(dim=B) => A.float().sum(dim=B) / A.shape[1]",
    ),
)
