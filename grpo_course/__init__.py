"""A course on GRPO, from sorting three numbers to a language model.

Nothing heavy is loaded here: each name below is looked up in its module when it is
first used (PEP 562), so that `import grpo_course` works before torch is installed.
"""

from importlib import import_module

HOMES = {
    "compute_deltas": "grpo_course.formulas",
    "DELTA_MODES": "grpo_course.formulas",
    "compute_loss": "grpo_course.formulas",
    "LOSS_MODES": "grpo_course.formulas",
    "loss_report": "grpo_course.formulas",
    "aggregate": "grpo_course.formulas",
    "compute_kl_penalty": "grpo_course.formulas",
    "exact_kl": "grpo_course.formulas",
    "Rollout": "grpo_course.loop",
    "GRPO": "grpo_course.loop",
    "Trainer": "grpo_course.loop",
    "train": "grpo_course.loop",
    "collect": "grpo_course.loop",
    "TrainConfig": "grpo_course.loop",
    "sort_distance_reward": "grpo_course.sort",
    "sort_inclusion_ordering_reward": "grpo_course.sort",
    "sort_exact_reward": "grpo_course.sort",
    "sort_multiset_reward": "grpo_course.sort",
    "compute_reward": "grpo_course.sort",
    "SortModel": "grpo_course.sort",
    "generate_responses": "grpo_course.sort",
    "compute_log_probs": "grpo_course.sort",
    "run_policy_gradient": "grpo_course.sort",
    "PPO": "grpo_course.ppo",
    "PPOConfig": "grpo_course.ppo",
    "Critic": "grpo_course.ppo",
    "RewardModel": "grpo_course.lessons.preferences",
    "fit_reward_model": "grpo_course.lessons.preferences",
    "ExperienceBuffer": "grpo_course.loop",
    "TinyLM": "grpo_course.sequences",
    "Sampler": "grpo_course.sampling",
    "SequencePolicy": "grpo_course.sequences",
    "load_gsm8k": "grpo_course.text.gsm8k",
    "make_problems": "grpo_course.text.stories",
    "correctness_reward": "grpo_course.text.grader",
    "lenient_reward": "grpo_course.text.grader",
    "format_reward": "grpo_course.text.responses",
    "length_reward": "grpo_course.text.grader",
    "to_trl_config": "grpo_course.text.trl",
    "setup": "grpo_course.classroom.setup",
    "show": "grpo_course.classroom.show",
    "check": "grpo_course.classroom.check",
    "progress": "grpo_course.classroom.check",
    "predict": "grpo_course.classroom.predict",
    "guesses": "grpo_course.classroom.predict",
    "verdict": "grpo_course.classroom.verdict",
    "expect": "grpo_course.classroom.verdict",
    "play": "grpo_course.classroom.moving",
    "slide": "grpo_course.classroom.moving",
}


__all__ = sorted(HOMES)


def __getattr__(name: str) -> object:
    if name not in HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(HOMES[name]), name)
    globals()[name] = value  # the next use does not come through here
    return value


def __dir__() -> list:
    return sorted({*globals(), *HOMES})
