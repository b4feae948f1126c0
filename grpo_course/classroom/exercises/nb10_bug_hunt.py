"""The exercises of 10_bug_hunt: 10.0 names the bugs of the runs, 10.n repairs bug n."""

import re

import torch
from torch import Tensor, nn

from grpo_course.algorithm.kl import k1, k3
from grpo_course.classroom.bugs import loss_bugs, reward_bugs, token_bugs
from grpo_course.classroom.bugs.bug import Bug
from grpo_course.classroom.bugs.loss_bugs import PROBS, REF_PROBS
from grpo_course.classroom.bugs.sheet import BUGS
from grpo_course.classroom.check.exercise import Case, Exercise, Mistake
from grpo_course.classroom.exercises.shared import (
    ANYTHING,
    CLOSE_TOGETHER,
    FIRST_EOS_BY_ARGMAX,
    FROM_EOS_ON,
    NO_LOGARITHM_FOR_A_RATIO,
    NOT_CLIPPED,
    ROWS,
    SAME_COUNT_OF_EOS,
    TOKENS,
    TOO_EARLY,
    TOO_LATE,
    case,
    group_std,
    mask_of,
    numbers,
    pick,
    products,
    text_case,
    two_policies,
)

RUNS = {  # the run -> its bug, and what is seen of it before any code is read
    "A": (loss_bugs.QUOTIENT, "the reward falls from the first step on"),
    "B": (loss_bugs.WRONG_SIDE, "it learns fast, then stays behind"),
    "C": (token_bugs.UNSHIFTED, "ratios leave 1 before any update, each time alike"),
    "D": (loss_bugs.DROPOUT, "ratios leave 1 before any update, each time by others"),
    "E": (token_bugs.ROW_ORDER, "it stays behind only where prompts pay differently"),
    "F": (reward_bugs.TINY_EPSILON, "all rewards of a prompt are equal, and it drifts"),
    "G": (loss_bugs.K1_AS_LOSS, "a heavy beta does not hold it at its reference"),
}


def _mistake(run: str, bug: Bug) -> Mistake:
    """One run is taken for another bug."""

    def answer(asked: str) -> str:
        return bug.name if asked == run else diagnosis(asked)

    hint = (
        f"'{bug.name}' shows otherwise: {bug.symptom}. "
        f"Of run {run} you saw: {RUNS[run][1]}."
    )
    return Mistake(answer, hint)


def diagnosis(run):
    """the letter of a run -> the name of its bug, one of the list"""
    causes = {
        "A": "quotient ratio",
        "B": "clip on the wrong side",
        "C": "old log-probabilities shifted by one",
        "D": "dropout between old and new",
        "E": "groups that mix prompts",
        "F": "epsilon below rounding",
        "G": "k1 as a loss",
    }
    return causes[run]


DIAGNOSIS = Exercise(
    key="10.0",
    name="diagnosis",
    solution=diagnosis,
    choice=True,
    cases=tuple(
        case(
            f"run {run}",
            f"No bug of the list has this name. Of run {run} you saw: {seen}.",
            run=run,
        )
        for run, (_, seen) in RUNS.items()
    ),
    mistakes=tuple(
        _mistake(run, bug)
        for run, (right, _) in RUNS.items()
        for bug in BUGS
        if bug is not right
    ),
    equivalent={
        "run[:1]": "the name of a run is one letter",
    },
    insight="Seven causes from seven symptoms. Now find the line at fault in each.",
)


NO_MINUS = "The minus sign is missing: an optimizer makes a loss smaller."
LOSS_AXES = dict.fromkeys(("log_probs", "deltas", "old_log_probs", "return"), TOKENS)


def _loss_case(
    description: str, ratio: list, deltas: list, hint: str = "", **clip
) -> Case:
    """One token in each response, with probability 0.2 under the old policy."""
    old = torch.full((1, len(ratio), 1), 0.2).log()
    new = old + torch.tensor(ratio)[:, None].log()
    each = torch.tensor([deltas])[..., None]
    return case(
        description, hint, log_probs=new, deltas=each, old_log_probs=old, **clip
    )


