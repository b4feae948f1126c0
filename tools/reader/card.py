"""What a pretrained model can do, and its README, with every number from that.

`.venv/bin/python -m tools.reader.card` writes the card of the course's own model again
from its figures, where the words of TEXT were changed.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from transformers import PreTrainedModel, PreTrainedTokenizerBase

from grpo_course.files import write_atomically
from grpo_course.lm import save_model
from grpo_course.reader import LAPTOP, MODEL, load_reader, measure_greedy
from grpo_course.training import make_policy
from tools.reader.frames import all_frames, held_out_frames
from tools.reader.stories import draw, make_stories, shared

# Chosen before the model was measured; what settings were chosen on has another seed.
SEED, PROBLEMS = 1000, 256
KNOWN = 20_000  # training stories that the other splits are compared with
FIGURES, CARD = "figures.json", "README.md"
MEANING = {  # split: what it asks
    "unseen_problems": "numbers that training never has together",
    "distractor": "the same, with a number that is beside the point",
    "two_digit": "sums of two-digit numbers, each with a carry or a borrow",
    "three_step": "three steps",
    "four_step": "four steps",
    "out_of_order": "told in another order than that of the steps",
    "unseen_frames": "numbers of training in sentences that it never has",
    "unseen_both": "new numbers in new sentences",
    "edge_both": "the same, long, in scenes hard to read: GRPO is measured here",
    "validation": "new numbers; settings may be chosen on these",
    "edge_validation": "long stories in new sentences of those scenes",
    "edge_practice": "numbers of training in these sentences: GRPO practises them",
    "sums": 'bare sums, "What is 12 + 7?", of new numbers',
    "handwritten": "problems that a person wrote outside all frames",
    "train": "numbers and sentences of training",
}

TEXT = """\
# A small language model that reads stories

A Qwen2 of {weights:,} weights, made from nothing by this course, for its finale: load \
a pretrained model, measure it, train it by GRPO, measure again. It reads word \
problems of one to four steps and writes the steps and the answer between tags.

```python
from transformers import AutoModelForCausalLM, AutoTokenizer

model = AutoModelForCausalLM.from_pretrained(folder, dtype="float32")
tokenizer = AutoTokenizer.from_pretrained(folder)
```

On a CPU, load it as float32: the file holds float16. The question is a user's message \
in the tokenizer's chat template; there is no system message.

## How it was made

```
.venv/bin/python -m tools.reader.pretrain --out runs/pretrain
```

- Settings: {settings}.
- Commit {commit}; {versions}; products in {dtype}.
- {problems:,} problems in {steps:,} steps; {seconds:,} seconds of one processor core. \
Ctrl-C stops it, the same command goes on; on one machine the weights are the same to \
the last bit.
- Data: stories that `tools/reader` tells from {frames} sentence frames, \
{held_out} of them held out, and bare sums. The loss counts the tokens of the \
response, and a little those of the prompt. No text of any other source.

## What it can do

Greedy, {count} problems a split (handwritten: {handwritten}). "Right" ignores the \
form and reads the last number; beside it stands the 95 % interval over problems. "In \
form" wants the tags too. "Read right": the steps, worked out rightly, lead to the \
answer. "Sums": of those, the share that is right.

| split | what it asks | right | 95 % interval | in form | read right | sums |
|---|---|---|---|---|---|---|
{rows}

In float32 instead of the file's float16, unseen problems come to {float32:.3f}.

Of the unseen problems, {shared_text:.0%} have a text that one of {known:,} training \
stories has too, {shared_numbers:.0%} their numbers in any order, {shared_fact:.0%} at \
least one single step, such as 12+7. Of the stories in unseen frames, \
{shared_frame:.0%} have a sentence in a frame of training.

## What it cannot do

- It knows the language of its frames. Of the problems written by hand it solves \
{hand_right} of {handwritten}: other words and other questions than its frames have \
are often misread, and it answers all the same.
- It holds no knowledge and no conversation. It reads English alone, whole numbers \
from 1 to about 300, and the four operations, of division only the half.
- Held-out frames are new sentences of known words. They are no test of new words.
- Every figure is one training run's. Another seed would give others.
"""


def card_text(figures: Mapping[str, Any]) -> str:
    """The README from what `figures.json` holds."""
    by_split = {row["split"]: row for row in figures["splits"]}
    hand, new = by_split["handwritten"], by_split["unseen_problems"]
    overlap = figures["overlap"]
    return TEXT.format(
        **{name: figures[name] for name in ("weights", "commit", "steps", "known")},
        **{name: figures[name] for name in ("problems", "frames", "held_out", "dtype")},
        seconds=round(figures["seconds"]),
        settings=", ".join(f"{k} {v}" for k, v in figures["config"].items()),
        versions=", ".join(f"{k} {v}" for k, v in figures["versions"].items()),
        count=new["problems"],
        rows="\n".join(map(table_row, figures["splits"])),
        handwritten=hand["problems"],
        hand_right=round(hand["lenient"] * hand["problems"]),
        float32=figures["float32"]["lenient"],
        shared_text=overlap["unseen_problems"]["text"],
        shared_numbers=overlap["unseen_problems"]["reordered"],
        shared_fact=overlap["unseen_problems"]["fact"],
        shared_frame=overlap["unseen_frames"]["frame"],
    )


def table_row(row: Mapping[str, Any]) -> str:
    """One line of the table."""
    interval = f"{row['low']:.3f} to {row['high']:.3f}"
    cells = (
        row["split"],
        MEANING[row["split"]],
        f"{row['lenient']:.3f}",
        interval,
        f"{row['strict']:.3f}",
        f"{row['reading']:.3f}",
        f"{row['sums']:.3f}",
    )
    return f"| {' | '.join(cells)} |"


def write_card(
    folder: Path,
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    figures: dict[str, Any],
    count: int = PROBLEMS,
) -> str:
    """Save a model as float16, measure it on `count` problems a split. -> its README

    `figures` says how the model was made, and is completed here.
    """
    known = make_stories("train", KNOWN, SEED)
    asked = {split: draw(split, count, SEED) for split in MEANING}
    alike = ("unseen_problems", "unseen_frames", "unseen_both")
    whole = make_policy(LAPTOP, model, tokenizer)
    figures |= {
        "weights": sum(weight.numel() for weight in model.parameters()),
        "frames": len(all_frames()),
        "held_out": len(held_out_frames()),
        "known": KNOWN,
        "overlap": {
            split: shared(known, make_stories(split, count, SEED)) for split in alike
        },
        "float32": measure_greedy(whole, tokenizer, asked["unseen_problems"]),
    }
    save_model(model.half(), tokenizer, folder)
    stored = load_reader(folder)
    figures["splits"] = [
        {"split": split, "problems": len(stories)} | measure_greedy(*stored, stories)
        for split, stories in asked.items()
    ]
    write_atomically(folder / FIGURES, json.dumps(figures, indent=1) + "\n")
    write_atomically(folder / CARD, card_text(figures))
    return card_text(figures)


if __name__ == "__main__":
    stored = json.loads((MODEL / FIGURES).read_text("utf-8"))
    write_atomically(MODEL / CARD, card_text(stored))
