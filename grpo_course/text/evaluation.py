"""What a model can do on problems, with the luck of the draw beside it.

Answers are sampled or greedy, and graded by the task; from the grades come accuracy,
pass@k, the vote of the majority, and tables of means with 95 % intervals over problems.
Left out: what another training seed would have given.
"""

import copy
from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from pandas import DataFrame, Index
from torch import Generator, Tensor

from grpo_course.checks import require_at_least
from grpo_course.long_work import counted
from grpo_course.loop import Rollout
from grpo_course.text.environment import Environment
from grpo_course.text.lm import CausalPolicy
from grpo_course.text.prompts import decode_responses
from grpo_course.text.responses import extract_answer
from grpo_course.text.tasks import texts_voted_on


@dataclass(frozen=True)
class Scores:
    """What each response to each problem earned.

    earned: a reward's name -> [problem sample]; the first says what is right.
    texts: the responses, one list for each problem.
    groups: one for each problem; who knows one of a group knows all of it.
    meaning: what a response answers, None for nothing; two that mean the same have one
        vote. Without it, the texts of the answers are compared.
    """

    earned: dict[str, Tensor]
    texts: list[list[str]]
    groups: list[str]
    meaning: Callable[[str], Hashable] | None = None

    @property
    def accuracy(self) -> Tensor:
        """The first of the rewards. [problem sample]"""
        return next(iter(self.earned.values()))

    @property
    def has_tags(self) -> bool:
        """Whether any response has an answer between tags."""
        return any(extract_answer(text) for texts in self.texts for text in texts)


def sampled_scores(
    policy: CausalPolicy,
    environment: Environment,
    num_samples: int = 8,
    *,
    temperature: float | None = None,
    seed: int = 0,
    batch_size: int = 64,
) -> Scores:
    """Answer every problem `num_samples` times, as the policy's sampler writes.

    `batch_size` is the number of problems that are answered at once. Random numbers
    are the evaluation's own: those of the policy stay as they were.
    """
    writer = copy.copy(policy)
    if temperature is not None:
        writer.sampler = replace(policy.sampler, temperature=temperature)
    writer.generator = Generator(policy.model.device).manual_seed(seed)
    return collect_scores(
        environment, lambda prompts: writer.sample(prompts, num_samples), batch_size
    )


def greedy_scores(
    policy: CausalPolicy, environment: Environment, batch_size: int = 64
) -> Scores:
    """Answer every problem once, with the likeliest token at each step."""
    return collect_scores(
        environment, lambda prompts: policy.sample(prompts, 1, greedy=True), batch_size
    )


def collect_scores(
    environment: Environment, answer: Callable[[Tensor], Rollout], batch_size: int
) -> Scores:
    """Ask everything, some problems at a time, and grade what comes back."""
    require_at_least("batch_size", batch_size, 1)
    places = range(len(environment.problems))
    graded, texts = [], []
    what = f"answering {len(places)} problems"
    for first in counted(places[::batch_size], what, "part"):
        rollout = answer(environment.ask(places[first : first + batch_size]))
        graded.append(environment.grade(rollout))
        texts += decode_responses(environment.tokenizer, rollout)
    earned = {
        name: torch.cat([each[name] for each in graded]).cpu()
        for name in environment.measures
    }
    groups = [problem.group for problem in environment.problems]
    return Scores(earned, texts, groups, environment.meaning)


def pass_at_k(correct: Tensor, k: int) -> Tensor:
    """The chance that at least one of k responses is right. -> [problem]

    From 0/1 [problem sample], over all ways to pick k of the n samples of a problem:
    1 - C(n - c, k) / C(n, k) with c right ones. 1 - (1 - c/n)^k would be too low.
    Chen et al. 2021, arXiv 2107.03374.
    """
    n = correct.shape[-1]
    if not (isinstance(k, int) and 1 <= k <= n):
        raise ValueError(
            f"k={k}, but there are {n} samples of each problem: choose 1 to {n}, or "
            "sample more."
        )
    wrong = n - correct.double().sum(dim=-1)
    # C(n-c, k) / C(n, k) is a product of k fractions; each is at most 1.
    drawn = torch.arange(k, dtype=torch.float64, device=correct.device)
    fractions = (wrong[..., None] - drawn).clamp(min=0) / (n - drawn)
    return 1 - fractions.prod(dim=-1)


def majority(scores: Scores) -> Tensor:
    """Whether the answer that most samples of a problem give is right. [problem]

    Answers are equal if they mean the same. Where nobody says what they mean, texts
    are compared, those between the tags if there are any. Of equally many, the earliest
    counts; a sample without an answer has no vote (Wang et al. 2023, arXiv 2203.11171,
    where the weights are all one).
    """
    read = scores.meaning or (extract_answer if scores.has_tags else str.strip)
    right = []
    for texts, correct in zip(scores.texts, scores.accuracy, strict=True):
        meant = [read(text) for text in texts]
        votes = Counter(each for each in meant if each not in (None, "")).most_common(1)
        right.append(correct[meant.index(votes[0][0])] if votes else 0.0)
    return torch.tensor([float(each) for each in right], dtype=torch.float64)