def _many_tokens(**clip) -> Case:
    old = -numbers(2, 2, 3).abs() - 1.2
    return case(
        "two prompts, two responses, three tokens",
        log_probs=old + numbers(2, 2, 2, 3, scale=0.6)[1],
        deltas=numbers(3, 2, 2, 3, scale=2.0)[2],
        old_log_probs=old,
        **clip,
    )


def repaired_ratio_loss(log_probs, deltas, old_log_probs, **_):
    """float [batch trial pos] each -> float [batch trial pos]"""
    ratio = torch.exp(log_probs - old_log_probs)
    return -ratio * deltas


def _impossible(**clip) -> Case:
    return case(
        "tokens that are next to impossible",
        TOO_EARLY,
        log_probs=[[[-200.0], [-150.0]]],
        deltas=[[[1.0], [-2.0]]],
        old_log_probs=[[[-199.9], [-150.0]]],
        **clip,
    )


REPAIRED_RATIO_LOSS = Exercise(
    key="10.1",
    name="repaired_ratio_loss",
    solution=repaired_ratio_loss,
    axes=LOSS_AXES,
    gradient_to=("log_probs",),
    cases=(
        _loss_case("a good token, twice as likely as it was", [2.0], [1.0]),
        _loss_case("a bad token, half as likely as it was", [0.5], [-1.0]),
        _many_tokens(),
        _impossible(),
    ),
    words={
        "log_probs / old_log_probs": "Still a quotient of log-probabilities. They are "
        "negative: a token that becomes likelier makes this quotient smaller.",
        "difference turned": "Upside down: the ratio is new over old, so subtract old "
        "from new.",
        "exp lost": "This difference is the logarithm of the ratio: exp is missing.",
        "sign lost": NO_MINUS,
    },
    mistakes=(
        Mistake(
            lambda new, d, old: -new * d,
            "This is the naive loss: it forgets who sampled. Weigh by the ratio.",
        ),
    ),
    insight="A quotient of probabilities is exp of a difference of logarithms.",
)


def _products(new: Tensor, d: Tensor, old: Tensor, low: float, high: float) -> tuple:
    return products((new - old).exp(), d, low, high)


CORNERS = (
    ("bad, but likelier", 1.5, -1.0),
    ("bad and rarer", 0.5, -1.0),
    ("good and likelier", 1.5, 1.0),
    ("good, but rarer", 0.5, 1.0),
)


def repaired_clip_loss(log_probs, deltas, old_log_probs, epsilon, epsilon_high, **_):
    """float [batch trial pos] each, float, float -> float [batch trial pos]"""
    ratio = torch.exp(log_probs - old_log_probs)
    clipped = ratio.clamp(1 - epsilon, 1 + epsilon_high)
    return -torch.minimum(ratio * deltas, clipped * deltas)


REPAIRED_CLIP_LOSS = Exercise(
    key="10.2",
    name="repaired_clip_loss",
    solution=repaired_clip_loss,
    axes=LOSS_AXES,
    gradient_to=("log_probs",),
    cases=(
        *(
            _loss_case(f"a {name} token", [ratio], [d], epsilon=0.2, epsilon_high=0.3)
            for name, ratio, d in CORNERS
        ),
        _many_tokens(epsilon=0.2, epsilon_high=0.3),
        _loss_case(
            "ratios of 4 and 0.01, either sign",
            [4.0, 4.0, 0.01, 0.01],
            [1.0, -1.0, 1.0, -1.0],
            "No ratio has a bound beside these two: a bad token that became far "
            "likelier is pulled back with all its ratio.",
            epsilon=0.2,
            epsilon_high=0.3,
        ),
        _impossible(epsilon=0.2, epsilon_high=0.3),
    ),
    words={
        "min for max": "max for both signs: now good tokens run away, too. Take the "
        "smaller.",
        "clipped * deltas": "Only the clipped product is left: a bad token that "
        "became likelier can never come back. Compare it with the free product.",
        "clamp lost": NOT_CLIPPED,
        "sign lost": NO_MINUS,
    },
    mistakes=(
        Mistake(
            lambda new, d, old, low, high: loss_bugs.wrong_side_loss(
                new, d, old_log_probs=old, epsilon=low, epsilon_high=high
            ),
            "Still on the wrong side: where delta is negative you keep the larger "
            "product. The sign of delta reverses the order by itself.",
        ),
        Mistake(
            lambda new, d, old, low, high: (
                -torch.minimum(*_products(new, d, old, low, low))
            ),
            "The upper end is 1 + epsilon_high: the range need not be symmetric.",
        ),
    ),
    insight="One minimum for either sign: it lets go only where moving on looks good.",
)


