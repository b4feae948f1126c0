"""Judge a reward that the learner designed, on every prompt and response there is."""

from collections.abc import Callable
from itertools import product
from math import isfinite

import torch

from grpo_course.classroom.old_check.colour import show_verdict
from grpo_course.classroom.old_check.report import wrap
from grpo_course.sort import (
    all_responses,
    all_rewards,
    best_paid_mistakes,
    compute_reward,
    one_number,
)

VOCAB_SIZE, LENGTH = 5, 3
# Prompt, a response with something right, one with nothing right.
PARTLY_RIGHT = (
    ([1, 0, 2], [0, 1, 4], [4, 3, 3]),
    ([3, 2, 4], [2, 3, 0], [1, 0, 0]),
    ([2, 2, 0], [0, 2, 4], [4, 3, 1]),
)


def judge_reward(reward_fn: Callable) -> None:
    """Print what a good reward of the sort task has, and whether this one has it.

    `reward_fn` maps two lists, prompt and response, to a number. It is asked about
    every list of three numbers from 0 to 4, as prompt and as response.
    """
    if fault := number_fault(reward_fn):
        show_verdict(wrap(f"[x] Not a reward yet: {fault}"))
        return
    show_verdict(
        wrap("[v] One finite number for each prompt and response, each time the same.")
        + in_words(
            "The sorted prompt alone is paid best, for each of the 125 prompts.",
            payment_fault(reward_fn),
        )
        + in_words("What is partly right earns more.", credit_fault(reward_fn))
    )


def in_words(claim: str, fault: str) -> list[str]:
    """A claim that holds, or what is wrong with it."""
    return wrap(f"[x] {fault}" if fault else f"[v] {claim}")


def number_fault(reward_fn: Callable) -> str:
    """The first pair for which a reward gives no number to rely on; "" if none."""
    lists = all_responses(VOCAB_SIZE, LENGTH).tolist()
    for prompt, response in product(lists, repeat=2):
        given, call = (
            (prompt[:], response[:]),
            f"of the response {response} to {prompt}",
        )
        try:
            first, again = (one_number(reward_fn(*given)) for _ in range(2))
        except Exception as error:
            return f"the reward {call} ends in {type(error).__name__}: {error}"
        if given != (prompt, response):
            return (
                f"the reward {call} changes a list that it is given. sorted(prompt) "
                "makes a new one; prompt.sort() changes the old one."
            )
        if not isfinite(first):
            return f"the reward {call} is {first}. Pay a finite number."
        if first != again:
            return (
                f"the reward {call} is {first:g} the first time and {again:g} the "
                "second. Let it depend on prompt and response alone."
            )
    return ""


def payment_fault(reward_fn: Callable) -> str:
    """Where a wrong response earns as much as the sorted prompt; "" if nowhere."""
    prompts = all_responses(VOCAB_SIZE, LENGTH)
    mistakes, earned = best_paid_mistakes(prompts, VOCAB_SIZE, reward_fn)
    truths = prompts.sort(dim=-1).values
    due = compute_reward(prompts, truths[:, None], reward_fn)[:, 0]
    repeats = torch.tensor([len(set(prompt)) < LENGTH for prompt in prompts.tolist()])
    hacked = earned >= due
    if not hacked.any():
        return ""
    rewards = all_rewards(prompts, VOCAB_SIZE, reward_fn)
    if (rewards == rewards[:, :1]).all():
        return (
            "Every response to a prompt earns the same, so there is nothing to learn."
        )
    where = hacked & ~repeats if (hacked & ~repeats).any() else hacked
    worst = int((earned - due).masked_fill(~where, -torch.inf).argmax())
    told = (
        f"A wrong response earns as much as the sorted prompt, or more, for "
        f"{int(hacked.sum())} of the 125 prompts. To {prompts[worst].tolist()}, "
        f"{mistakes[worst].tolist()} earns {earned[worst]:g} and the sorted "
        f"{truths[worst].tolist()} {due[worst]:g}."
    )
    if (hacked & ~repeats).any():
        return told
    return f"{told} All of these prompts hold a number twice or more."


def credit_fault(reward_fn: Callable) -> str:
    """A response with something right that earns no more than one with nothing."""
    for prompt, partly, wrong in PARTLY_RIGHT:
        better, worse = (one_number(reward_fn(prompt, r)) for r in (partly, wrong))
        if better <= worse:
            return (
                f"No partial credit: to {prompt}, {partly} has something right and "
                f"earns {better:g}, {wrong} has nothing right and earns {worse:g}."
            )
    return ""
