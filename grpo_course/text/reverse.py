"""Reversing words: a whole task in one short file, to copy for one of your own.

python3 -m grpo_course new-task my_task.py              # a copy of this file
python3 -m grpo_course check-task my_task.py:Reverse    # what is wrong with it
python3 -m grpo_course train --task my_task.py:Reverse --out runs/mine
python3 -m grpo_course evaluate --model runs/mine --baselines
"""

import random
from typing import ClassVar

from grpo_course.text.responses import extract_answer, graded, in_template
from grpo_course.text.tasks import Problem, TextTask, settings, split_of

LETTERS = "abcdefghijklmnopqrstuvwxyz"


# Grading: a text that the model wrote and the right answer in, whether it is right out.
def is_reversed(text: str, word: str) -> bool:
    return extract_answer(text) == word  # what stands between <answer> and </answer>


# A reward, as TRL calls it: all texts and all right answers in, a number for each out.
# `prompts` and every field of the problems, as `question`, are there by name, too.
def accuracy(completions, answer, **kwargs):
    return graded(is_reversed, completions, answer)


@settings()
class Reverse(TextTask):
    longest: int = 6  # letters of a word; every such line is a flag: --longest 4

    # name: (function, weight). The first says what is right. Weight 0 measures only.
    rewards: ClassVar = {"accuracy": (accuracy, 1.0)}

    # Settings of a run that differ from the default; train --settings lists all.
    presets: ClassVar = {
        "words": {
            "vocab_size": 290,  # few merges: a letter stays a token of its own
            "max_new_tokens": 20,  # check-task says whether the right answer fits
            "warm_start_steps": 250,  # half learned: what GRPO is to finish
            "num_epochs": 400,
            "learning_rate": 5e-4,
        }
    }

    # Data: equal arguments give equal problems, and no split has a word of another.
    def problems(self, split, count, seed):
        rng = random.Random(f"{split} {seed}")
        words: dict[str, Problem] = {}
        while len(words) < count:
            word = "".join(rng.choices(LETTERS, k=rng.randint(3, self.longest)))
            if split_of(word) == split:
                words[word] = Problem(f"Reverse {word}.", word[::-1])
        return list(words.values())

    # A response that earns every reward. A model from nothing first imitates such ones.
    def gold(self, problem):
        return in_template(" ".join(problem.answer), problem.answer)
