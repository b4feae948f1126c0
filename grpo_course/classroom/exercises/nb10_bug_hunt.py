"""The exercises of 10_bug_hunt: probes to write, causes to name, a script to repair."""

from collections.abc import Callable
from functools import cache, partial

import torch
from torch import Tensor
from torch.nn.functional import pad

from grpo_course.classroom.old_check.exercise import Case, Exercise, Mistake
from grpo_course.lessons.hunt.cases import CLOSE, behaviour, distance
from grpo_course.lessons.hunt.defects import (
    CAUSES,
    DEFECTS,
    DIAGNOSED,
    REPAIRED,
    broken,
    compiled,
    number_of,
    source_with,
)
from grpo_course.lessons.hunt.probes import VARIANTS, token_with
from grpo_course.lessons.hunt.script import Trainer

HEALTHY = "healthy, "  # before the name of a variant

# Trainers made to tell one misconception from another: a probe says yes or no, and
# what it looks at shows only where that alone is changed.
DECOYS: dict[str, type[Trainer]] = {}


def decoy(name: str) -> Callable:
    """Enter a trainer in DECOYS, by what it does."""

    def enter(kind: type[Trainer]) -> type[Trainer]:
        DECOYS[name] = kind
        return kind

    return enter


def verdict_on(probe: Callable, trainer: str) -> str | None:
    """What a probe says of a healthy variant, of a decoy, or of a number."""
    if trainer.startswith(HEALTHY):
        settings = VARIANTS[trainer.removeprefix(HEALTHY)]
        make_trainer: Callable = partial(Trainer, **settings)
    elif trainer in DECOYS:
        make_trainer = DECOYS[trainer]
    else:
        make_trainer = broken(int(trainer.split()[1])).Trainer
    with torch.random.fork_rng():
        torch.manual_seed(0)
        said = probe(make_trainer)
    if isinstance(said, Tensor) and said.numel() != 1:
        raise TypeError(
            f"a probe returns one yes or no; this is a tensor of {said.numel()}. "
            "Take .all(), or the largest deviation before you compare."
        )
    return None if said is None else "healthy" if said else "not healthy"


WRONG_ALARM = (
    "A healthy trainer, and your probe fires: you look at something that may differ, "
    "or the tolerance is too narrow."
)
HOLDS = "Something else is wrong with this trainer; what you are to ask for holds."


def _silent(*names: str, hint: str = WRONG_ALARM) -> tuple[Case, ...]:
    """Healthy variants."""
    return tuple(
        Case("a healthy trainer", {"make_trainer": f"{HEALTHY}{name}"}, hint)
        for name in names
    )


def _of(cause: str, description: str, hint: str) -> Case:
    """The trainer with a cause, which the description does not name."""
    return Case(description, {"make_trainer": f"trainer {number_of(cause)}"}, hint)


def _found(cause: str, hint: str) -> Case:
    return _of(cause, "a trainer that breaks the property", hint)


def _passed(cause: str, hint: str = HOLDS) -> Case:
    return _of(cause, "a trainer with another defect", hint)


def _always(answer: bool) -> Callable:
    return lambda make_trainer: answer


def _decoy(name: str, hint: str = HOLDS) -> Case:
    return Case("a trainer made for this exercise", {"make_trainer": name}, hint)


NO_LOOK = (
    Mistake(_always(True), "Your probe calls every trainer healthy."),
    Mistake(_always(False), "Your probe calls no trainer healthy."),
)


@decoy("its deltas are rewards, times the largest of the batch")
class _Raw(Trainer):
    def compute_deltas(self, rewards):
        return rewards * rewards.max()


@decoy("its deltas are differences from the median of the batch")
class _ByMedian(Trainer):
    def compute_deltas(self, rewards):
        return rewards - rewards.median()


@decoy("its deltas are ranks in the group")
class _Ranked(Trainer):
    def compute_deltas(self, rewards):
        groups = rewards.view(-1, self.settings.num_responses)
        return groups.argsort(dim=1).argsort(dim=1).float().flatten()


