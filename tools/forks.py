"""Record which tokens of its answers one update of SmolLM2 moves, for notebook 12.

.venv/bin/python -m tools.forks --model models/smollm2

One step on a group of eight answers, written to grpo_course/lessons/forks.json.
"""

import argparse
import json

import torch

from grpo_course.files import write_atomically
from grpo_course.formulas import compute_loss
from grpo_course.lessons.finale import FORKS
from grpo_course.loop import Rollout, collect
from grpo_course.text.models import load_model, load_tokenizer
from grpo_course.text.prompts import decode_responses
from grpo_course.text.training import (
    load_problems,
    make_environment,
    make_optimizer,
    make_policy,
    presets_of,
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    config = presets_of("smollm2")["smollm2"]
    parser.add_argument("--model", default=config.model)
    folder = parser.parse_args().model
    model, tokenizer = load_model(folder), load_tokenizer(folder)
    problems = load_problems(config)
    environment = make_environment(config, problems, tokenizer)
    policy = make_policy(config, model, tokenizer)
    batch = collect(policy, environment.prompts(0), environment.reward, config)
    # The group that holds most right answers teaches the sum, and not the form alone.
    at = int((batch.rewards > 1).sum(dim=-1).argmax())
    rolled = batch.rollout
    assert rolled.mask is not None
    parts = (rolled.prompts, rolled.responses, rolled.mask)
    group = Rollout(*(part[at][None] for part in parts))
    mask = parts[2][at]  # bool [trial pos]
    problem = problems[environment.chosen(0)[at]]
    deltas, rewards = batch.deltas[at], batch.rewards[at]
    optimizer = make_optimizer(config, policy)
    scores = policy.log_probs(group)
    compute_loss(scores, deltas[None], "naive", mask=mask[None]).backward()
    optimizer.step()
    with torch.no_grad():
        after = policy.log_probs(group)
    steps = {"then": scores.detach()[0].exp(), "now": after[0].exp()}  # [trial pos]
    rows = []
    for row, text in enumerate(decode_responses(tokenizer, rolled)[at]):
        real = mask[row]
        ids = group.responses[0, row][real].tolist()
        rows.append(
            {
                "text": text,
                "reward": round(rewards[row].item(), 2),
                "delta": round(deltas[row].item(), 4),
                "tokens": [tokenizer.decode([each]) for each in ids],
            }
            | {
                name: [round(chance, 5) for chance in chances[row][real].tolist()]
                for name, chances in steps.items()
            }
        )
    told = {"question": problem.question, "answer": problem.answer}
    write_atomically(FORKS, json.dumps(told | {"rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
