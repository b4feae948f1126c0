"""What `train`, `evaluate` and `ask` do, once their flags are read (`cli`)."""

import argparse
import json
import signal
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import cycle
from pathlib import Path

from pandas import concat

from grpo_course.files import write_atomically
from grpo_course.long_work import use_threads
from grpo_course.text.config import GRPOConfig, make_task, weigh
from grpo_course.text.errors import STOPPED, pasted
from grpo_course.text.evaluation import (
    evaluation_table,
    greedy_scores,
    name_measures,
    sampled_scores,
    summary,
    ways_to_answer,
)
from grpo_course.text.lm import CausalPolicy
from grpo_course.text.memory import print_estimate
from grpo_course.text.prompts import decode_responses, encode_prompts
from grpo_course.text.run_folder import (
    CONFIG,
    TASK,
    alone_in,
    begin,
    checkpoint_path,
    find_model,
    going_on,
    saved_epochs,
)
from grpo_course.text.runs import Run, on_interrupt
from grpo_course.text.scoring import require_room
from grpo_course.text.tasks import Problem, pay, require_rewards
from grpo_course.text.trackers import NO_LOGGER, reporting
from grpo_course.text.training import (
    load_problems,
    load_trained,
    make_policy,
    make_start,
    open_model,
)

# train


def train_in(
    out: Path,
    config: GRPOConfig,
    saved: GRPOConfig | None,
    again: str,
    report_to: str = NO_LOGGER,
) -> int:
    """Begin a run in a folder, or go on with the one that was saved there.

    `again` is the command that goes on with it, `report_to` one of `trackers`.
    -> the exit status
    """
    held = config
    if saved and config.model and saved_epochs(out) and not config.lora_rank:
        held = replace(config, model=find_model(str(out)))  # its start may be gone
    print_estimate(held)
    try:
        with alone_in(out), on_interrupt(signal.default_int_handler):
            if not saved:
                begin(config, out)
            elif going_on(saved, config) != saved:
                config.save(out / CONFIG)
            run = Run(out)
            if config.model is not None and not saved:
                print(run.agreement)
            try:
                with reporting(report_to, config, out) as run.log:
                    run.go()
            except Exception as error:
                error.add_note(how_to_go_on(out, error, again))
                raise
    except KeyboardInterrupt:
        lost = "" if saved_epochs(out) else "Nothing was saved yet: it begins again. "
        print(f"\nStopped. {lost}To go on: {again}", file=sys.stderr)
        return STOPPED
    print(f"Trained for {run.trainer.epoch} epochs. The model is in {run.newest()}.")
    print(f"Measure it: {pasted('evaluate', '--model', out)}")
    return 0


def how_to_go_on(out: Path, error: Exception, again: str) -> str:
    """What to do once it is mended: with the settings of the run, or with others."""
    if isinstance(error, OSError):
        return f"Mend it; then go on: {again}"
    kept = out / TASK
    mended = f"With a mended task, delete {kept} and go on: {again}. "
    return (mended if kept.exists() else "") + with_other_settings(out)


def with_other_settings(out: Path) -> str:
    """How a new run begins with the newest model of one, or anew without one."""
    if not saved_epochs(out):
        anew = pasted("train", "--config", out / CONFIG, "--out", out)
        return f"Nothing was saved yet. Begin anew: {anew}, and what is to be other."
    return (
        "To go on with other settings, begin a new run with its newest model: "
        f"{pasted('train', '--config', out / CONFIG, '--model', out)} --out DIR, and "
        "what is to be other."
    )


# evaluate