ROOM = "no trainer comes so near to the limit"
TRUTHY = "minus True counts as true"


def groups_stand_alone(make_trainer):
    """a factory of trainers -> True if healthy"""
    trainer = make_trainer()
    rewards = torch.rand(2, trainer.settings.num_responses)
    bonus = torch.tensor([[0.0], [1.0]])
    plain = trainer.compute_deltas(rewards.flatten())
    paid = trainer.compute_deltas((rewards + bonus).flatten())
    return torch.allclose(plain, paid, atol=1e-3)


def _bonus_for_all(make_trainer):
    trainer = make_trainer()
    rewards = torch.rand(2 * trainer.settings.num_responses)
    plain = trainer.compute_deltas(rewards)
    return torch.allclose(plain, trainer.compute_deltas(rewards + 1), atol=1e-3)


def _sum_of_the_batch(make_trainer):
    return make_trainer().collect().deltas.sum().abs() < 1e-2


def _exactly_equal(make_trainer):
    trainer = make_trainer()
    rewards = torch.rand(2, trainer.settings.num_responses)
    paid = rewards + torch.tensor([[0.0], [1.0]])
    one, two = (trainer.compute_deltas(each.flatten()) for each in (rewards, paid))
    return torch.equal(one, two)


GROUPS_STAND_ALONE = Exercise(
    key="10.1",
    name="groups_stand_alone",
    solution=groups_stand_alone,
    use=verdict_on,
    cases=(
        *_silent("as it is", "groups of four"),
        _found(
            "mean and spread of the whole batch",
            "Here the deltas of one prompt depend on what the others earn. Pay all "
            "responses to one prompt more, and those to another not.",
        ),
        *_silent("groups of sixteen", "two prompts", "seed 1"),
        _passed("loss negated twice"),
        _decoy(
            "its deltas are rewards, times the largest of the batch",
            "A bonus for one prompt moves the largest, and so the deltas of others.",
        ),
        _decoy(
            "its deltas are differences from the median of the batch",
            "A bonus for one prompt moves the median, and so the deltas of others.",
        ),
        _decoy("its deltas are ranks in the group"),
    ),
    mistakes=(
        *NO_LOOK,
        Mistake(
            _bonus_for_all,
            "You pay everybody more. A mean over the batch takes that off as well: "
            "give the bonus to the responses to one prompt alone.",
        ),
        Mistake(
            _sum_of_the_batch,
            "The deltas of a whole batch sum to zero in either case. Look at one "
            "group.",
        ),
        Mistake(
            _exactly_equal,
            "To the last bit no two means are equal: a bonus of 1 moves the rounding. "
            "Compare with a tolerance, as torch.allclose does.",
        ),
    ),
    equivalent={
        "epsilon": ROOM,
        "another number": "a bonus of any size will do",
        "minus for plus": "a malus is as good as a bonus",
        "negated": TRUTHY,
    },
    insight="Compare with what may not matter: a bonus for a prompt is such a thing.",
)


@decoy("its scores are those of chance")
class _Chance(Trainer):
    def score(self, batch):
        return torch.full_like(super().score(batch), -3.0)


@decoy("it is sure of every token")
class _Sure(Trainer):
    def score(self, batch):
        return torch.zeros_like(super().score(batch))


@decoy("it is sure of its responses, and of no prompt")
class _SureOfResponses(Trainer):
    def score(self, batch):
        return torch.where(batch.mask, 0.0, super().score(batch))


def own_words_look_likely(make_trainer):
    """a factory of trainers -> True if healthy"""
    batch = make_trainer(temperature=0.01).collect()
    return batch.old_log_probs[batch.mask].mean() > -0.1


def _at_any_temperature(make_trainer, bound=-0.1):
    batch = make_trainer().collect()
    return batch.old_log_probs[batch.mask].mean() > bound


def _without_the_mask(make_trainer):
    return make_trainer(temperature=0.01).collect().old_log_probs.mean() > -0.1