def _scores_case(description: str, *rows: list[int]) -> Case:
    ids = torch.tensor(rows)
    return case(description, logits=numbers(*ids.shape, 6, scale=2.0), tokens=ids)


def repaired_scores(logits, tokens):
    """float [batch pos vocab], int [batch pos] -> float [batch pos]"""
    log_probs = logits.log_softmax(dim=-1)[:, :-1]
    return log_probs.gather(-1, tokens[:, 1:, None]).squeeze(-1)


REPAIRED_SCORES = Exercise(
    key="10.3",
    name="repaired_scores",
    solution=repaired_scores,
    axes={"logits": "batch pos vocab", "tokens": ROWS, "return": ROWS},
    gradient_to=("logits",),
    cases=(
        _scores_case("one response of three tokens", [1, 4, 2]),
        _scores_case("two responses", [0, 1, 2, 3], [5, 3, 3, 0]),
        _scores_case("one response of two tokens", [3, 1]),
        case(
            "logits of 200 and -200",
            TOO_LATE,
            logits=200 * numbers(2, 3, 6),
            tokens=[[1, 4, 2], [0, 3, 5]],
        ),
    ),
    words={
        "logits.log_softmax(dim=-1)[:, 1:]": "Not shifted: you still read token t "
        "from the logits at t. They are the forecast of token t + 1.",
        "not normalized": "These are logits: log_softmax over the vocabulary is "
        "missing.",
        "log lost": NO_LOGARITHM_FOR_A_RATIO,
    },
    mistakes=(
        Mistake(
            lambda x, ids: pick(x.log_softmax(-1)[:, 1:], ids[:, :-1]),
            "Shifted the other way: logits at t forecast what comes after t, so the "
            "logits lose their last position and the tokens their first.",
        ),
        Mistake(
            lambda x, ids: pick(x.log_softmax(-1), ids),
            "One score too many: nothing forecasts the first token.",
        ),
    ),
    equivalent={
        "logits.log_softmax(dim=-1)": "gather reads only as many places as the tokens "
        "have",
    },
    insight="Drop the last logits and the first token, and the two line up.",
)


class _Model(nn.Module):
    """Its dropout draws anew at each call, and the same again for the next answer."""

    def __init__(self):
        super().__init__()
        self.layers, self.calls = loss_bugs.make_dropout_model(), 0

    def forward(self, tokens: Tensor) -> Tensor:
        self.calls += 1
        with torch.random.fork_rng():
            torch.manual_seed(self.calls)
            return self.layers(tokens)

    # Calling it and turning its dropout off is no change of an input.
    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Model)

    __hash__ = nn.Module.__hash__

    def __repr__(self) -> str:
        return "a model with dropout, in train mode"


def _modes(old_trains: bool, new_trains: bool):
    """Old and new scores of a model, each in train or eval mode."""

    def score(model: nn.Module, tokens: Tensor) -> Tensor:
        both = [model.train(mode)(tokens) for mode in (old_trains, new_trains)]
        log_probs = torch.stack(both).log_softmax(-1)
        return pick(log_probs, tokens.expand(2, *tokens.shape))

    return score


def _tracked(of_old: bool, of_new: bool):
    """Right scores, with a gradient in the old ones, the new ones, both or none."""

    def score(model: nn.Module, tokens: Tensor) -> Tensor:
        rows = _modes(False, False)(model, tokens)
        kept = zip(rows, (of_old, of_new), strict=True)
        return torch.stack([row if keep else row.detach() for row, keep in kept])

    return score


def _tokens_case(description: str, *shape: int) -> Case:
    tokens = torch.arange(torch.Size(shape).numel()).reshape(shape) % 8
    return case(description, model=_Model(), tokens=tokens)


