"""The solutions, written out as learners write them, agree with the package."""

import pytest
import torch

from grpo_course import ppo
from grpo_course import sort as sort_rewards
from grpo_course.classroom.check.diagnosis import judged
from grpo_course.classroom.exercises import EXERCISES
from grpo_course.classroom.hunt.broken import HEALTHY
from grpo_course.classroom.hunt.defects import DEFECTS
from grpo_course.classroom.hunt.properties import COURSE_PROBES
from grpo_course.formulas import (
    aggregate,
    compute_deltas,
    compute_kl_penalty,
    compute_loss,
    compute_ratio,
    exact_kl,
    k3,
    kl_reward,
    loss_report,
)
from grpo_course.loop import adapted_beta
from grpo_course.sampling import response_mask, shifted_log_probs, token_log_probs
from grpo_course.sequences import token_share
from grpo_course.tasks import extract_answer


def clip_fraction(ratio, deltas, epsilon):
    old = torch.full_like(ratio, -9.0, dtype=torch.float64)
    report = loss_report(old + ratio.double().log(), deltas, old, epsilon=epsilon)
    return report["clip_fraction_low"] + report["clip_fraction_high"]


def inner_step_loss(log_probs, old_log_probs, ref_log_probs, deltas, beta):
    policy_loss = compute_loss(log_probs, deltas, "clipped", old_log_probs)
    return policy_loss + beta * compute_kl_penalty(log_probs, ref_log_probs)


def gradient_by_log_probs(deltas, mask):
    log_probs = torch.zeros(mask.shape, requires_grad=True)
    old = log_probs.detach().clone()
    loss = compute_loss(log_probs, deltas, "clipped", old, mask=mask)
    return torch.autograd.grad(loss, log_probs)[0]


def token_mean_loss(deltas, lengths):
    mask = torch.arange(int(lengths.max())) < lengths[..., None]
    old = torch.zeros(mask.shape)
    return compute_loss(
        old, deltas, "clipped", old, mask=mask, aggregation="token_mean"
    )


def length_covariance(deltas, lengths):
    both = torch.stack([deltas.flatten(), lengths.flatten().to(deltas)])
    return torch.cov(both, correction=0)[0, 1]


def completion_mask(tokens, prompt_width, eos):
    mask = torch.zeros_like(tokens, dtype=torch.bool)
    mask[:, prompt_width:] = response_mask(tokens[:, prompt_width:], eos)
    return mask


def response_log_probs(logits, tokens, prompt_length):
    before = logits[:, prompt_length - 1 : -1]
    return token_log_probs(before, tokens[:, prompt_length:])


def two_means(per_token, mask, max_length):
    constant = aggregate(per_token, mask, "constant", max_length=max_length)
    return torch.stack([aggregate(per_token, mask, "token_mean"), constant])


def cispo_loss(log_probs, old_log_probs, deltas):
    return compute_loss(log_probs, deltas, "cispo", old_log_probs, epsilon_high=0.2)


def masked_clip_loss(log_probs, old_log_probs, deltas, mask, aggregation):
    how = {"mask": mask, "aggregation": aggregation}
    return compute_loss(log_probs, deltas, "clipped", old_log_probs, **how)


def loss_with_kl(policy_loss, log_probs, ref_log_probs, mask, beta):
    return policy_loss + beta * compute_kl_penalty(log_probs, ref_log_probs, mask=mask)


def masked_loss(logits, tokens, old_log_probs, ref_log_probs, deltas, eos, beta):
    width = old_log_probs.shape[-1]
    log_probs = shifted_log_probs(logits, tokens)[..., -width:]
    mask = response_mask(tokens[..., -width:], eos)
    loss = compute_loss(log_probs, deltas, "clipped", old_log_probs, mask=mask)
    return loss + beta * compute_kl_penalty(log_probs, ref_log_probs, mask=mask)


PACKAGE = {
    "count_matches": sort_rewards.sort_distance_reward,
    "batch_distance": lambda prompts, responses: sort_rewards.compute_reward(
        prompts, responses, sort_rewards.sort_distance_reward
    ),
    "duplicate_proof_reward": sort_rewards.sort_multiset_reward,
    "naive_loss": lambda x, d: compute_loss(x, d, "naive"),
    "center_by_group": lambda r: compute_deltas(r, "centered_rewards"),
    "leave_one_out": lambda r: compute_deltas(r, "leave_one_out"),
    "normalize_by_group": lambda r: compute_deltas(r, "normalized_rewards"),
    "softmax_minus_uniform": lambda r: compute_deltas(r, "centered_softmax_rewards"),
    "compute_ratio_from_logs": lambda x, old: compute_ratio(x, old.detach()),
    "clipped_surrogate_loss": lambda x, old, d: compute_loss(x, d, "clipped", old),
    "clip_fraction": clip_fraction,
    "masked_sequence_mean": lambda x, m: aggregate(x, m, "sequence_mean"),
    "exact_kl_of": exact_kl,
    "k3_estimate": k3,
    "penalized_reward": kl_reward,
    "next_beta": adapted_beta,
    "inner_step_loss": inner_step_loss,
    "gradient_by_log_probs": gradient_by_log_probs,
    "token_mean_loss_at_ratio_one": token_mean_loss,
    "length_covariance": length_covariance,
    "td_errors": ppo.td_errors,
    "generalized_advantages": ppo.generalized_advantages,
    "bradley_terry_loss": ppo.bradley_terry_loss,
    "shifted_log_probs": shifted_log_probs,
    "temperature_log_probs": token_log_probs,
    "response_mask": response_mask,
    "token_share_reward": token_share,
    "masked_clip_loss": masked_clip_loss,
    "loss_with_kl": loss_with_kl,
    "masked_loss": masked_loss,
    **COURSE_PROBES,
    "diagnosis": lambda number: DEFECTS[number].cause,
    "repaired_script": lambda source: HEALTHY,
    "extract_answer": extract_answer,
    "completion_mask": completion_mask,
    "response_log_probs": response_log_probs,
    "two_means": two_means,
    "weighted_loss": cispo_loss,
}


@pytest.mark.parametrize("name", sorted({*PACKAGE} & {e.name for e in EXERCISES}))
def test_the_package_answers_as_the_solution_does(name):
    exercise = next(each for each in EXERCISES if each.name == name)
    problem, first, pairs = judged(exercise, PACKAGE[name])
    assert not problem, (problem, pairs[first])
