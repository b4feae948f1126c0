"""Our loop against TRL's GRPOTrainer: same language model, prompts, lengths, steps.

Three workloads of fixed lengths, so that both programs write and learn as many tokens:
in W1 matrix products weigh something, in W2 the overhead is nearly all, the third has
the sizes of the tiny model of the task gsm8k. One thing TRL does more: its fixed length
is min_new_tokens, which hides EOS at every token, while our sampler simply has no EOS.
One thread, CPU seconds. The rounds are interleaved, so that a machine that slows down
slows both; a ratio comes with its spread. Then where the time goes, and which share of
it the matrix products alone would take.

Ours is timed twice, as it is and with torch.compile, whose minute of compiling comes
before the clock starts; TRL's trainer has a switch for it too, which is off.

python benchmarks/bench_trl.py [rounds [workload]]
"""

import os

os.environ |= {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}

import sys
import tempfile
import warnings
from pathlib import Path
from statistics import median
from typing import Any

import torch
from clock import Stopwatch
from datasets import Dataset
from torch import Tensor
from transformers import PrinterCallback, TrainerCallback
from transformers.utils import logging
from workloads import (
    GROUP,
    LEARNING_RATE,
    QUESTIONS,
    SUMS,
    WORKLOADS,
    Workload,
    digits_reward,
    make_parts,
    products,
)

from grpo_course.loop import Rollout, train
from grpo_course.sampling import Sampler
from grpo_course.text.lm import CausalPolicy
from grpo_course.text.models import load_model
from grpo_course.text.prompts import decode_responses, encode_prompts
from grpo_course.text.responses import chat_messages
from grpo_course.text.trl import require_trl, to_trl_config

Given = tuple[Workload, Path, Any]  # what to do, where the model lies, its tokenizer


class TimedPolicy(CausalPolicy):
    """The policy of the course, with a clock at its doors."""

    watch: Stopwatch

    def sample(self, prompts: Tensor, num_responses: int) -> Rollout:
        with self.watch.part("generation"):
            return super().sample(prompts, num_responses)

    def log_probs(self, rollout: Rollout) -> Tensor:
        if torch.is_grad_enabled():
            return super().log_probs(rollout)  # of an update
        with self.watch.part("scoring"):
            return super().log_probs(rollout)


def run_ours(
    workload: Workload, folder: Path, tokenizer: Any, compiled: bool = False
) -> dict[str, float]:
    """CPU seconds by part, without the first epochs."""
    model, watch = load_model(folder), Stopwatch()
    if compiled:
        torch.compiler.reset()  # it compiles for so many models in a process
        model.base_model.compile(dynamic=True)
    sampler = Sampler(workload.tokens, pad=tokenizer.pad_token_id)  # no early end
    policy = TimedPolicy(model, sampler, torch.Generator().manual_seed(0))
    policy.watch = watch
    tokens, chosen = encode_prompts(tokenizer, QUESTIONS), []

    def prompts(epoch: int) -> Tensor:
        if epoch == workload.warmup:
            watch.start()
        first = epoch * workload.prompts
        chosen[:] = [(first + i) % len(QUESTIONS) for i in range(workload.prompts)]
        return tokens[chosen]

    def reward(rollout: Rollout) -> Tensor:
        with watch.part("scoring"):
            groups = decode_responses(tokenizer, rollout)
            answers = [SUMS[i] for i in chosen for _ in range(GROUP)]
            rewards = digits_reward([t for group in groups for t in group], answers)
            return torch.tensor(rewards).view(-1, GROUP)

    optimizer = torch.optim.AdamW(  # fused, as TRL's is
        model.parameters(), LEARNING_RATE, weight_decay=0.0, fused=True
    )
    train(policy, prompts, reward, optimizer, workload.config)
    return watch.stop("update")


class StartWatch(TrainerCallback):
    """Starts a watch after so many steps of the optimizer."""

    def __init__(self, watch: Stopwatch, step: int):
        self.watch, self.step = watch, step

    def on_step_end(self, args: Any, state: Any, control: Any, **_: object) -> None:
        if state.global_step == self.step:
            self.watch.start()


def run_trl(workload: Workload, folder: Path, tokenizer: Any) -> dict[str, float]:
    """The same with TRL."""
    watch = Stopwatch()

    class Timed(require_trl().GRPOTrainer):
        """TRL's trainer, with a clock where it writes and where it judges."""

        def _generate(self, *given: Any) -> Any:
            with watch.part("generation"):
                return super()._generate(*given)

        def _generate_and_score_completions(self, inputs: Any) -> Any:
            with watch.part("scoring"):
                return super()._generate_and_score_completions(inputs)

    prompts = [chat_messages(question, None) for question in QUESTIONS]
    trainer = Timed(
        model=load_model(folder),
        reward_funcs=digits_reward,
        args=trl_config(workload, folder),
        train_dataset=Dataset.from_dict({"prompt": prompts, "answer": SUMS}),
        processing_class=tokenizer,
        callbacks=[StartWatch(watch, workload.warmup * workload.num_steps)],
    )
    trainer.remove_callback(PrinterCallback)
    trainer.train()
    return watch.stop("update")


def trl_config(workload: Workload, folder: Path) -> object:
    """The same settings for TRL."""
    return to_trl_config(
        workload.config,
        output_dir=str(folder / "trl"),
        use_cpu=True,
        bf16=False,
        report_to="none",
        save_strategy="no",
        disable_tqdm=True,
        logging_steps=10**6,
        gradient_checkpointing=False,
        per_device_train_batch_size=workload.prompts * GROUP,
        generation_kwargs={"min_new_tokens": workload.tokens},
        learning_rate=LEARNING_RATE,
        lr_scheduler_type="constant",
    )


def report(given: Given, rounds: int) -> None:
    """Interleaved rounds of one workload, and what they say."""
    workload, alone = given[0], products(*given)
    seen: dict[str, list] = {"ours": [], "compiled": [], "TRL": []}
    for _ in range(rounds):
        seen["ours"].append(run_ours(*given))
        seen["compiled"].append(run_ours(*given, compiled=True))
        seen["TRL"].append(run_trl(*given))
    timed = workload.epochs - workload.warmup
    print(workload)
    for name, runs in seen.items():
        total = median(sum(parts.values()) for parts in runs)
        rate = timed * workload.prompts * GROUP / total
        print(f"  {name:4s} {rate:7.1f} completions per CPU-second; an epoch:", end="")
        for part, least in alone.items():
            taken = median(run.get(part, 0.0) for run in runs) / timed
            print(f"  {part} {1000 * taken:.1f} ms ({least / taken:.0%})", end="")
        print()
    for name in ("ours", "compiled"):
        pairs = zip(seen[name], seen["TRL"], strict=True)
        ratios = sorted(sum(t.values()) / sum(o.values()) for o, t in pairs)
        spread = f"[{ratios[0]:.2f}..{ratios[-1]:.2f}], {rounds} rounds"
        print(f"  {name} / TRL {median(ratios):.2f} {spread}", flush=True)


def main(arguments: list[str]) -> None:
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    rounds = int(arguments[0]) if arguments else 5
    for workload in WORKLOADS:
        if arguments[1:] and workload.name not in arguments[1:]:
            continue
        with tempfile.TemporaryDirectory() as folder:
            report((workload, Path(folder), make_parts(workload, Path(folder))), rounds)


if __name__ == "__main__":
    main(sys.argv[1:])