def repaired_old_and_new(model, tokens):
    """model, int [batch pos] -> float [two batch pos], old first"""
    model.eval()
    index = tokens[..., None]
    with torch.no_grad():
        old = model(tokens).log_softmax(-1).gather(-1, index).squeeze(-1)
    new = model(tokens).log_softmax(-1).gather(-1, index).squeeze(-1)
    return torch.stack([old, new])


REPAIRED_OLD_AND_NEW = Exercise(
    key="10.4",
    name="repaired_old_and_new",
    solution=repaired_old_and_new,
    axes={"tokens": "batch pos", "return": "two batch pos"},
    gradient_to=("model",),
    cases=(
        _tokens_case("one response of four tokens", 1, 4),
        _tokens_case("three responses", 3, 5),
    ),
    mistakes=(
        Mistake(
            loss_bugs.dropout_in_between,
            "The new scores still come from train mode: a thinned copy of the model.",
        ),
        Mistake(
            _modes(True, True),
            "Both are thinned now, each by its own draw: the ratio is still noise. "
            "Turn dropout off for both.",
        ),
        Mistake(
            _modes(True, False),
            "Now the old scores are thinned: the copy that you compare with must be "
            "whole, too.",
        ),
        Mistake(
            lambda model, tokens: _modes(False, False)(model, tokens).exp(),
            NO_LOGARITHM_FOR_A_RATIO,
        ),
        Mistake(
            _tracked(False, False),
            "The numbers are right, but the new scores carry no gradient either: "
            "nothing could be learned. Only the old ones belong under no_grad().",
        ),
        Mistake(
            _tracked(True, True),
            "The numbers are right, but the old scores carry a gradient, too: in the "
            "ratio the two cancel. Score them under no_grad(), or detach() them.",
        ),
        Mistake(
            _tracked(True, False),
            "The numbers are right, but the gradient is in the old row, and none in "
            "the new. Old comes first, without a gradient.",
        ),
    ),
    equivalent={
        "log too late": "the logits of this model are small",
        "log of padded softmax": "the logits of this model are small",
    },
    insight="One model, scored twice in the same mode: every ratio is exactly 1.",
)


def repaired_mask(tokens, eos):
    """int [batch pos], int -> bool [batch pos], True where a token counts"""
    is_eos = (tokens == eos).long()
    return is_eos.cumsum(dim=-1) - is_eos == 0


REPAIRED_MASK = Exercise(
    key="10.5",
    name="repaired_mask",
    solution=repaired_mask,
    axes={"tokens": ROWS, "return": ROWS},
    cases=(
        case("padding is 0, EOS is 2", tokens=[[5, 7, 2, 0, 0, 0]], eos=2),
        case("padding is EOS", tokens=[[5, 7, 2, 2, 2, 2]], eos=2),
        case("cut off: no EOS at all", tokens=[[5, 0, 7, 4], [5, 2, 0, 0]], eos=2),
        case("EOS comes first, and once more", tokens=[[2, 0, 2, 0]], eos=2),
        case(
            "one response ends, one is cut", tokens=[[5, 2, 0, 0], [5, 0, 7, 4]], eos=2
        ),
        case(
            "EOS is 7",
            "You look for the token 2. Which one ends a response is `eos`.",
            tokens=[[2, 7, 0, 0]],
            eos=7,
        ),
    ),
    words={
        "A - B == 0 => A <= 1": "The padding is still in: you wait for a second EOS. "
        "A token counts if no EOS came before it.",
        "A - B == 0 => A > 0": FROM_EOS_ON,
        "A - B == 0 => tokens != eos": "You drop EOS and keep what follows. It is the "
        "other way round.",
        "A - B == 0 => tokens != 0": "You take 0 for padding. Here 0 is a token like "
        "others, and padding may be EOS. Only the first EOS says where a response "
        "ends.",
        "plus for minus": "The EOS itself is lost. It was sampled, and the policy "
        "must learn to write it: count the EOS tokens before each token.",
    },
    mistakes=(FIRST_EOS_BY_ARGMAX,),
    equivalent=SAME_COUNT_OF_EOS,
    insight="No EOS before it: that holds whatever the padding is.",
)


