"""All of GRPO on one page of plain torch: the loop of notebook 06.

DeepSeekMath: Shao et al. 2024, arXiv 2402.03300. No checks, no knobs, no other module:
take it home. Its defaults are what the course advises to begin with. `loop.GRPO` gives
the same losses and weights to the last bit, with `kl_estimator="corrected_k3"`.

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
    num_steps=1,  # mu: optimizer steps on each rollout
    num_responses=8,  # G: responses to each prompt
    epsilon=0.2,  # half the width of the clip range
    beta=0.0,  # the price of leaving the reference; 0: none is kept
    period=1_000_000,  # epochs between two copies of the policy, pi_ref: here never
):
    """-> {"loss": [step], "mean_reward": [epoch], "tied_groups": [epoch]}

    A group is tied where all responses to a prompt earn the same: it teaches nothing.
    """

    def score(policy, rollout, mask):  # 0 on padding, which may hold -inf
        return torch.where(mask, policy.log_probs(rollout), 0)

    history: dict[str, list] = {"loss": [], "mean_reward": [], "tied_groups": []}
    for epoch in range(num_epochs):
        if beta and epoch % period == 0:
            ref_policy = copy.deepcopy(policy)

        # Outer: sample, judge, compare; note what pi_old and pi_ref say.
        with torch.no_grad():
            rollout = policy.sample(prompts, num_responses)
            mask = rollout.mask  # which tokens the policy chose; None: all of them
            mask = torch.ones_like(rollout.responses).bool() if mask is None else mask
            rewards = reward_fn(rollout)  # [batch trial]
            centered = rewards - rewards[:, :1]  # so that ties give exactly zero
            centered = centered - centered.mean(dim=-1, keepdim=True)
            squares = centered.square().sum(dim=-1, keepdim=True)
            spread = (squares / (num_responses - 1)).sqrt()
            deltas = (centered / (spread + 1e-4))[..., None]  # [batch trial 1]
            old_log_probs = score(policy, rollout, mask)  # [batch trial pos]
            ref_log_probs = score(ref_policy, rollout, mask) if beta else None
        history["mean_reward"].append(rewards.mean())
        history["tied_groups"].append((centered == 0).all(dim=-1).float().mean())

        # Inner: ratio, clip, mean, KL; then the gradient and a step.
        lengths = mask.sum(dim=-1).clamp(min=1)  # [batch trial]
        for _ in range(num_steps):
            log_probs = score(policy, rollout, mask)

            ratio = (log_probs - old_log_probs).clamp(max=20).exp()  # always finite
            clipped_ratio = ratio.clamp(1 - epsilon, 1 + epsilon)
            gain = torch.minimum(ratio * deltas, clipped_ratio * deltas)

            # The mean over the tokens of each response, then over the responses.
            loss = (torch.where(mask, -gain, 0).sum(-1) / lengths).mean()

            if beta:
                # The tokens are pi_old's. Weighed by the ratio, k3 estimates
                # KL(pi || pi_ref) of each next token at every step, and the gradient.
                ratio = (log_probs - old_log_probs).clamp(max=20).exp()
                difference = ref_log_probs - log_probs
                kl = ratio * (torch.expm1(difference) - difference)
                loss = loss + beta * (torch.where(mask, kl, 0).sum(-1) / lengths).mean()

            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            history["loss"].append(loss.detach())
    return {name: torch.stack(values) for name, values in history.items()}