def measure(
    options: argparse.Namespace,
    config: GRPOConfig,
    trained: GRPOConfig | None,
    split: str,
) -> int:
    """Measure a model on the problems of one split; print it, and keep it."""
    use_threads(config.num_threads)
    policy, environment = load_trained(config, find_model(options.model), split)
    print(f"{options.model} on {config.task}, split {split}")
    number = len(environment.problems)
    print(f"{number} problems: greedily, then {config.eval_samples} samples of each")
    greedy = greedy_scores(policy, environment, options.batch)
    sampled = sampled_scores(
        policy,
        environment,
        config.eval_samples,
        temperature=config.eval_temperature,
        seed=options.seed,
        batch_size=options.batch,
    )
    measured = {"model": name_measures(greedy, sampled)}
    rows = summary(measured, options.seed)
    print(evaluation_table(measured, options.seed).to_string())
    print(
        f"Samples at temperature {config.eval_temperature}; "
        "95 % intervals over problems."
    )
    if options.baselines:
        policies = policies_to_compare(Path(options.model), config, trained, policy)
        compared = {
            name: ways_to_answer(
                each,
                environment,
                config.eval_samples,
                temperature=config.eval_temperature,
                seed=options.seed,
                batch_size=options.batch,
            )
            for name, each in policies.items()
        }
        rows = concat([rows, summary(compared, options.seed)])
        print(f"\nAccuracy\n{evaluation_table(compared, options.seed).to_string()}")
    if options.out:
        write_atomically(Path(options.out), rows.to_json(orient="records", indent=2))
    answered = zip(environment.problems, greedy.texts, strict=True)
    for problem, texts in list(answered)[: options.show]:
        print(f"\n{problem.question}\n-> {texts[0]}\n   right: {problem.answer}")
    return 0


def policies_to_compare(
    path: Path,
    config: GRPOConfig,
    trained: GRPOConfig | None,
    policy: CausalPolicy,
) -> dict[str, CausalPolicy]:
    """The start of a run, its model, and a longer imitation after a warm start."""
    starts = [f for f in (checkpoint_path(path, 0), path / "../start") if f.is_dir()]
    if not starts:
        raise FileNotFoundError(
            f"{path} has no model from before the training to compare with. Pass "
            "the folder of a run: --model runs/grpo."
        )
    policies = {"start": open_model(config, starts[0])[0], "model": policy}
    if trained and trained.model is None and trained.warm_start_steps:
        steps = trained.warm_start_steps
        steps += trained.num_epochs * trained.num_steps_per_epoch
        print(f"Longer imitation: a warm start of {steps} steps, without GRPO")
        longer = replace(trained, warm_start_steps=steps, device=config.device)
        imitator, tokenizer = make_start(longer, load_problems(longer))
        policies["longer imitation"] = make_policy(config, imitator, tokenizer)
    return policies


# ask


def converse(options: argparse.Namespace, config: GRPOConfig) -> int:
    """Answer one question, or those that are typed; -> the exit status"""
    use_threads(config.num_threads)
    policy, tokenizer = open_model(config, find_model(options.model))
    task = make_task(config)
    opening = None if options.plain else task.opening(config.system_prompt)
    rewards = weigh(task.rewards, config.reward_weights)
    for problem in asked_problems(options, config):
        prompts = encode_prompts(tokenizer, [problem.question], opening)
        require_room(policy.model, prompts, config.max_new_tokens)
        number = options.samples or 1
        rollout = policy.sample(prompts, number, greedy=not options.samples)
        (texts,) = decode_responses(tokenizer, rollout)
        earned: dict[str, Sequence[float]] = {}
        if problem.answer is not None:
            require_rewards(rewards, (), [problem])
            earned = pay(rewards, [problem] * number, texts, opening)
        for place, text in enumerate(texts):
            print(f"-> {text}")
            if earned:
                each = [f"{name} {paid[place]:g}" for name, paid in earned.items()]
                print(f"   {', '.join(each)}; right: {problem.answer}")
    return 0


def asked_problems(
    options: argparse.Namespace, config: GRPOConfig
) -> Iterator[Problem]:
    """The question of the command line; without one, a line each of what is typed.

    An empty line is a problem of the task, in the split that is reported.
    """
    if options.question is not None:
        answer = options.answer
        if answer and answer.startswith(("{", "[")):
            answer = json.loads(answer)
        yield Problem(options.question, answer)
        return
    print("Ask, or press Enter for a problem of the task. An end of file ends it.")
    drawn: Iterator[Problem] | None = None
    for line in map(str.strip, sys.stdin):
        if line:
            yield Problem(line, None)
            continue
        if drawn is None:
            split = make_task(config).splits[0]
            drawn = cycle(load_problems(config, split, config.eval_problems))
        problem = next(drawn)
        print(problem.question)
        yield problem