def _rows_case(description: str, prompts: list, num_responses: int) -> Case:
    return case(description, prompts=prompts, num_responses=num_responses)


def repaired_rows(prompts, num_responses):
    """int [batch pos], int -> int [row pos], groups one after the other"""
    return prompts.repeat_interleave(num_responses, dim=0)


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
        _rows_case("one prompt, one response", [[3, 2]], 1),
    ),
    words={
        "prompts.repeat(num_responses, 1)": "Still ABCABC: the whole block is "
        "repeated, so a group of neighbours holds different prompts. Repeat each row "
        "before the next one.",
        "prompts.repeat_interleave(num_responses, dim=1)": "You repeat the numbers "
        "inside a prompt. The axis to repeat is batch.",
        "prompts.repeat_interleave(num_responses)": "Without dim, repeat_interleave "
        "flattens first. Name the axis.",
    },
    mistakes=(
        Mistake(
            lambda p, n: torch.tensor(sorted(p.repeat(n, 1).tolist())),
            "You sort the rows. The groups stand in the order of the prompts: another "
            "order pairs them with the wrong answers.",
        ),
        Mistake(
            lambda p, n: p[:, None].expand(-1, n, -1),
            "The groups are right, as an axis of their own. Flatten batch and trial "
            "into one axis of rows.",
        ),
    ),
    insight="AABBCC: neighbours are a group, and view(batch, trial) is safe.",
)


WHOLE = "<think>2 + 2</think><answer>4</answer>"


def _answered(answer: str) -> str:
    return WHOLE.replace("4", answer)


def _parts(text: str, number: bool, once: bool = True) -> float:
    found = [text.count(tag) for tag in reward_bugs.TAGS]
    points = sum(count == 1 if once else count > 0 for count in found)
    return (points + number) / 10


def _by_pattern(text: str, pattern: str) -> float:
    return _parts(text, re.search(pattern, text) is not None)


def repaired_format_reward(completion):
    """str -> float between 0 and 0.5"""
    tags = ("<think>", "</think>", "<answer>", "</answer>")
    points = sum(completion.count(tag) == 1 for tag in tags)
    number = re.search(r"<answer>\s*-?\d+\s*</answer>", completion)
    return (points + (number is not None)) / 10


