"""A course on GRPO, from sorting three numbers to a language model.

Nothing heavy is loaded here: each name below is looked up in its module when it is
first used (PEP 562), so that `import grpo_course` works before torch is installed.
"""

from importlib import import_module

_DELTAS = "grpo_course.algorithm.deltas"
_LOSSES = "grpo_course.algorithm.losses"
_AGGREGATION = "grpo_course.algorithm.aggregation"
_KL = "grpo_course.algorithm.kl"
_ROLLOUT = "grpo_course.algorithm.rollout"
_CONFIG = "grpo_course.algorithm.config"
_SORT_REWARDS = "grpo_course.sorting.rewards"
_SORT_MODEL = "grpo_course.sorting.model"
_POLICY_GRADIENT = "grpo_course.sorting.policy_gradient"
_CRITIC = "grpo_course.actor_critic.critic"
_REWARD_MODEL = "grpo_course.actor_critic.reward_model"
_SEQUENCES = "grpo_course.sequences.sampling"
_GSM8K_REWARDS = "grpo_course.gsm8k.rewards"
_SETUP = "grpo_course.classroom.setup"
_SHOW = "grpo_course.classroom.show"
_CHECK = "grpo_course.classroom.check"
_PREDICT = "grpo_course.classroom.predict"

HOMES = {
    "compute_deltas": _DELTAS,
    "DELTA_MODES": _DELTAS,
    "compute_loss": _LOSSES,
    "LOSS_MODES": _LOSSES,
    "loss_report": _LOSSES,
    "aggregate": _AGGREGATION,
    "compute_kl_penalty": _KL,
    "exact_kl": _KL,
    "Rollout": _ROLLOUT,
    "Trainer": "grpo_course.algorithm.loop",
    "train": "grpo_course.algorithm.train",
    "collect": "grpo_course.algorithm.train",
    "TrainConfig": _CONFIG,
    "sort_distance_reward": _SORT_REWARDS,
    "sort_inclusion_ordering_reward": _SORT_REWARDS,
    "sort_exact_reward": _SORT_REWARDS,
    "sort_multiset_reward": _SORT_REWARDS,
    "compute_reward": _SORT_REWARDS,
    "SortModel": _SORT_MODEL,
    "generate_responses": _SORT_MODEL,
    "compute_log_probs": _SORT_MODEL,
    "run_policy_gradient": _POLICY_GRADIENT,
    "PPO": "grpo_course.actor_critic.ppo",
    "PPOConfig": "grpo_course.actor_critic.ppo",
    "Critic": _CRITIC,
    "ValueHead": _CRITIC,
    "RewardModel": _REWARD_MODEL,
    "fit_reward_model": _REWARD_MODEL,
    "ExperienceBuffer": "grpo_course.algorithm.buffer",
    "TinyLM": "grpo_course.sequences.model",
    "Sampler": "grpo_course.algorithm.sampler",
    "SequencePolicy": _SEQUENCES,
    "load_gsm8k": "grpo_course.gsm8k.data",
    "make_problems": "grpo_course.gsm8k.problems",
    "correctness_reward": _GSM8K_REWARDS,
    "lenient_reward": _GSM8K_REWARDS,
    "format_reward": "grpo_course.language_model.template",
    "length_reward": _GSM8K_REWARDS,
    "to_trl_config": "grpo_course.engines.mapping",
    "setup": _SETUP,
    "batch_table": "grpo_course.classroom.batch_table",
    "show": _SHOW,
    "check": _CHECK,
    "progress": _CHECK,
    "predict": _PREDICT,
    "guesses": _PREDICT,
    "poll": "grpo_course.classroom.poll",
    "verdict": "grpo_course.classroom.verdict",
    "expect": "grpo_course.classroom.verdict",
    "play": "grpo_course.classroom.plots.moving",
    "slide": "grpo_course.classroom.slider",
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