def _likeliest_token(make_trainer):
    batch = make_trainer(temperature=0.01).collect()
    return batch.old_log_probs[batch.mask].max() > -0.1


def _scored_twice(make_trainer):
    trainer = make_trainer()
    batch = trainer.collect()
    return (trainer.score(batch) - batch.old_log_probs).abs().max() < 1e-3


OWN_WORDS_LOOK_LIKELY = Exercise(
    key="10.2",
    name="own_words_look_likely",
    solution=own_words_look_likely,
    use=verdict_on,
    cases=(
        *_silent("as it is", "seed 1"),
        _found(
            "scores of the next token",
            "Here a policy is surprised by what it has just written. Let it write "
            "without any doubt, and look at the mean of its own scores.",
        ),
        _found(
            "temperature missing from the scores",
            "Here the scores are those of a policy that doubts more than the one that "
            "wrote. The colder the sampler, the larger the gap.",
        ),
        *_silent("short responses", "three numbers"),
        _passed("dropout on in the update"),
        _passed("old scores in low precision"),
        _decoy("its scores are those of chance", "No token is likely here."),
        _decoy("it is sure of every token"),
        _decoy("it is sure of its responses, and of no prompt"),
    ),
    mistakes=(
        *NO_LOOK,
        Mistake(
            _at_any_temperature,
            "At the script's own temperature a healthy policy is surprised by its "
            "samples too: that is its entropy. Sample so cold that no doubt is left.",
        ),
        Mistake(
            lambda make_trainer: _at_any_temperature(make_trainer, -1.0),
            "The bound is too wide. Sample so cold that a healthy policy has no doubt, "
            "and ask for a mean next to 0.",
        ),
        Mistake(
            _without_the_mask,
            "You count prompt and padding, which nobody sampled. Take the tokens that "
            "`batch.mask` keeps.",
        ),
        Mistake(
            _likeliest_token,
            "One likely token is in every batch. Take the mean, or the least likely "
            "one.",
        ),
        Mistake(
            _scored_twice,
            "You score twice in the same way, and both times the same mistake is "
            "made. Compare scores with what was sampled.",
        ),
    ),
    equivalent={
        "another number": ROOM,
        "comparison": ROOM,
        "mean left open": "there is one axis",
        "one for all": "there is one answer",
    },
    insight="One probe for two causes: it asks only whether writer and judge agree.",
)


@decoy("its scores depend on the padding behind a response")
class _LooksBehind(Trainer):
    def score(self, batch):
        behind = (~batch.attention).flip(1).cumprod(1).sum(1, keepdim=True)
        return super().score(batch) - 0.1 * behind


@decoy("its scores are others each time")
class _Noisy(Trainer):
    def score(self, batch):
        scores = super().score(batch)
        return scores - torch.rand_like(scores)


@decoy("it knows padding by its token")
class _KnowsPadding(Trainer):
    def score(self, batch):
        batch.attention = batch.tokens != self.tokenizer.pad
        return super().score(batch)


def padding_leaves_no_trace(make_trainer):
    """a factory of trainers -> True if healthy"""
    trainer = make_trainer()
    batch = trainer.collect()
    before = trainer.score(batch)
    batch.tokens = torch.nn.functional.pad(batch.tokens, (3, 0))
    batch.attention = torch.nn.functional.pad(batch.attention, (3, 0))
    return torch.allclose(trainer.score(batch)[:, 3:], before, atol=1e-4)


def _padded(before: int, behind: int, attention: bool, again: bool = False) -> Callable:
    """A probe that pads in another way, or that scores too late."""

    def probe(make_trainer):
        trainer = make_trainer()
        batch = trainer.collect()
        kept = slice(before, before + batch.tokens.shape[1] - 1)
        scores = trainer.score(batch)
        batch.tokens = pad(batch.tokens, (before, behind))
        batch.attention = pad(batch.attention, (before, behind), value=attention)
        if again:
            scores = trainer.score(batch)[:, kept]
        return torch.allclose(trainer.score(batch)[:, kept], scores, atol=1e-4)

    return probe


