"""The environment: what the loop asks, and is paid by."""

import hashlib
import json
import random
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any
from unicodedata import normalize

import torch
from torch import Tensor

from grpo_course.checks import require_at_least
from grpo_course.loop import History, Rollout, tied_groups
from grpo_course.sampling import prompt_mask, response_mask, unpad_rows
from grpo_course.text.prompts import (
    AS_WRITTEN,
    as_rollout,
    decode_responses,
    encode_prompts,
    turn_end,
)
from grpo_course.text.responses import Opening, Reward
from grpo_course.text.tasks import Problem, pay, require_rewards

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

Tokens = tuple[int, ...]


def places_of(total: int, num_prompts: int, seed: int, epoch: int) -> list[int]:
    """Which of `total` problems an epoch asks: each once in a new order, then again."""
    places = range(epoch * num_prompts, (epoch + 1) * num_prompts)
    orders = {
        turn: random.Random(f"{seed} {turn}").sample(range(total), total)
        for turn in {place // total for place in places}
    }
    return [orders[place // total][place % total] for place in places]


def fingerprint(problems: Sequence[Problem]) -> str:
    """How many problems there are, and a digest of all in their order.

    An answer that JSON does not know is told by its type.
    """

    rows = [[each.question, each.solution, each.answer] for each in problems]
    text = json.dumps(rows, default=lambda x: type(x).__name__, skipkeys=True)
    return f"{len(problems)} ({hashlib.sha256(text.encode()).hexdigest()[:12]})"


class Environment:
    """The problems of a task in the words of one tokenizer.

    `prompts` and `reward` are what the loop calls. `rewards` and `measures` are as in
    `TextTask`. `note` adds the mean of each reward over the latest rollout to the
    history, as further columns, and the shares of the groups that are tied because all
    of their responses are right, or all wrong.
    """

    def __init__(
        self,
        problems: Sequence[Problem],
        tokenizer: "PreTrainedTokenizerBase",
        rewards: Mapping[str, tuple[Reward, float]],
        num_prompts: int = 16,
        seed: int = 0,
        *,
        opening: Opening = None,
        measures: Sequence[str] = (),
    ) -> None:
        self.problems, self.tokenizer = list(problems), tokenizer
        if not self.problems:
            raise ValueError(
                "problems is empty: there is nothing to ask. Check the data set, and "
                "what was filtered out of it."
            )
        require_rewards(rewards, measures, self.problems)
        require_at_least("num_prompts", num_prompts, 1)
        self.rewards, self.num_prompts, self.seed = rewards, num_prompts, seed
        self.opening, self.measures = opening, tuple(measures or rewards)
        judge, _ = next(iter(rewards.values()))
        self.meaning: Callable[[str], Hashable] | None = getattr(judge, "meaning", None)
        questions = [problem.question for problem in self.problems]
        self.tokens = encode_prompts(tokenizer, questions, opening)
        self.asked: dict[Tokens, Problem] = {}
        for problem, key in zip(self.problems, self.keys(self.tokens), strict=True):
            other = self.asked.setdefault(key, problem)
            if other.answer != problem.answer:
                raise ValueError(
                    f"Two problems ask {problem.question[:60]!r}, and their answers are"
                    f" {other.answer!r} and {problem.answer!r}. Leave one of them out."
                )
        self.latest: dict[str, float] = {}
        self.seen: tuple[Rollout, dict[str, Tensor]] | None = None

    def prompts(self, epoch: int) -> Tensor:
        """What to ask in an epoch, padded on the left. -> int [batch pos]"""
        return self.ask(self.chosen(epoch))

    def chosen(self, epoch: int) -> list[int]:
        """Which problems an epoch asks, by their places in the list."""
        return places_of(len(self.problems), self.num_prompts, self.seed, epoch)

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
        # Groups that teach nothing. Ties of the rest are right in part, or the rewards
        # say by how much.
        tied = tied_groups(total)
        noted = graded | {
            "tied_right": (tied & (right == 1).all(dim=-1)).float(),
            "tied_wrong": (tied & (right == 0).all(dim=-1)).float(),
        }
        self.latest = {name: column.mean().item() for name, column in noted.items()}
        return total

    def note(self, history: History) -> None:
        """Add the means over the latest rollout to the first record of its epoch."""
        first = next(r for r in history.records[::-1] if r["step"] == 0)
        first.update({k: torch.tensor(v) for k, v in self.latest.items()})

    def weighed(self, graded: dict[str, Tensor]) -> Tensor:
        """The rewards of each response, weighed and added. -> [batch trial]"""
        weighed = (self.rewards[name][1] * each for name, each in graded.items())
        return sum(weighed, torch.tensor(0.0))

    def grade(self, rollout: Rollout) -> dict[str, Tensor]:
        """Each reward of each response by its name, [batch trial], not weighed."""
        groups = decode_responses(self.tokenizer, rollout)
        device, trial = rollout.responses.device, rollout.responses.shape[-2]
        texts = [text for group in groups for text in group]
        problems = [p for p in self.problems_of(rollout.prompts) for _ in range(trial)]
        earned = pay(self.rewards, problems, texts, self.opening)
        return {
            name: torch.tensor(values, dtype=torch.float32).to(device).view(-1, trial)
            for name, values in earned.items()
        }

    def problems_of(self, prompts: Tensor) -> list[Problem]:
        """The problem that each prompt asks, int [batch pos]."""
        keys = self.keys(prompts)
        unknown = [i for i, key in enumerate(keys) if key not in self.asked]
        if unknown:
            raise ValueError(
                f"prompts[{unknown[0]}] is none of these {len(self.problems)} "
                "problems, so its answer is not known. Take prompts from "
                "environment.prompts(epoch) or environment.ask(places)."
            )
        return [self.asked[key] for key in keys]

    def keys(self, prompts: Tensor) -> list[Tokens]:
        """Prompts as one finds their problems by: the tokens without the padding."""
        rows = unpad_rows(prompts.cpu(), self.tokenizer.pad_token_id)
        return [tuple(row) for row in rows]


def what_is_lost(
    environment: Environment,
    golds: Sequence[str],
    ends: Sequence[int],
    max_new_tokens: int,
) -> Iterator[str]:
    """What of the gold responses does not come back, each loss in one line.

    `golds` answer the first problems. They go through template and tokenizer as if a
    policy wrote them, to the first of `ends`, and back to every reward.
    """
    tokenizer, opening = environment.tokenizer, environment.opening
    name_of = tokenizer.convert_ids_to_tokens
    problems = environment.problems[: len(golds)]
    rollout = as_rollout(tokenizer, [p.question for p in problems], golds, opening)
    lengths = response_mask(rollout.responses, turn_end(tokenizer)).sum(dim=-1)
    read = tokenizer.batch_decode(rollout.prompts, **AS_WRITTEN)
    back = [text for (text,) in decode_responses(tokenizer, rollout)]
    due = pay(environment.rewards, problems, list(golds), opening)
    paid = pay(environment.rewards, problems, back, opening)

    def holds(*texts: str) -> bool:  # whatever the spaces, and how letters are made up
        text, part = ("".join(normalize("NFKC", each).split()) for each in texts)
        return part in text

    for i, (problem, gold) in enumerate(zip(problems, golds, strict=True)):
        if not holds(read[i], problem.question):
            yield f"the question {problem.question!r} is read as {read[i]!r}"
        if early := {*tokenizer(gold, add_special_tokens=False)["input_ids"]} & {*ends}:
            yield f"{gold!r} holds {name_of(min(early))!r}, which ends a response"
        for name in due:
            if paid[name][i] < due[name][i]:
                yield (
                    f"{gold!r} comes back as {back[i]!r}, for which rewards[{name!r}] "
                    f"pays {paid[name][i]:g} and not {due[name][i]:g}"
                )
        if not holds(back[i], gold):
            yield f"{gold!r} comes back as {back[i]!r}"
        if (length := int(lengths[i])) > max_new_tokens:
            yield (
                f"{gold!r} has {length} tokens with its end, and max_new_tokens="
                f"{max_new_tokens} cuts it off"
            )


def sample_rows(environment: Environment, count: int) -> list[dict[str, Any]]:
    """What the first `count` prompts of the latest rollout were answered.

    A row for each response: each of its rewards, `reward`, which is their weighed sum,
    question, right answer and completion.
    """
    if environment.seen is None:
        return []
    rollout, graded = environment.seen
    rewards = {name: column.tolist() for name, column in graded.items()}
    rewards["reward"] = environment.weighed(graded).tolist()
    texts = decode_responses(environment.tokenizer, rollout)
    rows = []
    for i, problem in enumerate(environment.problems_of(rollout.prompts)[:count]):
        asked = {"question": problem.question, "answer": str(problem.answer)}
        for j, text in enumerate(texts[i]):
            earned = {name: column[i][j] for name, column in rewards.items()}
            rows.append(earned | asked | {"completion": text})
    return rows
