"""All of GRPO on one page of plain torch, as notebook 06 writes it.

DeepSeekMath: Shao et al. 2024, arXiv 2402.03300. No checks, no knobs, no other module:
take it home. `loop.GRPO` gives the same losses and weights to the last bit.

`policy.sample(prompts, num_responses)` returns a rollout with `responses` and a `mask`,
int and bool [batch trial pos]; `policy.log_probs(rollout)` are the log-probabilities of
its tokens, [batch trial pos] in nats. `reward_fn` maps a rollout to [batch trial].
"""

import copy

import torch


def train_by_hand(
    policy,
    prompts,
    reward_fn,
    optimizer,
    num_epochs=100,  # rollouts
    num_steps=10,  # mu: optimizer steps on each rollout
    num_responses=10,  # G: responses to each prompt
    epsilon=0.2,  # half the width of the clip range
    beta=0.1,  # the price of leaving the reference
    period=10,  # epochs between two copies of the policy, pi_ref
):
    """-> the losses of all steps, [step]"""
    losses = []
    for epoch in range(num_epochs):
        if epoch % period == 0:
            ref_policy = copy.deepcopy(policy)

        # Outer: sample, judge, compare; note what pi_old and pi_ref say.
        with torch.no_grad():
            rollout = policy.sample(prompts, num_responses)
            rewards = reward_fn(rollout)  # [batch trial]
            centered = rewards - rewards[:, :1]  # so that ties give exactly zero
            centered = centered - centered.mean(dim=-1, keepdim=True)
            squares = centered.square().sum(dim=-1, keepdim=True)
            spread = (squares / (num_responses - 1)).sqrt()
            deltas = (centered / (spread + 1e-4))[..., None]  # [batch trial 1]
            old_log_probs = policy.log_probs(rollout)  # [batch trial pos]
            ref_log_probs = ref_policy.log_probs(rollout)

        mask = rollout.mask  # which tokens the policy chose; None: all of them
        mask = torch.ones_like(rollout.responses).bool() if mask is None else mask
        lengths = mask.sum(dim=-1).clamp(min=1)  # [batch trial]

        # Inner: ratio, clip, mean, KL; then the gradient and a step.
        for _ in range(num_steps):
            log_probs = policy.log_probs(rollout)

            ratio = (log_probs - old_log_probs).exp()
            clipped_ratio = ratio.clamp(1 - epsilon, 1 + epsilon)
            gain = torch.minimum(ratio * deltas, clipped_ratio * deltas)

            difference = ref_log_probs - log_probs
            k3 = torch.expm1(difference) - difference  # estimates KL(pi || pi_ref)

            # The mean over the tokens of each response, then over the responses.
            policy_loss = (torch.where(mask, -gain, 0).sum(-1) / lengths).mean()
            kl = (torch.where(mask, k3, 0).sum(-1) / lengths).mean()
            loss = policy_loss + beta * kl

            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.detach())
    return torch.stack(losses)