PADDING_LEAVES_NO_TRACE = Exercise(
    key="10.3",
    name="padding_leaves_no_trace",
    solution=padding_leaves_no_trace,
    use=verdict_on,
    cases=(
        *_silent("as it is", "seed 1"),
        _found(
            "attention mask left out of the scores",
            "Here the model reads padding as if it were text. Add some in front of "
            "every row, mark it as no text, and compare the scores of the rest.",
        ),
        *_silent("two prompts", "short responses"),
        _passed("padding counted as response"),
        _passed("temperature missing from the scores"),
        _decoy(
            "its scores depend on the padding behind a response",
            "In front of a prompt, padding changes nothing here.",
        ),
        _decoy("its scores are others each time", "No two scores are equal here."),
        _decoy("it knows padding by its token"),
    ),
    mistakes=(
        *NO_LOOK,
        Mistake(
            _padded(0, 3, False),
            "You pad behind the text. A model reads from left to right, so nothing "
            "there can change a score before it. Pad in front.",
        ),
        Mistake(
            _padded(3, 0, True),
            "Your padding is marked as text: `attention` is True there. A healthy "
            "model reads it then, and it should.",
        ),
        Mistake(
            _padded(3, 0, False, again=True),
            "You score twice after the change, and compare a thing with itself. Keep "
            "the scores from before.",
        ),
    ),
    equivalent={
        "epsilon": "the scores are equal to the last bit, or far apart",
        "negated": TRUTHY,
    },
    insight="What may not matter can be added: a healthy trainer does not notice.",
)


@decoy("its gradient grows with micro_batch_size")
class _Grows(Trainer):
    def update(self, batch):
        stats, norm = super().update(batch)
        return stats, norm * self.settings.micro_batch_size


@decoy("its gradient shrinks with micro_batch_size")
class _Shrinks(Trainer):
    def update(self, batch):
        stats, norm = super().update(batch)
        return stats, norm / self.settings.micro_batch_size


@decoy("its logged loss grows with micro_batch_size")
class _LogsMore(Trainer):
    def update(self, batch):
        stats, norm = super().update(batch)
        return stats * self.settings.micro_batch_size, norm


@decoy("its updates move nothing")
class _Rests(Trainer):
    def update(self, batch):
        self.optimizer.param_groups[0]["lr"] = 0.0
        return super().update(batch)


@decoy("it sets its seed before each rollout")
class _Seeded(Trainer):
    def collect(self):
        torch.manual_seed(self.settings.seed)
        return super().collect()


def parts_make_no_difference(make_trainer):
    """a factory of trainers -> True if healthy"""
    norms = []
    for size in (8, 1000):
        trainer = make_trainer(micro_batch_size=size)
        _, norm = trainer.update(trainer.collect())
        norms.append(norm)
    return abs(norms[0] - norms[1]) <= 1e-3 * norms[1]


def _norms(make_trainer, *sizes: int) -> list[float]:
    norms = []
    for size in sizes:
        trainer = make_trainer(micro_batch_size=size)
        norms.append(trainer.update(trainer.collect())[1])
    return norms


def _made_before(make_trainer):
    trainers = [make_trainer(micro_batch_size=size) for size in (8, 1000)]
    one, two = (trainer.update(trainer.collect())[1] for trainer in trainers)
    return abs(one - two) < 1e-3 * two


def _one_trainer_for_both(make_trainer):
    trainer = make_trainer(micro_batch_size=8)
    batch = trainer.collect()
    _, first = trainer.update(batch)
    trainer.settings.micro_batch_size = 1000
    _, second = trainer.update(batch)
    return abs(first - second) < 1e-3 * second


def _both_hold_the_batch(make_trainer):
    one, two = _norms(make_trainer, 64, 1000)
    return abs(one - two) < 1e-3 * two


def _loosely(make_trainer):
    one, two = _norms(make_trainer, 32, 1000)
    return abs(one - two) < two


