"""What later parts add to GRPO, each beside the formula it needs.

A variant is a subclass of `algorithm.loop.Trainer` that replaces one method;
`algorithm.train` puts together those that a config asks for.

    bounds         dual clip, CISPO, SAPO: other ways to hold the ratio back
    penalty_form   PPO with a price on the distance from pi_old, in place of the clip
    resampling     dynamic sampling: tied groups are asked again
    lengths        responses that ran into the limit: pay for it, or leave them out
    mismatch       a sampler that is not quite the policy: weigh its tokens (TIS)
    stale          a policy that writes with weights of some epochs ago
    old_log_probs  pi_old from the sampler, or from the step itself
    kl_control     KL in the reward, beta that adapts, a brake on the inner steps
    reference      a reference that moves slowly
    minibatches    steps on parts of the batch (notebook 09)
    micro_batches  one gradient from several smaller forward passes
"""
