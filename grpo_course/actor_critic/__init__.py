"""What PPO has beside the policy: a critic, its advantages, a reward model."""