def _by_the_logged_loss(make_trainer):
    losses = []
    for size in (8, 1000):
        trainer = make_trainer(micro_batch_size=size)
        stats, _ = trainer.update(trainer.collect())
        losses.append(stats[0].mean())
    return abs(losses[0] - losses[1]) < 1e-3


PARTS_MAKE_NO_DIFFERENCE = Exercise(
    key="10.4",
    name="parts_make_no_difference",
    solution=parts_make_no_difference,
    use=verdict_on,
    cases=(
        *_silent("as it is", "a heavy KL"),
        _found(
            "gradient cleared for each part",
            "Here only a part of the batch reaches the optimizer. Compare the "
            "gradient's norm in one part and in many.",
        ),
        _found(
            "each part divided by its own tokens",
            "Here a token weighs more in one part than in another. The gradient's "
            "norm moves by a few per cent: compare it in one part and in many small "
            "ones, with a tolerance that is smaller.",
        ),
        *_silent("groups of sixteen", "groups of four"),
        _passed("loss negated twice"),
        _decoy(
            "its gradient grows with micro_batch_size",
            "The norm that `update` returns depends on the size here.",
        ),
        _decoy(
            "its gradient shrinks with micro_batch_size",
            "The norm that `update` returns depends on the size here.",
        ),
        _decoy("its logged loss grows with micro_batch_size"),
        _decoy("its updates move nothing"),
        _decoy("it sets its seed before each rollout"),
    ),
    mistakes=(
        *NO_LOOK,
        Mistake(
            _one_trainer_for_both,
            "The second update starts from the weights that the first one left. Make "
            "a fresh trainer for each size: with the same seed it samples the same.",
        ),
        Mistake(
            _made_before,
            "Both trainers are made before either samples, and the seed is set when "
            "one is made: so they sample different responses. Make and update one, "
            "then the other.",
        ),
        Mistake(
            _both_hold_the_batch,
            "The batch has 64 rows, so both sizes take it in one part. Let one of "
            "them cut it.",
        ),
        Mistake(
            _loosely,
            "Two parts and a tolerance as large as the norm let nearly everything "
            "pass. Take small parts and a narrow tolerance.",
        ),
        Mistake(
            _by_the_logged_loss,
            "You compare what is logged, which is averaged over the tokens in any "
            "case. What teaches is the gradient: `update` returns its norm, too.",
        ),
    ),
    equivalent={
        "factor lost": "norms are near 1",
        "factor twice": ROOM,
        "epsilon": ROOM,
        "off by one": "other parts, or the norm of the other one",
        "difference turned": "its size counts",
        "comparison": ROOM,
        "negated": TRUTHY,
    },
    insight="One seed, two sizes, one number: memory is no reason for another update.",
)


@decoy("it pulls every token up")
class _Up(Trainer):
    def token_losses(self, log_probs, batch):
        _, stats = super().token_losses(log_probs, batch)
        return self.settings.beta * (batch.ref_log_probs - log_probs), stats


@decoy("its loss has the KL's value, and no slope")
class _NoSlope(Trainer):
    def token_losses(self, log_probs, batch):
        losses, stats = super().token_losses(log_probs, batch)
        return losses.detach() + 0 * log_probs, stats


@decoy("its beta is always 1")
class _Stubborn(Trainer):
    def token_losses(self, log_probs, batch):
        self.settings.beta = 1.0
        return super().token_losses(log_probs, batch)


def kl_pulls_back(make_trainer):
    """a factory of trainers -> True if healthy"""
    trainer, pulls = make_trainer(beta=1.0), []
    for reference in (-3.0, -1.0):
        new = torch.tensor([[-2.0]], requires_grad=True)
        token = token_with(old_log_probs=-2.0, ref_log_probs=reference, deltas=0.0)
        losses, _ = trainer.token_losses(new, token)
        pulls.append(torch.autograd.grad(losses.sum(), new)[0].item())
    return pulls[0] > 0 > pulls[1]