REPAIRED_FORMAT_REWARD = Exercise(
    key="10.7",
    name="repaired_format_reward",
    solution=repaired_format_reward,
    cases=(
        text_case("everything is there", WHOLE),
        text_case("the last tag is missing", WHOLE.removesuffix("</answer>")),
        text_case("a word before it", "Sure! " + WHOLE),
        text_case("only a number", "4"),
        text_case("an answer in words", _answered("four")),
        text_case("a negative number", _answered(" -4 ")),
        text_case("a tag twice", "<think>" + WHOLE),
        text_case("nothing", ""),
        text_case("two numbers and words", _answered("about 12 or 5")),
        text_case("a decimal", _answered("4.5")),
        text_case("two digits", _answered("12")),
        text_case("words, then a number", _answered("four") + "<answer>4</answer>"),
        text_case(
            "a number that no <answer> opens",
            "<think>2 + 2</think>12 4</answer>",
            "The number must stand between <answer> and </answer>: both are needed.",
        ),
        text_case("a word after it", WHOLE + " Bye."),
        text_case(
            "the last tag twice",
            WHOLE + "</answer>",
            "Each of the four tags pays only if it occurs exactly once.",
        ),
    ),
    words={
        "completion.count(tag) > 0": "A tag that occurs twice still pays. The policy "
        "will repeat it: count, and pay for exactly one.",
        "points": "The number is not paid for: 0.1 if the answer is a whole number.",
    },
    mistakes=(
        Mistake(
            reward_bugs.one_regex_reward,
            "Still all or nothing: one expression decides everything. Look for each "
            "part on its own, and add.",
        ),
        Mistake(
            lambda c: _parts(c, re.search(r"\d", c) is not None),
            "You pay for a number anywhere. It must stand between the answer tags.",
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


ONE_SHIFT = (
    "One shift for the whole batch: a tied group elsewhere is rounded as before. Take "
    "off a reward of the same group: rewards[..., :1]."
)
OWN_SHIFT = "Groups differ, and each needs a shift of its own: one of its own rewards."


def repaired_normalize(rewards):
    """float [batch trial] -> float [batch trial]"""
    shifted = rewards - rewards[..., :1]
    centered = shifted - shifted.mean(dim=-1, keepdim=True)
    return centered / (shifted.std(dim=-1, keepdim=True) + 1e-4)


REPAIRED_NORMALIZE = Exercise(
    key="10.8",
    name="repaired_normalize",
    solution=repaired_normalize,
    axes={"rewards": "batch trial", "return": "batch trial"},
    tolerance=1e-3,  # with or without an epsilon of 1e-4
    cases=(
        case("two groups", rewards=[[3.0, 1.0, 2.0, 0.0], [8.0, 8.0, 4.0, 8.0]]),
        case("eight rewards of 0.1", rewards=[[0.1] * 8]),
        case("twelve rewards of 100.1", rewards=[[100.1] * 12, [100.1] * 12]),
        case(
            "tied groups beside one that is not",
            OWN_SHIFT,
            rewards=[[1.0] * 8, [0.1] * 8, [3.0, 1.0, 2.0, 0.0] * 2],
        ),
        case(
            "large tied rewards beside others",
            OWN_SHIFT,
            rewards=[[1.0] * 12, [1000.1] * 12, [3.0, 1.0, 2.0, 0.0] * 3],
        ),
        CLOSE_TOGETHER,
    ),
    words={
        "first group": ONE_SHIFT,
        "rewards": "A larger epsilon alone helps where rewards are small. Rounding "
        "grows with the rewards: shift them before you average.",
        "shifted": "Shifted, but not centered: the shift comes before the mean, and "
        "the mean of the shifted rewards still has to go.",
        "shifted.std(dim=-1, keepdim=True)": "NaN: a tied group has no spread now, "
        "and 0/0 is not a number. An epsilon is needed as well.",
        "not divided": "You center, but do not divide by the spread.",
    },
    mistakes=(
        Mistake(
            lambda r: r * 0 if (r == r[0, 0]).all() else reward_bugs.tiny_epsilon(r),
            "You look whether the whole batch is tied. Each group is tied or not on "
            "its own.",
        ),
        Mistake(
            reward_bugs.tiny_epsilon,
            "Ties are still not zero: the mean of equal numbers is rounded. Take off "
            "something first that makes tied rewards exactly 0.",
        ),
    ),
    equivalent={
        "1e-08": "after the shift ties are exactly zero, so any small epsilon does",
    },
    insight="Shift first: then ties are exactly zero, however large the rewards.",
)


def _deltas_case(description: str, rewards_of: Tensor) -> Case:
    return case(description, deltas=reward_bugs.population_normalize(rewards_of))


def converted_deltas(deltas):
    """float [batch trial], over G -> float [batch trial], over G - 1"""
    size = deltas.shape[-1]
    return deltas * ((size - 1) / size) ** 0.5


CONVERTED_DELTAS = Exercise(
    key="10.9",
    name="converted_deltas",
    solution=converted_deltas,
    axes={"deltas": "batch trial", "return": "batch trial"},
    tolerance=1e-3,  # with or without a small epsilon
    cases=(
        _deltas_case("a group of two", torch.tensor([[1.0, 0.0]])),
        _deltas_case("three groups of four", numbers(3, 4)),
        _deltas_case("a group that is tied", torch.tensor([[2.0, 2.0, 2.0]])),
    ),
    words={
        "quotient turned": "The other way round: over G - 1 the spread is larger, so "
        "the deltas become smaller.",
        "root lost": "The factor of the squares: a spread is their root.",
        "wrong count": "You count the groups. G is the size of one: the trial axis.",
        "deltas.numel()": "You count all responses of the batch. G is the size of one "
        "group.",
    },
    mistakes=(
        Mistake(
            lambda d: d / group_std(d),
            "Do not divide by the spread of the deltas: only G is needed. A tied "
            "group has no spread at all.",
        ),
    ),
    equivalent={
        "deltas.abs()": "only the size is used in one place",
        "deltas[:1]": "every group has the same size",
    },
    insight="One factor for all groups: 0.707 for G = 2, and near 1 for large G.",
)


KL_CASES = (
    two_policies("a token twice as likely as under the reference", [0.5], [0.25]),
    two_policies("five tokens", PROBS, REF_PROBS),
    two_policies("two responses of two tokens", [PROBS[:2]] * 2, [REF_PROBS[:2]] * 2),
    case(
        "tokens that are next to impossible",
        TOO_EARLY,
        log_probs=[-200.0, -150.0],
        ref_log_probs=[-199.0, -151.0],
    ),
)


def repaired_k3(log_probs, ref_log_probs):
    """any shape, the same for both -> one value each"""
    difference = ref_log_probs - log_probs
    return torch.expm1(difference) - difference


REPAIRED_K3 = Exercise(
    key="10.10",
    name="repaired_k3",
    solution=repaired_k3,
    gradient_to=("log_probs",),
    cases=KL_CASES,
    words={
        "difference ** 2 / 2": "This is k2: close to k3 near zero, but biased as a "
        "value.",
        "log_probs - ref_log_probs": "Still upside down: the quotient in k3 is "
        "ref/pi, because the samples come from pi.",
        "one not taken away": "The -1 is missing: where both agree, k3 is 0.",
        "difference.expm1() + difference": "Only the exp is turned: exp(d) - 1 - d "
        "has the same d twice.",
    },
    mistakes=(
        Mistake(k1, "This is k1: right on average, often negative. k3 never is."),
    ),
    equivalent={
        "(difference.expm1() - difference).abs()": "it is never negative",
    },
    insight="ref/pi has mean 1 under pi, so ref/pi - 1 takes noise away and no KL.",
)


def repaired_penalty(log_probs, ref_log_probs, **_):
    """any shape, the same for both -> one value each"""
    return (log_probs - ref_log_probs) ** 2 / 2


REPAIRED_PENALTY = Exercise(
    key="10.11",
    name="repaired_penalty",
    solution=repaired_penalty,
    gradient_to=("log_probs",),
    cases=KL_CASES,
    words={
        "not divided": "Twice too large: a plain square pulls twice as hard, as if "
        "beta were doubled. (If you detached a factor, the slope may be right, but "
        "the exercise asks for the plain function.)",
    },
    mistakes=(
        Mistake(k1, "Still k1: its slope is 1 at every token, and pulls nowhere."),
        Mistake(
            lambda new, ref: (new - ref).abs(),
            "The slope of this is a sign, 1 or -1. The pull must grow with the "
            "distance: what has the distance as its slope?",
        ),
        Mistake(
            k3,
            "This is the value of k3, and its mean gradient is that of KL(ref||pi). "
            "(If you weigh it by a ratio, the slope may be right, but the exercise "
            "asks for a plain function of the difference.)",
        ),
        Mistake(
            lambda new, ref: (new - ref).detach() * new,
            "The gradient is right, the value is not: where both agree, 0 is "
            "expected. It would confuse whoever reads the log.",
        ),
    ),
    equivalent={
        "sign dropped": "a square has no sign",
        "difference turned": "a square has no sign",
    },
    insight="Slope log(pi/ref): no pull at the reference, and more the further away.",
)


def _mean_case(
    description: str, lengths: list[int], size: int, hint: str = "", pad: float = 0.5
) -> Case:
    mask = mask_of(lengths, 6)
    per_token = torch.where(mask, numbers(*mask.shape), pad)
    return case(description, hint, per_token=per_token, mask=mask, size=size)


def _piecewise(per_token: Tensor, mask: Tensor, size: int, weigh) -> Tensor:
    """The mean of each micro-batch, times its weight, added up."""
    pairs = zip(per_token.split(size), mask.split(size), strict=True)
    return sum((part * kept).sum() / kept.sum() * weigh(kept) for part, kept in pairs)


def repaired_token_mean(per_token, mask, size):
    """float [row pos], bool [row pos], int -> scalar"""
    total = 0.0
    for part, kept in zip(per_token.split(size), mask.split(size)):
        total = total + torch.where(kept, part, 0.0).sum() / mask.sum()
    return total


REPAIRED_TOKEN_MEAN = Exercise(
    key="10.12",
    name="repaired_token_mean",
    solution=repaired_token_mean,
    axes={"per_token": "row pos", "mask": "row pos"},
    gradient_to=("per_token",),
    cases=(
        _mean_case("four responses of unequal length, two at a time", [1, 2, 6, 5], 2),
        _mean_case("three responses, two at a time", [4, 1, 6], 2),
        _mean_case("seven responses, three at a time", [4, 1, 6, 2, 5, 3, 6], 3),
        _mean_case("one response", [2], 4),
        _mean_case(
            "one micro-batch is empty",
            [0, 3, 5],
            1,
            "0/0: this piece has no token, so it has no mean. Add sums, divide once.",
        ),
        _mean_case("NaN in the padding", [2, 4, 1], 2, ANYTHING, pad=float("nan")),
    ),
    mistakes=(
        Mistake(
            token_bugs.mean_of_means,
            "Still a mean of means: a token in a short micro-batch weighs more. "
            "Divide every sum by the number of tokens of the whole batch.",
        ),
        Mistake(
            lambda x, m, size: _piecewise(x, m, size, lambda k: len(k) / len(m)),
            "You weigh by responses. This is a mean over tokens: weigh each "
            "micro-batch by its tokens.",
        ),
        Mistake(
            lambda x, m, size: _piecewise(x, m, size, lambda k: 1.0),
            "The means are added: more micro-batches give a larger loss.",
        ),
        Mistake(
            lambda x, m, size: (x * m).sum() / m.numel(),
            "Padding is counted in the denominator. Count the mask's tokens.",
        ),
        Mistake(
            lambda x, m, size: ((x * m).sum(-1) / m.sum(-1).clamp(min=1)).mean(),
            "This is the sequence mean: each response weighs the same.",
        ),
    ),
    insight="Count the tokens of the whole batch first, then go through the pieces.",
)


def repaired_step(rewards, last):
    """float [batch trial] or None, float or None -> float"""
    if rewards is not None:
        last = rewards.mean().item()
    return last


REPAIRED_STEP = Exercise(
    key="10.13",
    name="repaired_step",
    solution=repaired_step,
    plain_number=True,  # it is written to a log, where a tensor would keep its graph
    axes={"rewards": "batch trial"},
    cases=(
        case("the very first step", rewards=[[3.0, 1.0]], last=None),
        case("an inner step", rewards=None, last=2.0),
        case("new responses", rewards=[[1.0, 0.0, 0.5]], last=2.0),
        case("an inner step after a mean of 0", rewards=None, last=0.0),
        case("new responses, all of them paid 0", rewards=[[0.0, 0.0]], last=2.0),
        case("two prompts", rewards=[[1.0, 2.0, 0.0], [3.0, 4.0, 5.0]], last=None),
    ),
    mistakes=(
        Mistake(
            reward_bugs.forgetful_step,
            "Still unbound on an inner step: the name gets a value only where "
            "responses are new. What was logged last is in `last`.",
        ),
        Mistake(
            lambda r, last: 0.0 if r is None else r.mean().item(),
            "No error, and a wrong log: the reward of an inner step is not 0. It is "
            "that of the responses it trains on.",
        ),
        Mistake(
            lambda r, last: float("nan") if r is None else r.mean().item(),
            "NaN is honest, but the log has holes: the inner step trains on responses "
            "whose mean reward was logged before.",
        ),
        Mistake(
            lambda r, last: (0.0 if r is None else r.mean().item()) or last,
            "A mean of 0 is a number, and `or` takes it for nothing: test whether "
            "rewards is None.",
        ),
        Mistake(
            lambda r, last: r.mean().item() if last is None else last,
            "You keep the first rollout's number forever: new responses, new mean.",
        ),
        Mistake(
            lambda r, last: r.mean().item(),
            "rewards is None on an inner step: nothing was sampled there.",
        ),
    ),
    insight="What an inner step needs is handed from step to step, not hoped for.",
)
