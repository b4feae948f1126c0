"""Record what SmolLM2 writes before it is trained: python benchmarks/real_texts.py

Eight samples for each of some problems: stories, with their two worked examples, for
notebook 11, and words in the other order, with two as well, for notebook 15.
A few minutes on one core, once `python3 -m grpo_course fetch` has brought the model;
--model FOLDER takes it from elsewhere. Written to grpo_course/lessons/real_texts.json.
There `paid` is by hand: the samples of a story that one reader would pay.
"""

import argparse
import json
from dataclasses import replace
from importlib.resources import files
from pathlib import Path

import torch

from grpo_course.files import write_atomically
from grpo_course.text.evaluation import sampled_scores
from grpo_course.text.smollm2 import FOLDER
from grpo_course.text.training import (
    load_problems,
    make_environment,
    make_policy,
    make_start,
    presets_of,
)

PATH = Path(str(files("grpo_course.lessons") / "real_texts.json"))
ORDER = "grpo_course.lessons.word_order:WordOrder"


def record(config, split: str, count: int) -> list[dict]:
    """Each problem's question, its answer and eight sampled texts."""
    problems = load_problems(config, split, count)
    model, tokenizer = make_start(config, problems, show=False)
    asked = make_environment(config, problems, tokenizer)
    scores = sampled_scores(make_policy(config, model, tokenizer), asked, batch_size=8)
    print(f"{scores.accuracy.mean():.3f} right")
    return [
        {"question": problem.question, "answer": problem.answer, "texts": texts}
        for problem, texts in zip(problems, scores.texts, strict=True)
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default=str(FOLDER))
    parser.add_argument("--count", type=int, default=32)
    given = parser.parse_args()
    torch.set_num_threads(1)
    stories = replace(presets_of("smollm2")["smollm2"], model=given.model)
    order = replace(
        presets_of(ORDER)["pretrained"], model=given.model, task=ORDER, device="cpu"
    )
    made = {
        name: record(config, "validation", given.count)
        for name, config in {"stories": stories, "order": order}.items()
    }
    write_atomically(PATH, json.dumps(made, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
