/* GRPO on the sort task: the mathematics of the package `grpo_course`, without a page.

   Names, choices and numbers are the package's; tests/browser/test_playground.py feeds
   both the same weights and samples and compares them. A classic script and no module,
   because modules do not load from a file on disk. Everything hangs on `GRPO`. */
"use strict";

const GRPO = (() => {
  const DIM = 10; // width of the embedding, as in make_policy
  const SPREAD_EPSILON = 1e-4;
  const DUAL_CLIP = 3;
  const SAPO_TEMPERATURES = [1.0, 1.05];
  const ADAM = { beta1: 0.9, beta2: 0.999, eps: 1e-8 }; // torch's defaults

  // Small helpers on lists

  const sum = (xs) => xs.reduce((total, x) => total + x, 0);
  const mean = (xs) => sum(xs) / xs.length;
  const range = (n) => [...Array(n).keys()];
  const ascending = (xs) => [...xs].sort((a, b) => a - b);
  const pairsInOrder = (xs) => xs.slice(1).filter((x, k) => x >= xs[k]).length;
  const copy = (weights) =>
    Object.fromEntries(Object.entries(weights).map(([name, w]) => [name, w.slice()]));

  function logSoftmax(xs) {
    const top = Math.max(...xs);
    const total = Math.log(sum(xs.map((x) => Math.exp(x - top))));
    return xs.map((x) => x - top - total);
  }

  const softmax = (xs) => logSoftmax(xs).map(Math.exp);

  /** Random numbers (sfc32): a seed has several streams. They are not torch's. */
  class Random {
    constructor(seed, stream = 0) {
      this.state = [seed | 0, stream | 0, 0x9e3779b9 | 0, 1];
      for (let k = 0; k < 15; k++) this.uniform(); // until the seed is all over
    }

    uniform() {
      const [a, b, c, count] = this.state;
      const drawn = (a + b + count) | 0;
      const turned = ((c << 21) | (c >>> 11)) + drawn;
      this.state = [b ^ (b >>> 9), (c + (c << 3)) | 0, turned | 0, (count + 1) | 0];
      return (drawn >>> 0) / 4294967296;
    }

    normal() {
      const radius = Math.sqrt(-2 * Math.log(1 - this.uniform()));
      return radius * Math.cos(2 * Math.PI * this.uniform());
    }

    /** The index of one outcome, drawn by its probability. */
    choose(probs) {
      let left = this.uniform();
      for (let k = 0; k < probs.length; k++) if ((left -= probs[k]) < 0) return k;
      return probs.length - 1;
    }
  }

  // Rewards: sort.py

  const REWARDS = {
    sort_distance_reward: (prompt, response) =>
      ascending(prompt).filter((x, k) => x === response[k]).length,
    sort_inclusion_ordering_reward: (prompt, response) =>
      prompt.filter((x) => response.includes(x)).length + pairsInOrder(response),
    sort_multiset_reward(prompt, response) {
      const left = [...response];
      const found = prompt.filter((x) => {
        const place = left.indexOf(x);
        if (place >= 0) left.splice(place, 1);
        return place >= 0;
      });
      return found.length + pairsInOrder(response);
    },
    sort_exact_reward: (prompt, response) =>
      Number(ascending(prompt).every((x, k) => x === response[k])),
  };

  // Deltas: algorithm/deltas.py. A mode takes one group and the whole batch.

  function center(group) {
    const shifted = group.map((r) => r - group[0]); // ties give exactly zero
    const middle = mean(shifted);
    return shifted.map((r) => r - middle);
  }

  function spread(values) {
    const middle = mean(values);
    return Math.sqrt(sum(values.map((r) => (r - middle) ** 2)) / (values.length - 1));
  }

  const best = (group, values) =>
    values.map((x, k) => (group[k] === Math.max(...group) ? x : 0));
  const divide = (xs, by) => xs.map((x) => x / (by + SPREAD_EPSILON));

  const DELTA_MODES = {
    rewards: (group) => group,
    centered_rewards: center,
    normalized_rewards: (group) => divide(center(group), spread(center(group))),
    max_rewards: (group) => best(group, group),
    centered_max_rewards: (group) => best(group, center(group)),
    leave_one_out: (group) =>
      center(group).map((x) => (x * group.length) / (group.length - 1)),
    batch_normalized_rewards: (group, batch) =>
      divide(center(group), spread(batch.flat())),
    whitened_rewards: (group, batch) =>
      divide(center(group), spread(batch.flatMap(center))),
    softmax_rewards: softmax,
    centered_softmax_rewards: (group) => center(softmax(group)),
  };

  const computeDeltas = (rewards, mode) =>
    rewards.map((group) => DELTA_MODES[mode](group, rewards));

  // Losses: algorithm/losses.py. Each gives, for one token, the loss and its derivative
  // by the token's log-probability; `r` is the ratio, `e` the clip range.

  function dualClipped(r, delta, e, top) {
    const open = Math.min(r, top) * delta;
    const shut = Math.min(Math.max(r, 1 - e), 1 + e) * delta;
    const pulls = open < shut ? r <= top : r >= 1 - e && r <= 1 + e;
    return [-Math.min(open, shut), pulls ? -r * delta : 0];
  }

  const LOSS_MODES = {
    naive: (r, delta, logProb) => [-delta * logProb, -delta],
    unclipped: (r, delta) => [-r * delta, -r * delta],
    clipped: (r, delta, _, e) => dualClipped(r, delta, e, Infinity),
    dual_clipped: (r, delta, _, e) => dualClipped(r, delta, e, DUAL_CLIP),
    cispo(r, delta, logProb, e) {
      const weight = Math.min(r, 1 + e);
      return [-weight * delta * logProb, -weight * delta];
    },
    sapo(r, delta) {
      const tau = SAPO_TEMPERATURES[delta > 0 ? 0 : 1];
      const gate = 1 / (1 + Math.exp(-tau * (r - 1)));
      return [(-gate * 4 * delta) / tau, -4 * gate * (1 - gate) * r * delta];
    },
  };

  /** Whether the clip has taken a token's gradient away. */
  function isCut(mode, r, delta, e) {
    if (mode !== "clipped" && mode !== "dual_clipped") return false;
    const past = mode === "dual_clipped" && r > DUAL_CLIP && delta < 0;
    return past || (r < 1 - e && delta < 0) || (r > 1 + e && delta > 0);
  }

  // KL: algorithm/kl.py. Value and derivative, as above.

  function k3(logProb, ref) {
    const gap = ref - logProb;
    return [Math.expm1(gap) - gap, -Math.expm1(gap)];
  }

  const KL_ESTIMATORS = {
    k1: (logProb, ref) => [logProb - ref, 1],
    k2: (logProb, ref) => [(logProb - ref) ** 2 / 2, logProb - ref],
    k3,
    corrected_k3(logProb, ref, old) {
      const ratio = Math.exp(logProb - old);
      const [value, slope] = k3(logProb, ref);
      return [ratio * value, ratio * (value + slope)];
    },
  };

  // The policy: sort.py, one encode and one decode matrix for each position.

  function makeWeights(vocab, length, initScale, random) {
    const draw = (size, scale) =>
      Float64Array.from({ length: size }, () => random.normal() * scale);
    const scale = 1 / Math.sqrt(DIM);
    return {
      embedding: draw(vocab * DIM, 1),
      encode_weights: draw(length * DIM * DIM, scale),
      decode_weights: draw(length * DIM * DIM, scale * initScale),
    };
  }

  /** The vectors that a prompt becomes, and log-probabilities [pos][vocab]. */
  function forward(weights, prompt) {
    const { embedding, encode_weights: encode, decode_weights: decode } = weights;
    const read = new Float64Array(DIM);
    prompt.forEach((token, pos) => {
      for (let i = 0; i < DIM; i++)
        for (let j = 0; j < DIM; j++)
          read[j] += embedding[token * DIM + i] * encode[(pos * DIM + i) * DIM + j];
    });
    const decoded = prompt.map((_, pos) => {
      const out = new Float64Array(DIM);
      for (let i = 0; i < DIM; i++)
        for (let j = 0; j < DIM; j++)
          out[j] += read[i] * decode[(pos * DIM + i) * DIM + j];
      return out;
    });
    const numbers = range(embedding.length / DIM);
    const logit = (out, v) => {
      let total = 0; // input and output share the embedding
      for (let j = 0; j < DIM; j++) total += out[j] * embedding[v * DIM + j];
      return total;
    };
    const logProbs = decoded.map((out) => logSoftmax(numbers.map((v) => logit(out, v))));
    return { read, decoded, logProbs };
  }

  /** Add the gradient of one prompt, from that of its logits [pos][vocab]. */
  function backward(weights, prompt, { read, decoded }, ofLogits, into) {
    const { embedding, encode_weights: encode, decode_weights: decode } = weights;
    const ofRead = new Float64Array(DIM);
    ofLogits.forEach((row, pos) => {
      const ofDecoded = new Float64Array(DIM);
      row.forEach((slope, v) => {
        for (let j = 0; j < DIM; j++) {
          into.embedding[v * DIM + j] += slope * decoded[pos][j];
          ofDecoded[j] += slope * embedding[v * DIM + j];
        }
      });
      for (let i = 0; i < DIM; i++)
        for (let j = 0; j < DIM; j++) {
          const at = (pos * DIM + i) * DIM + j;
          into.decode_weights[at] += read[i] * ofDecoded[j];
          ofRead[i] += decode[at] * ofDecoded[j];
        }
    });
    prompt.forEach((token, pos) => {
      for (let i = 0; i < DIM; i++)
        for (let j = 0; j < DIM; j++) {
          const at = (pos * DIM + i) * DIM + j;
          into.encode_weights[at] += embedding[token * DIM + i] * ofRead[j];
          into.embedding[token * DIM + i] += encode[at] * ofRead[j];
        }
    });
  }

  // What is known exactly, because every number can be enumerated: sort.py

  // Each takes log-probabilities [pos][vocab].

  const sortedProbability = (rows, prompt) =>
    Math.exp(sum(ascending(prompt).map((right, pos) => rows[pos][right])));
  const entropy = (rows) =>
    mean(rows.map((row) => -sum(row.map((x) => Math.exp(x) * x))));
  const exactKL = (rows, ref) =>
    mean(
      rows.map((row, k) => sum(row.map((x, v) => Math.exp(x) * (x - ref[k][v])))),
    );

  /** torch.optim.Adam. */
  class Adam {
    constructor(weights) {
      const zeros = () =>
        Object.fromEntries(
          Object.entries(weights).map(([name, w]) => [name, new Float64Array(w.length)]),
        );
      [this.first, this.second, this.steps] = [zeros(), zeros(), 0];
    }

    step(weights, gradient, rate) {
      const { beta1, beta2, eps } = ADAM;
      this.steps += 1;
      const bias1 = 1 - beta1 ** this.steps;
      const bias2 = Math.sqrt(1 - beta2 ** this.steps);
      for (const name of Object.keys(weights)) {
        const [m, v] = [this.first[name], this.second[name]];
        gradient[name].forEach((g, k) => {
          m[k] = beta1 * m[k] + (1 - beta1) * g;
          v[k] = beta2 * v[k] + (1 - beta2) * g * g;
          weights[name][k] -= ((rate / bias1) * m[k]) / (Math.sqrt(v[k]) / bias2 + eps);
        });
      }
    }
  }

  /** The nested loop of algorithm/loop.py, one inner step at a time.

      `config` has the names of TrainConfig and run_policy_gradient, and may change
      between steps. `sample(prompt, count)` gives responses other than its own. */
  class Trainer {
    constructor(config, { weights, sample } = {}) {
      this.config = config;
      const { prompts, seed = 0, init_scale = 1 } = config;
      const vocab = Math.max(...prompts.flat()) + 1;
      const length = prompts[0].length;
      this.weights =
        weights || makeWeights(vocab, length, init_scale, new Random(seed, 0));
      this.random = new Random(seed, 1);
      this.sample = sample || ((prompt, count) => this.respond(prompt, count));
      this.optimizer = new Adam(this.weights);
      this.ref = copy(this.weights);
      [this.epoch, this.step, this.batch] = [0, 0, null];
    }

    respond(prompt, count) {
      const probs = this.probs(prompt);
      return range(count).map(() => probs.map((row) => this.random.choose(row)));
    }

    /** Log-probabilities of the sampled numbers, [batch][trial][pos]. */
    logProbs(weights = this.weights) {
      return this.config.prompts.map((prompt, b) => {
        const rows = forward(weights, prompt).logProbs;
        const score = (response) => response.map((token, pos) => rows[pos][token]);
        return this.batch.responses[b].map(score);
      });
    }

    /** At times pi_ref becomes a copy of pi. The picture shows it without a KL too. */
    renewReference() {
      const isTime = this.epoch % this.config.compute_ref_model_period === 0;
      if (isTime) this.ref = copy(this.weights);
    }

    /** Outer stage: new responses; pi_old is pi as it is now. */
    collect() {
      const { prompts, num_responses } = this.config;
      const responses = prompts.map((prompt) => this.sample(prompt, num_responses));
      this.batch = { responses, oldWeights: copy(this.weights) };
      this.batch.old = this.logProbs();
      this.batch.ref = this.logProbs(this.ref);
      this.judge();
      this.step = 0;
    }

    /** Rewards and deltas of the responses there are. */
    judge() {
      const { prompts, reward_fn, deltas_mode } = this.config;
      this.batch.rewards = prompts.map((prompt, b) =>
        this.batch.responses[b].map((response) => REWARDS[reward_fn](prompt, response)),
      );
      this.batch.deltas = computeDeltas(this.batch.rewards, deltas_mode);
    }

    /** Every sampled number: its place, ratio, delta, and whether the clip cuts it. */
    tokens() {
      const { loss_mode, epsilon } = this.config;
      const { old, ref, deltas } = this.batch;
      return this.logProbs().flatMap((group, b) =>
        group.flatMap((response, trial) =>
          response.map((logProb, pos) => {
            const ratio = Math.exp(logProb - old[b][trial][pos]);
            const delta = deltas[b][trial];
            const cut = isCut(loss_mode, ratio, delta, epsilon);
            const before = { old: old[b][trial][pos], ref: ref[b][trial][pos] };
            return { b, trial, pos, logProb, ratio, delta, cut, ...before };
          }),
        ),
      );
    }

    /** The loss of the batch, its gradient by all weights, and what to record of it. */
    loss() {
      const { prompts, loss_mode, epsilon, kl_estimator, kl_penalty: beta } = this.config;
      const passes = prompts.map((prompt) => forward(this.weights, prompt));
      const zeros = (rows) => rows.map((row) => row.map(() => 0));
      const ofLogits = passes.map((pass) => zeros(pass.logProbs));
      const tokens = this.tokens();
      const share = 1 / tokens.length; // all responses are equally long
      let [policyLoss, kl] = [0, 0];
      for (const { b, trial, pos, logProb, ratio, delta, old, ref } of tokens) {
        const [value, slope] = LOSS_MODES[loss_mode](ratio, delta, logProb, epsilon);
        const [price, priceSlope] = KL_ESTIMATORS[kl_estimator](logProb, ref, old);
        policyLoss += value * share;
        kl += price * share;
        const pull = (beta ? slope + beta * priceSlope : slope) * share;
        const taken = this.batch.responses[b][trial][pos];
        passes[b].logProbs[pos].forEach((x, v) => {
          ofLogits[b][pos][v] += pull * ((v === taken) - Math.exp(x)); // one-hot minus pi
        });
      }
      const gradient = copy(this.weights);
      Object.values(gradient).forEach((g) => g.fill(0));
      prompts.forEach((prompt, b) =>
        backward(this.weights, prompt, passes[b], ofLogits[b], gradient),
      );
      const square = (xs) => xs.reduce((total, x) => total + x * x, 0);
      const loss = beta ? policyLoss + beta * kl : policyLoss;
      const ratios = tokens.map((token) => token.ratio);
      const record = {
        loss,
        policy_loss: policyLoss,
        kl,
        gradient_norm: Math.sqrt(sum(Object.values(gradient).map(square))),
        mean_reward: mean(this.batch.rewards.map(mean)),
        ratio_min: Math.min(...ratios),
        ratio_max: Math.max(...ratios),
        clip_fraction: tokens.filter((token) => token.cut).length * share,
      };
      return { gradient, record };
    }

    /** Whether the next step needs new responses. */
    get isUsedUp() {
      return !this.batch || this.step >= this.config.num_steps_per_epoch;
    }

    /** Inner stage: one optimizer step on the batch; a new batch where it is used up. */
    improve() {
      if (this.isUsedUp) {
        if (this.batch) this.epoch += 1;
        this.renewReference();
        this.collect();
      }
      const { gradient, record } = this.loss();
      if (!Number.isFinite(record.loss) || !Number.isFinite(record.gradient_norm))
        throw new RangeError(
          `The loss is ${record.loss}. This step was not taken. ` +
            "Choose a smaller learning rate and press Reset.",
        );
      this.optimizer.step(this.weights, gradient, this.config.learning_rate);
      this.step += 1;
      return record;
    }

    /** What can be said of the policy without sampling; means over the prompts. */
    observe() {
      const { prompts } = this.config;
      const rows = prompts.map((prompt) => forward(this.weights, prompt).logProbs);
      const ref = prompts.map((prompt) => forward(this.ref, prompt).logProbs);
      return {
        sorted_probability: mean(prompts.map((p, b) => sortedProbability(rows[b], p))),
        entropy: mean(rows.map(entropy)),
        exact_kl: mean(rows.map((each, b) => exactKL(each, ref[b]))),
      };
    }

    /** Probabilities [pos][vocab] of one prompt. */
    probs(prompt, weights = this.weights) {
      return forward(weights, prompt).logProbs.map((row) => row.map(Math.exp));
    }

    /** The probability of the right answer to one prompt. */
    right(prompt) {
      return sortedProbability(forward(this.weights, prompt).logProbs, prompt);
    }
  }

  return {
    ...{ ascending, mean, range },
    ...{ REWARDS, DELTA_MODES, LOSS_MODES, KL_ESTIMATORS },
    ...{ computeDeltas, makeWeights, Random, Trainer },
  };
})();

if (typeof module !== "undefined") module.exports = GRPO;
