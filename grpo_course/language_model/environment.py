"""Problems as the loop wants them: prompts for each epoch, a reward for each response.

What is asked in an epoch depends on the seed and the epoch alone, and the answer to a
prompt is found by its tokens. So a run that is resumed asks what it would have asked.
"""

import random
from collections.abc import Mapping, Sequence
from math import isfinite
from numbers import Real
from typing import Any

import torch
from torch import Tensor
from transformers import PreTrainedTokenizerBase

from grpo_course.algorithm.history import History
from grpo_course.algorithm.masks import prompt_mask
from grpo_course.algorithm.rollout import Rollout
from grpo_course.algorithm.validation import require_at_least
from grpo_course.language_model.encoding import decode_responses, encode_prompts
from grpo_course.language_model.samples import split_ties
from grpo_course.language_model.text_task import Problem, Reward, require_rewards

Tokens = tuple[int, ...]


class Environment:
    """The problems of a task in the words of one tokenizer.

    `prompts` and `reward` are what the loop calls. `rewards` maps a name to a function
    and its weight, `measures` are those that an evaluation reports; both as in
    `TextTask`. Called as the loop's `watch`, `note` adds the mean of each of them over
    the latest rollout to the history, as further columns, and how many groups are tied
    because all of their responses are right, or wrong.
    Raises ValueError if there is no problem, and for one prompt with two answers.
    """

    def __init__(
        self,
        problems: Sequence[Problem],
        tokenizer: PreTrainedTokenizerBase,
        rewards: Mapping[str, tuple[Reward, float]],
        num_prompts: int = 16,
        seed: int = 0,
        *,
        system_prompt: str | None = None,
        measures: Sequence[str] = (),
    ) -> None:
        require_problems(problems)
        require_rewards(rewards, measures)
        require_at_least("num_prompts", num_prompts, 1)
        self.problems, self.tokenizer = list(problems), tokenizer
        self.rewards, self.num_prompts, self.seed = rewards, num_prompts, seed
        self.measures = tuple(measures) or tuple(rewards)
        questions = [problem.question for problem in self.problems]
        self.tokens = encode_prompts(tokenizer, questions, system_prompt)
        keys = self.keys(self.tokens)
        self.answers = join_answers(self.problems, keys)
        self.questions = dict(zip(keys, questions, strict=True))
        self.latest: dict[str, float] = {}
        self.seen: tuple[Rollout, dict[str, Tensor]] | None = None

    def prompts(self, epoch: int) -> Tensor:
        """What to ask in an epoch, padded on the left. -> int [batch pos]"""
        return self.ask(self.chosen(epoch))

    def chosen(self, epoch: int) -> list[int]:
        """Which problems an epoch asks: each once in a new order, then all again."""
        total = len(self.problems)
        places = range(epoch * self.num_prompts, (epoch + 1) * self.num_prompts)
        orders = {
            turn: random.Random(f"{self.seed} {turn}").sample(range(total), total)
            for turn in {place // total for place in places}
        }
        return [orders[place // total][place % total] for place in places]

    def ask(self, chosen: Sequence[int]) -> Tensor:
        """The prompts of some problems, by their places in the list.

        -> int [batch pos], padded on the left, no wider than the longest of them
        """
        tokens = self.tokens[list(chosen)]
        used = prompt_mask(tokens, self.tokenizer.pad_token_id).any(dim=0)
        return tokens[:, used]

    def reward(self, rollout: Rollout) -> Tensor:
        """What each response earns, which is also noted. -> [batch trial]"""
        graded = self.grade(rollout)
        self.seen = rollout, graded
        total, right = self.weighed(graded), next(iter(graded.values()))
        means = {name: column.mean().item() for name, column in graded.items()}
        self.latest = means | split_ties(total, right)
        return total

    def weighed(self, graded: dict[str, Tensor]) -> Tensor:
        """The rewards of each response, weighed and added. -> [batch trial]"""
        parts = (self.rewards[name][1] * each for name, each in graded.items())
        return sum(parts, torch.tensor(0.0))

    def grade(self, rollout: Rollout) -> dict[str, Tensor]:
        """Each reward of each response by its name, [batch trial], not weighed.

        Raises ValueError for a prompt that is none of the problems', and for a reward
        function that does not return a number for each response.
        """
        groups = decode_responses(self.tokenizer, rollout)
        texts = [text for group in groups for text in group]
        trial = rollout.responses.shape[-2]
        answers = [a for a in self.answers_to(rollout.prompts) for _ in range(trial)]
        graded = {}
        for name, (function, _) in self.rewards.items():
            values = function(texts, answer=answers)
            require_numbers(name, values, len(texts))
            column = torch.tensor(values, dtype=torch.float32)
            graded[name] = column.to(rollout.responses.device).view(-1, trial)
        return graded

    def note(self, history: History) -> None:
        """Add the means over the latest rollout to the first record of its epoch."""
        first = next(r for r in history.records[::-1] if r["step"] == 0)
        first.update({k: torch.tensor(v) for k, v in self.latest.items()})

    def answers_to(self, prompts: Tensor) -> list[Any]:
        """The right answer to each prompt, int [batch pos]."""
        keys = self.keys(prompts)
        unknown = [i for i, key in enumerate(keys) if key not in self.answers]
        if unknown:
            raise ValueError(
                f"prompts[{unknown[0]}] is none of these {len(self.problems)} "
                "problems, so its answer is not known. Take prompts from "
                "environment.prompts(epoch) or environment.ask(places)."
            )
        return [self.answers[key] for key in keys]

    def keys(self, prompts: Tensor) -> list[Tokens]:
        """Prompts as one finds their answers by: the tokens without the padding."""
        prompts = prompts.cpu()
        real = prompt_mask(prompts, self.tokenizer.pad_token_id)
        rows = zip(prompts, real, strict=True)
        return [tuple(row[kept].tolist()) for row, kept in rows]


def require_problems(problems: Sequence[Problem]) -> None:
    """Check that there is something to ask."""
    if not len(problems):
        raise ValueError(
            "problems is empty: there is nothing to ask. Check the data set, and "
            "what was filtered out of it."
        )


def require_numbers(name: str, values: Any, count: int) -> None:
    """Check what a reward function returned."""
    listed = isinstance(values, list | tuple)
    if not listed or len(values) != count:
        given = f"{len(values)} values" if listed else f"a {type(values).__name__}"
        raise ValueError(
            f"rewards[{name!r}] returned {given} for {count} completions. Return a "
            "list of floats, one for each."
        )
    for value in values:
        if not (isinstance(value, Real) and isfinite(value)):
            raise ValueError(
                f"rewards[{name!r}] returned {value!r} for a completion. Return a "
                "finite number for each; 0.0 where there is nothing to reward."
            )


def join_answers(
    problems: Sequence[Problem], keys: Sequence[Tokens]
) -> dict[Tokens, Any]:
    """The answer for each key. The same question twice must have one answer."""
    answers: dict[Tokens, Any] = {}
    for problem, key in zip(problems, keys, strict=True):
        if answers.setdefault(key, problem.answer) != problem.answer:
            raise ValueError(
                f"Two problems ask {problem.question[:60]!r}, and their answers are "
                f"{answers[key]!r} and {problem.answer!r}. Leave one of them out."
            )
    return answers
