/* The knobs of the playground, and settings that tell a story of the notebooks. */
"use strict";

const PLAYGROUND = (() => {
  const PROMPTS = {
    "1 0 2, 3 2 4, 1 2 3": [[1, 0, 2], [3, 2, 4], [1, 2, 3]],
    "with repeats: 1 1 2, 2 0 2, 3 3 3": [[1, 1, 2], [2, 0, 2], [3, 3, 3]],
  };
  const [DISTINCT, REPEATS] = Object.keys(PROMPTS);

  // What a change does at once; every other knob counts from the next step on.
  const NOW = {
    restart: "The policy starts again",
    sample: "A new group was sampled",
    judge: "The group was judged anew",
  };

  const KNOBS = [
    { name: "num_responses", symbol: "G", words: "responses in a group", does: "sample",
      values: [2, 3, 4, 6, 8, 10, 12, 16, 20] },
    { name: "num_steps_per_epoch", symbol: "μ", words: "inner steps on a group",
      values: [1, 2, 4, 6, 8, 10, 15, 20] },
    { name: "learning_rate", words: "size of a step",
      values: [0, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 1] },
    { name: "epsilon", symbol: "ε", words: "clip range",
      values: [0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 1] },
    { name: "kl_penalty", symbol: "β", words: "weight of the KL",
      values: [0, 0.01, 0.03, 0.1, 0.3, 1, 3] },
    { name: "init_scale", words: "spread of the start", does: "restart",
      values: [0.03, 0.1, 0.3, 1, 3] },
    { name: "reward_fn", words: "reward", does: "judge",
      values: Object.keys(GRPO.REWARDS) },
    { name: "deltas_mode", words: "deltas", does: "judge",
      values: Object.keys(GRPO.DELTA_MODES) },
    { name: "loss_mode", words: "loss", values: Object.keys(GRPO.LOSS_MODES) },
    { name: "prompts", words: "prompts", does: "restart", values: [DISTINCT, REPEATS] },
    { name: "kl_estimator", words: "estimator of the KL",
      values: Object.keys(GRPO.KL_ESTIMATORS) },
    { name: "compute_ref_model_period", words: "epochs until the reference is renewed",
      values: [1, 10, 1000] },
  ];

  const FORMULAS = {
    sort_distance_reward: "a point for each number in its place",
    sort_inclusion_ordering_reward:
      "a point for each number of the prompt that occurs, and for each pair in order",
    sort_multiset_reward: "the same, but a number covers one number of the prompt only",
    sort_exact_reward: "one point for the right answer, none for any other",
    rewards: "δ = R",
    centered_rewards: "δ = R − mean of the group",
    normalized_rewards: "δ = (R − mean) / (standard deviation + 0.0001)",
    max_rewards: "δ = R for the best of the group, 0 for the others",
    centered_max_rewards: "δ = R − mean for the best of the group, 0 for the others",
    leave_one_out: "δ = R − mean of the others",
    batch_normalized_rewards: "δ = (R − mean) / (deviation over all groups + 0.0001)",
    whitened_rewards: "δ = (R − mean) / (deviation of all centered rewards + 0.0001)",
    softmax_rewards: "δ = softmax of R over the group",
    centered_softmax_rewards: "δ = softmax of R − 1/G",
    naive: "−δ log π",
    unclipped: "−r δ, with the ratio r = π / π_old",
    clipped: "−min(r δ, clip(r, 1 − ε, 1 + ε) δ)",
    dual_clipped: "as clipped, and r counts at most 3 where δ is negative",
    cispo: "−min(r, 1 + ε) δ log π, with no gradient through the ratio",
    sapo: "a smooth gate in place of the clip",
    k1: "log(π / π_ref)",
    k2: "half of log(π / π_ref) squared",
    k3: "π_ref / π − 1 − log(π_ref / π)",
    corrected_k3: "r k3",
  };

  const START = {
    num_responses: 10, num_steps_per_epoch: 10, learning_rate: 0.001, epsilon: 0.2,
    kl_penalty: 0, init_scale: 0.1, reward_fn: "sort_distance_reward",
    deltas_mode: "normalized_rewards", loss_mode: "clipped", prompts: DISTINCT,
    kl_estimator: "k3", compute_ref_model_period: 1000,
  };

  // What each says was true of 24 seeds; tests/browser/test_playground.py asks five.
  // `epochs`: a run stops where what there is to watch is over.
  const STORIES = [
    { key: "healthy", title: "It learns", epochs: 40, knobs: {}, notebook: "00_welcome",
      watch: "The outlined cells fill, the mean reward climbs towards 3 of 3, and the " +
        "arrows vanish: a group of ten right answers has nothing left to compare." },
    { key: "silent", title: "A reward that says nothing",
      notebook: "01_rewards", epochs: 20,
      knobs: { reward_fn: "sort_exact_reward", init_scale: 3, num_responses: 4 },
      watch: "Only the whole right answer is paid, and a policy so sure of its mistakes " +
        "hardly ever gives it. While the rewards of every group tie, there is no arrow, " +
        "the gradient is 0, and nothing moves." },
    { key: "hack", title: "The duplicate hack", epochs: 40, notebook: "01_rewards",
      knobs: { prompts: REPEATS, reward_fn: "sort_inclusion_ordering_reward" },
      watch: "The mean reward climbs to nearly 5 of 5, but P(sorted) stays below 1: 1 2 2 " +
        "is paid in full for the prompt 1 1 2. Look through the prompts for full bars " +
        "without an outline. Then set reward_fn, under Knobs, to sort_multiset_reward." },
    { key: "unclipped", title: "Twenty steps, no clip",
      notebook: "06_training_loop", epochs: 5,
      knobs: { loss_mode: "unclipped", num_steps_per_epoch: 20, learning_rate: 0.01 },
      watch: "In the first epoch the ratios fly out on both sides, and the entropy all but " +
        "vanishes: π is certain of what one group showed. Then set loss_mode, under " +
        "Knobs, to clipped and press Reset: there is a grey band, and the entropy lasts longer." },
    { key: "zero", title: "The loss is zero", epochs: 60, notebook: "07_zero_loss",
      knobs: { num_steps_per_epoch: 1, learning_rate: 0.003 },
      watch: "With one step on each group the loss is 0 in every step. Still the policy " +
        "moves, because the gradient is not 0 until there is nothing left to learn." },
    { key: "collapse", title: "Collapse", epochs: 30, notebook: "03_deltas",
      knobs: { deltas_mode: "rewards", learning_rate: 0.003, num_responses: 6 },
      watch: "Without a baseline no arrow points down, so every answer that earned " +
        "anything becomes likelier. The entropy falls to 0, and P(sorted) stops short " +
        "of 1. Then set deltas_mode, under Knobs, to normalized_rewards and press Reset." },
  ];

  return { PROMPTS, KNOBS, NOW, FORMULAS, START, STORIES };
})();

if (typeof module !== "undefined") module.exports = PLAYGROUND;
