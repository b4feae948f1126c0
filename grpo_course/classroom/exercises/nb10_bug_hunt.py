"""The exercises of 10_bug_hunt on tokens, rows and a format; and all in order."""

import re

import torch
from torch import Tensor

from grpo_course.classroom.bugs import rewards, tokens
from grpo_course.classroom.check.exercise import Case, Exercise, Mistake
from grpo_course.classroom.exercises import bug_hunt_losses as losses
from grpo_course.classroom.exercises import bug_hunt_steps as steps
from grpo_course.classroom.exercises.bug_hunt_diagnosis import DIAGNOSIS

ROWS = "batch pos"


def _scores_case(description: str, *rows: list[int]) -> Case:
    ids = torch.tensor(rows)
    logits = torch.arange(1.0, ids.numel() * 6 + 1).mul(1.7).sin().mul(2)
    return Case(description, {"logits": logits.view(*ids.shape, 6), "tokens": ids})


def _pick(values: Tensor, ids: Tensor) -> Tensor:
    return values.gather(-1, ids[..., None]).squeeze(-1)


REPAIRED_SCORES = Exercise(
    key="10.3",
    name="repaired_scores",
    solution=tokens.repaired_scores,
    axes={"logits": "batch pos vocab", "tokens": ROWS, "return": ROWS},
    gradient_to=("logits",),
    cases=(
        _scores_case("one response of three tokens", [1, 4, 2]),
        _scores_case("two responses", [0, 1, 2, 3], [5, 3, 3, 0]),
    ),
    mistakes=(
        Mistake(
            tokens.unshifted_scores,
            "Not shifted: you still read token t from the logits at t. They are "
            "the forecast of token t + 1.",
        ),
        Mistake(
            lambda x, ids: _pick(x.log_softmax(-1)[:, 1:], ids[:, :-1]),
            "Shifted the other way: logits at t forecast what comes after t, so "
            "the logits lose their last position and the tokens their first.",
        ),
        Mistake(
            lambda x, ids: _pick(x[:, :-1], ids[:, 1:]),
            "These are logits: log_softmax over the vocabulary is missing.",
        ),
        Mistake(
            lambda x, ids: _pick(x.softmax(-1)[:, :-1], ids[:, 1:]),
            "These are probabilities: a ratio needs their logarithms.",
        ),
        Mistake(
            lambda x, ids: _pick(x.log_softmax(-1), ids),
            "One score too many: nothing forecasts the first token.",
        ),
    ),
    insight="Drop the last logits and the first token, and the two line up.",
)


def _mask_case(description: str, *rows: list[int], eos: int = 2, hint="") -> Case:
    return Case(description, {"tokens": torch.tensor(rows), "eos": eos}, hint)


REPAIRED_MASK = Exercise(
    key="10.5",
    name="repaired_mask",
    solution=tokens.repaired_mask,
    axes={"tokens": ROWS, "return": ROWS},
    cases=(
        _mask_case("padding is 0, EOS is 2", [5, 7, 2, 0, 0, 0]),
        _mask_case("padding is EOS", [5, 7, 2, 2, 2, 2]),
        _mask_case("cut off: no EOS at all", [5, 0, 7, 4], [5, 2, 0, 0]),
        _mask_case("EOS comes first, and once more", [2, 0, 2, 0]),
        _mask_case(
            "EOS is 7",
            [2, 7, 0, 0],
            eos=7,
            hint="You look for the token 2. Which one ends a response is `eos`.",
        ),
    ),
    mistakes=(
        Mistake(
            tokens.padded_mask,
            "The padding is still in: you wait for a second EOS. A token counts if "
            "no EOS came before it.",
        ),
        Mistake(
            lambda ids, eos: (ids == eos).cumsum(-1) == 0,
            "The EOS itself is lost. It was sampled, and the policy must learn to "
            "write it: count the EOS tokens before each token.",
        ),
        Mistake(
            lambda ids, eos: ids != eos,
            "You drop EOS and keep what follows. It is the other way round.",
        ),
        Mistake(
            lambda ids, eos: ids != 0,
            "You take 0 for padding. Here 0 is a token like others, and padding may "
            "be EOS. Only the first EOS says where a response ends.",
        ),
    ),
    insight="No EOS before it: that holds whatever the padding is.",
)


def repaired_rows(prompts: Tensor, num_responses: int) -> Tensor:
    """int [batch pos] -> [row pos]"""
    return tokens.repaired_rows(prompts, num_responses)


def _rows_case(description: str, prompts: list, num_responses: int) -> Case:
    args = {"prompts": torch.tensor(prompts), "num_responses": num_responses}
    return Case(description, args)