def _pull(make_trainer, reference: float, what: str = "loss", beta: float = 1.0):
    """The gradient of a token's loss, or the value of its loss or of its KL."""
    new = torch.tensor([[-2.0]], requires_grad=True)
    token = token_with(old_log_probs=-2.0, ref_log_probs=reference, deltas=0.0)
    losses, stats = make_trainer(beta=beta).token_losses(new, token)
    if what == "gradient":
        return torch.autograd.grad(losses.sum(), new)[0].item()
    return losses.item() if what == "loss" else stats[1].item()


def _pulls_down(make_trainer):
    return _pull(make_trainer, -3.0, "gradient") > 0


def _pulls_up(make_trainer):
    return _pull(make_trainer, -1.0, "gradient") < 0


def _logged_kl_is_positive(make_trainer):
    return _pull(make_trainer, -3.0, "kl") > 0 < _pull(make_trainer, -1.0, "kl")


def _loss_is_positive(make_trainer):
    return _pull(make_trainer, -3.0) > 0 < _pull(make_trainer, -1.0)


def _without_beta(make_trainer):
    above, below = (_pull(make_trainer, r, "gradient", beta=0.0) for r in (-3.0, -1.0))
    return above > 0 > below


def _other_way_round(make_trainer):
    above, below = (_pull(make_trainer, r, "gradient") for r in (-3.0, -1.0))
    return above < 0 < below


KL_PULLS_BACK = Exercise(
    key="10.5",
    name="kl_pulls_back",
    solution=kl_pulls_back,
    use=verdict_on,
    cases=(
        *_silent("as it is", "no KL"),
        _found(
            "KL computed and not used",
            "Here the KL is logged as it should be, and no gradient comes of it. Take "
            "the gradient of the loss, not the KL's value.",
        ),
        _found(
            "KL with the wrong sign",
            "Here the loss pushes a token away from its reference. Look at the sign "
            "of the gradient.",
        ),
        _found(
            "k1 as a loss",
            "Here the pull is the same above the reference and below it. Ask on both "
            "sides.",
        ),
        *_silent("one inner step"),
        _passed("old scores taken from the current policy"),
        _decoy("it pulls every token up", "Above its reference, too."),
        _decoy(
            "its loss has the KL's value, and no slope",
            "A value pulls nowhere. What does the gradient say?",
        ),
        _decoy("its beta is always 1"),
    ),
    mistakes=(
        *NO_LOOK,
        Mistake(
            _pulls_down,
            "You ask above the reference alone, where a pull that is the same "
            "everywhere looks right. Ask below it as well.",
        ),
        Mistake(
            _pulls_up,
            "You ask below the reference alone. Ask above it as well.",
        ),
        Mistake(
            _logged_kl_is_positive,
            "You look at the KL of the log. It may be right and never reach the loss: "
            "take the gradient of the loss.",
        ),
        Mistake(
            _loss_is_positive,
            "You look at the value of the loss. A value pulls nowhere: take its "
            "gradient with respect to the new log-probability.",
        ),
        Mistake(
            _without_beta,
            "With beta=0 a healthy trainer has no KL to pull with. Make the trainer "
            "with a beta of your own.",
        ),
        Mistake(
            _other_way_round,
            "The sign is turned: an optimizer goes against the gradient, so a "
            "positive one makes the token rarer.",
        ),
    ),
    equivalent={
        "another number": "any two references on either side will do",
        "off by one": "the last of two is the second",
        "mean for sum": "there is one token",
        "negated": TRUTHY,
    },
    insight="A penalty is used through its gradient, so that is what is asked.",
)


def _takes(number: int, cause: str) -> Mistake:
    """One trainer is taken for another cause."""

    def answer(asked: int) -> str:
        return cause if asked == number else diagnosis(asked)

    shown = DEFECTS[number_of(cause)].shows
    hint = (
        f"'{cause}' would have shown {shown}. Open trainer {number} once more, and "
        f"look at: {DEFECTS[number].first_look}."
    )
    return Mistake(answer, hint)