def bootstrap_interval(
    values: Tensor,
    groups: Sequence[str] | None = None,
    *,
    seed: int = 0,
    num_draws: int = 1000,
    level: float = 0.95,
) -> tuple[float, float]:
    """Where the mean over problems may lie, had other problems been drawn.

    [problem] in. Problems are drawn anew, with replacement; the interval holds the
    middle `level` of the means (Efron 1979). Whole groups are drawn, since problems
    that are right or wrong together are fewer than they look (Davison & Hinkley 1997,
    section 3.8). None: each problem for itself.
    """
    require_at_least("the number of problems", len(values), 1)
    names = range(len(values)) if groups is None else groups
    group = torch.from_numpy(Index(names).factorize()[0])
    sizes = group.bincount().double()  # [group], as the sums
    sums = torch.zeros_like(sizes).index_add(0, group, values.double().cpu())
    generator = Generator().manual_seed(seed)
    picked = torch.randint(len(sums), (num_draws, len(sums)), generator=generator)
    means = sums[picked].sum(dim=-1) / sizes[picked].sum(dim=-1)
    outside = (1 - level) / 2
    ends = torch.tensor([outside, 1 - outside], dtype=torch.float64)
    return tuple(means.quantile(ends).tolist())


# What a reader sees for the name of a reward; the others are named as they are.
LABELS = {"accuracy": "strict accuracy", "lenient_accuracy": "lenient accuracy"}


class Measures(dict[str, Tensor]):
    """name -> [problem], and the group of each problem, for the intervals."""

    def __init__(self, values: Mapping[str, Tensor], groups: Sequence[str]):
        super().__init__(values)
        self.groups = groups


def name_measures(greedy: Scores, sampled: Scores) -> Measures:
    """What both earned, by names for readers, and pass@1 and pass@n of n samples."""
    measures = {
        f"{how} {LABELS.get(name, name)}": earned.double().mean(-1)
        for how, scores in (("greedy", greedy), ("sampled", sampled))
        for name, earned in scores.earned.items()
    }
    for k in sorted({1, sampled.accuracy.shape[-1]}):
        measures[f"sampled pass@{k}"] = pass_at_k(sampled.accuracy, k)
    return Measures(measures, sampled.groups)


def evaluate_policy(
    policy: CausalPolicy,
    environment: Environment,
    num_samples: int = 8,
    *,
    temperature: float | None = None,
) -> Measures:
    """The environment's measures, greedily and sampled, and pass@1 and pass@k."""
    sampled = sampled_scores(policy, environment, num_samples, temperature=temperature)
    return name_measures(greedy_scores(policy, environment), sampled)


def ways_to_answer(
    policy: CausalPolicy,
    environment: Environment,
    num_samples: int = 8,
    *,
    temperature: float = 1.0,
    cooled: float = 0.3,
    seed: int = 0,
    batch_size: int = 64,
) -> Measures:
    """The accuracy of one model in four ways, of which three cost no training.

    One sample, one at a lower temperature, the majority of all, the likeliest. Prints
    a word where that majority is one of texts, and their meaning is not known.
    """
    warm, cold = (
        sampled_scores(
            policy,
            environment,
            num_samples,
            temperature=heat,
            seed=seed,
            batch_size=batch_size,
        )
        for heat in (temperature, cooled)
    )
    greedy = greedy_scores(policy, environment, batch_size)
    if not warm.has_tags and (warning := texts_voted_on(environment.rewards)):
        print(f"[!] {warning}")
    ways = {
        f"one sample, temperature {temperature:g}": warm.accuracy.double().mean(-1),
        f"one sample, temperature {cooled:g}": cold.accuracy.double().mean(-1),
        f"majority of {num_samples}": majority(warm),
        "greedy": greedy.accuracy.double().mean(-1),
    }
    return Measures(ways, warm.groups)


def summary(measured: Mapping[str, Measures], seed: int = 0) -> DataFrame:
    """A row for each measure of each model: mean and 95 % interval over problems."""
    rows = []
    for model, measures in measured.items():
        for name, values in measures.items():
            low, high = bootstrap_interval(values, measures.groups, seed=seed)
            row = {"model": model, "measure": name, "mean": values.mean().item()}
            rows.append(row | {"low": low, "high": high, "problems": len(values)})
    return DataFrame(rows)


def evaluation_table(measured: Mapping[str, Measures], seed: int = 0) -> DataFrame:
    """A row for each measure, a column for each model: the mean and its interval."""
    rows = summary(measured, seed)
    rows["text"] = [
        f"{mean:.3f} [{low:.3f}, {high:.3f}]"
        for mean, low, high in zip(rows["mean"], rows["low"], rows["high"], strict=True)
    ]
    table = rows.pivot(index="measure", columns="model", values="text")
    counts = " or ".join(map(str, sorted(set(rows["problems"]))))
    table = table.reindex(index=rows["measure"].unique(), columns=[*measured])
    return table.fillna("").rename_axis(index=f"{counts} problems", columns=None)