REPAIRED_ROWS = Exercise(
    key="10.6",
    name="repaired_rows",
    solution=repaired_rows,
    axes={"prompts": ROWS, "return": "row pos"},
    cases=(
        _rows_case("two prompts, three responses", [[1, 0, 2], [3, 2, 4]], 3),
        _rows_case("three prompts, two responses", [[1, 0], [3, 2], [5, 4]], 2),
        _rows_case("the same prompt twice", [[1, 0], [1, 0], [5, 4]], 3),
        _rows_case("a prompt before a smaller one", [[3, 2], [1, 0]], 2),
    ),
    mistakes=(
        Mistake(
            tokens.shuffled_rows,
            "Still ABCABC: the whole block is repeated, so a group of neighbours "
            "holds different prompts. Repeat each row before the next one.",
        ),
        Mistake(
            lambda p, n: torch.tensor(sorted(p.repeat(n, 1).tolist())),
            "You sort the rows. The groups stand in the order of the prompts: another "
            "order pairs them with the wrong answers.",
        ),
        Mistake(
            lambda p, n: p.repeat_interleave(n, dim=1),
            "You repeat the numbers inside a prompt. The axis to repeat is batch.",
        ),
        Mistake(
            lambda p, n: p.repeat_interleave(n),
            "Without dim, repeat_interleave flattens first. Name the axis.",
        ),
        Mistake(
            lambda p, n: p[:, None].expand(-1, n, -1),
            "The groups are right, as an axis of their own. Flatten batch and "
            "trial into one axis of rows.",
        ),
    ),
    insight="AABBCC: neighbours are a group, and view(batch, trial) is safe.",
)

WHOLE = "<think>2 + 2</think><answer>4</answer>"


def _reward_case(description: str, completion: str, hint: str = "") -> Case:
    return Case(description, {"completion": completion}, hint)


def _answered(answer: str) -> str:
    return WHOLE.replace("4", answer)


def _parts(completion: str, number: bool, once: bool = True) -> float:
    found = [completion.count(tag) for tag in rewards.TAGS]
    points = sum(count == 1 if once else count > 0 for count in found)
    return (points + number) / 10


def _by_pattern(completion: str, pattern: str) -> float:
    return _parts(completion, re.search(pattern, completion) is not None)


def _has_answer(completion: str) -> bool:
    return rewards.ANSWER.search(completion) is not None


REPAIRED_FORMAT_REWARD = Exercise(
    key="10.7",
    name="repaired_format_reward",
    solution=rewards.repaired_format_reward,
    cases=(
        _reward_case("everything is there", WHOLE),
        _reward_case("the last tag is missing", WHOLE.removesuffix("</answer>")),
        _reward_case("a word before it", "Sure! " + WHOLE),
        _reward_case("only a number", "4"),
        _reward_case("an answer in words", WHOLE.replace("4", "four")),
        _reward_case("a negative number", WHOLE.replace("4", " -4 ")),
        _reward_case("a tag twice", "<think>" + WHOLE),
        _reward_case("nothing", ""),
        _reward_case("two numbers and words", _answered("about 12 or 5")),
        _reward_case("a decimal", _answered("4.5")),
        _reward_case("two digits", _answered("12")),
        _reward_case(
            "a number that no <answer> opens",
            "<think>2 + 2</think>12 4</answer>",
            "The number must stand between <answer> and </answer>: both are needed.",
        ),
        _reward_case(
            "a word after it",
            WHOLE + " Bye.",
        ),
        _reward_case(
            "the last tag twice",
            WHOLE + "</answer>",
            "Each of the four tags pays only if it occurs exactly once.",
        ),
    ),
    mistakes=(
        Mistake(
            rewards.one_regex_reward,
            "Still all or nothing: one expression decides about everything. Look "
            "for each part on its own, and add.",
        ),
        Mistake(
            lambda c: _parts(c, _has_answer(c), once=False),
            "A tag that occurs twice still pays. The policy will repeat it: count, "
            "and pay for exactly one.",
        ),
        Mistake(
            lambda c: _parts(c, re.search(r"\d", c) is not None),
            "You pay for a number anywhere. It must stand between the answer tags.",
        ),
        Mistake(
            lambda c: _parts(c, False),
            "The number is not paid for: 0.1 if the answer is a whole number.",
        ),
        Mistake(
            lambda c: _by_pattern(c, r"<answer>.*\d.*</answer>"),
            "Any digit between the tags pays. The number must stand alone there, with "
            "blanks at most.",
        ),
        Mistake(
            lambda c: _by_pattern(c, r"<answer>\s*-?[\d.]+\s*</answer>"),
            "A decimal pays, too: a whole number has digits only, no point.",
        ),
        Mistake(
            lambda c: _by_pattern(c, r"<answer>\s*-?\d\s*</answer>"),
            "Only one digit is allowed: \\d+ takes several.",
        ),
        Mistake(
            lambda c: _by_pattern(c, r"-?\d+\s*</answer>"),
            "Nothing has to open the answer: your expression needs <answer> before "
            "the number, with blanks at most between them.",
        ),
        Mistake(
            lambda c: _by_pattern(c, r"<answer>\s*-?\d+\s*</answer>$"),
            "The answer may stand anywhere, not at the end only: leave out the $.",
        ),
        Mistake(
            lambda c: _by_pattern(c, r"<answer>\s*\d+\s*</answer>"),
            "A minus sign makes your expression fail: allow -? before the digits.",
        ),
    ),
    insight="Every part has its own price, so every step towards the form pays.",
)

EXERCISES = (  # 10.0 names the bugs of the runs; exercise 10.n repairs bug n
    DIAGNOSIS,
    losses.REPAIRED_RATIO_LOSS,
    losses.REPAIRED_CLIP_LOSS,
    REPAIRED_SCORES,
    steps.REPAIRED_OLD_AND_NEW,
    REPAIRED_MASK,
    REPAIRED_ROWS,
    REPAIRED_FORMAT_REWARD,
    steps.REPAIRED_NORMALIZE,
    steps.CONVERTED_DELTAS,
    losses.REPAIRED_K3,
    losses.REPAIRED_PENALTY,
    losses.REPAIRED_TOKEN_MEAN,
    steps.REPAIRED_STEP,
)