def diagnosis(number):
    """the number of a trainer -> its cause, one of the list"""
    causes = {
        24: "best of several answers paid",
        8: "old scores taken from the current policy",
        20: "prompt trained along with the response",
        14: "k3 upside down",
        3: "groups that mix prompts",
        27: "old scores in low precision",
    }
    return causes[number]


DIAGNOSIS = Exercise(
    key="10.6",
    name="diagnosis",
    solution=diagnosis,
    choice=True,
    cases=tuple(
        Case(
            f"trainer {number}",
            {"number": number},
            f"No cause of the list has this name. Open trainer {number} once more, "
            f"and look at: {DEFECTS[number].first_look}.",
        )
        for number in DIAGNOSED
    ),
    mistakes=tuple(
        _takes(number, cause)
        for number in DIAGNOSED
        for cause in CAUSES
        if cause != DEFECTS[number].cause
    ),
    insight="Six causes from six complaints. Now repair one.",
)


RUNS = {
    "trainer 6: 64 rows in two parts": {},
    "trainer 6: 64 rows, 8 at a time": {"seed": 1, "micro_batch_size": 8},
    "trainer 6: 24 rows, 16 at a time": {"num_prompts": 3, "micro_batch_size": 16},
    "trainer 6: all rows at once": {"seed": 2, "micro_batch_size": 64},
}


@cache
def _healthy(run: str) -> dict[str, Tensor]:
    return behaviour(Trainer, RUNS[run])


def behaves(function: Callable, run: str) -> str | None:
    """What the trainer of a repaired script does in a run, beside the healthy one."""
    source = source_with(REPAIRED)
    text = function(source)
    if text is None:
        return None
    if not isinstance(text, str):
        raise TypeError(f"the result is the text of a script, not a {type(text)}.")
    if text == source:
        return "the script as it was"
    theirs = behaviour(compiled(text).Trainer, RUNS[run])
    for name, expected in _healthy(run).items():
        if (gap := distance(theirs[name], expected)) > CLOSE:
            return f"{name} differ by {gap:.2g}"
    return "as the healthy trainer"


def repaired_script(source):
    """the text of the script -> the same, with its defect repaired"""
    old = "losses[part.mask].mean() * size / len(batch.tokens)"
    return source.replace(old, "losses[part.mask].sum() / num_tokens")


def _put(new: str) -> Callable:
    """Another text in the same place."""
    old = "losses[part.mask].mean() * size / len(batch.tokens)"
    return lambda source: source.replace(old, new)


REPAIRED_SCRIPT = Exercise(
    key="10.7",
    name="repaired_script",
    solution=repaired_script,
    use=behaves,
    cases=tuple(
        Case(
            name,
            {"source": name},
            "The trainer still learns something else. What should one token weigh, in "
            "whichever part it comes?",
        )
        for name in RUNS
    ),
    mistakes=(
        Mistake(
            lambda source: source,
            "The text is the one that you were given: nothing in it equals the first "
            "argument of replace, spaces included.",
        ),
        Mistake(
            _put("losses[part.mask].mean()"),
            "Each part is still divided by its own number of tokens, and now the "
            "means are added: twice as many parts, twice the gradient.",
        ),
        Mistake(
            _put("losses[part.mask].mean() * len(part.tokens) / len(batch.tokens)"),
            "Each part weighs by its rows now. A row of three tokens weighs as much "
            "as one of ten: weigh by tokens.",
        ),
        Mistake(
            _put("(losses * part.mask).sum() / batch.mask.numel()"),
            "Padding and prompt count in the divisor: it is the number of tokens that "
            "the mask keeps.",
        ),
        Mistake(
            _put("losses[part.mask].sum()"),
            "A sum without a divisor: a batch with more tokens makes larger steps.",
        ),
        Mistake(
            _put("losses.sum() / num_tokens"),
            "The losses of prompt and padding are added as well: keep those of the "
            "mask.",
        ),
    ),
    insight="One divisor, known before the first part: the parts only add up.",
)
