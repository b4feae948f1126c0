"""The playground computes what the package computes, and its stories are true."""

import json
from itertools import product

import pytest
import torch
from chromium import Visit

from grpo_course import (
    DELTA_MODES,
    LOSS_MODES,
    SortModel,
    compute_deltas,
    compute_kl_penalty,
    compute_log_probs,
    compute_loss,
    compute_reward,
    loss_report,
)
from grpo_course.formulas import KL_ESTIMATORS, exact_kl
from grpo_course.loop import Rollout, TrainConfig, train
from grpo_course.sort import (
    BATCH_REWARDS,
    SORT_PROMPTS,
    SortPolicy,
    all_responses,
    exact_entropy,
    exact_sorted_probability,
)

BETAS = (0.0, 0.3)
RATE, MU, EPOCHS, PERIOD, GROUP = 0.01, 5, 4, 2, 6
REWARDS = {reward.__name__: reward for reward in BATCH_REWARDS}
PLACES = {"atol": 1e-5, "rtol": 1e-5}
OWN_PAGE = "_static/playground/index.html"


@pytest.fixture(scope="module")
def numbers(site, browser):
    """A page whose mathematics is called; no test clicks in it."""
    opened = Visit(browser, 1280, 800, "light")
    opened.page.goto(f"{site}/{OWN_PAGE}")
    yield opened.page
    opened.context.close()


def make_model(seed=1, vocab=5):
    torch.manual_seed(seed)
    return SortModel(vocab, 10, 3, 3, init_scale=0.5).double()


def flat(tensors):
    return {name: tensor.detach().flatten().tolist() for name, tensor in tensors}


def settings(**changes):
    """As the playground has them; what is not named here does not matter."""
    start = {
        "prompts": SORT_PROMPTS.tolist(),
        "num_responses": GROUP,
        "num_steps_per_epoch": MU,
        "compute_ref_model_period": PERIOD,
        "learning_rate": RATE,
        "epsilon": 0.2,
        "reward_fn": "sort_inclusion_ordering_reward",
        "deltas_mode": "normalized_rewards",
        "loss_mode": "clipped",
        "kl_estimator": "k3",
        "kl_penalty": 0.0,
    }
    return start | changes


def agree(found, truth):
    torch.testing.assert_close(
        torch.as_tensor(found, dtype=torch.float64).flatten(),
        torch.as_tensor(truth, dtype=torch.float64).flatten(),
        **PLACES,
    )


def test_it_offers_what_the_package_offers(numbers):
    offered = numbers.evaluate(
        "[GRPO.DELTA_MODES, GRPO.LOSS_MODES, GRPO.KL_ESTIMATORS, GRPO.REWARDS]"
        ".map(Object.keys)"
    )
    known = [DELTA_MODES, LOSS_MODES, KL_ESTIMATORS, REWARDS]
    assert offered == [list(choices) for choices in known]
    names = numbers.evaluate("PLAYGROUND.KNOBS.map(knob => knob.name)")
    fields = {*TrainConfig.__dataclass_fields__, "learning_rate", "init_scale"}
    assert set(names) <= fields | {"prompts", "reward_fn"}


@pytest.mark.parametrize(
    "vocab, prompts", [(5, SORT_PROMPTS), (4, [[1, 1, 2], [2, 0, 2]])]
)
def test_probabilities_and_what_is_exact(numbers, vocab, prompts):
    prompts = torch.as_tensor(prompts)
    model, ref = make_model(1, vocab), make_model(2, vocab)
    weights = [flat(each.named_parameters()) for each in (model, ref)]
    given = [settings(prompts=prompts.tolist()), *weights]
    probs, seen = numbers.evaluate(
        PLACED + "[prompts.map(p => trainer.probs(p)), trainer.observe()]; }", given
    )
    with torch.no_grad():
        rows, others = (each(prompts).log_softmax(-1) for each in (model, ref))
        agree(probs, rows.exp())
        agree(
            seen["sorted_probability"],
            exact_sorted_probability(model, prompts).mean(),
        )
        agree(seen["entropy"], exact_entropy(model, prompts).mean())
        agree(seen["exact_kl"], exact_kl(rows, others).mean())


def test_rewards_and_deltas(numbers):
    """Of all responses, in groups of five, to prompts with and without repeats."""
    prompts = torch.tensor([[1, 0, 2], [2, 0, 2], [3, 3, 3]])
    responses = all_responses(5, 3).expand(3, 125, 3)
    for name, reward_fn in REWARDS.items():
        rewards = compute_reward(prompts, responses, reward_fn).double()
        found = numbers.evaluate(
            "([name, prompts, all]) => "
            "prompts.map(p => all.map(response => GRPO.REWARDS[name](p, response)))",
            [name, prompts.tolist(), responses[0].tolist()],
        )
        agree(found, rewards)
        groups = rewards.reshape(-1, 5)
        deltas = numbers.evaluate(
            "groups => Object.keys(GRPO.DELTA_MODES)"
            ".map(mode => GRPO.computeDeltas(groups, mode))",
            groups.tolist(),
        )
        agree(deltas, torch.stack([compute_deltas(groups, m) for m in DELTA_MODES]))


def gradients(loss, model):
    parts = torch.autograd.grad(loss, list(model.parameters()), retain_graph=True)
    return torch.cat([part.flatten() for part in parts])


def test_loss_and_gradient_of_every_choice(numbers):
    """All delta modes x losses x estimators x beta, away from pi_old and pi_ref.

    The truth is a sum: the policy's loss plus beta times the KL, and so its gradient.
    """
    model, old, ref = make_model(1), make_model(2), make_model(3)
    with torch.no_grad():  # near enough for ratios on both sides of the clip
        for moved, start in zip(model.parameters(), old.parameters(), strict=True):
            moved.copy_(start + 0.15 * moved)
    responses = torch.randint(0, 5, (3, GROUP, 3))
    reward_fn = REWARDS["sort_inclusion_ordering_reward"]
    rewards = compute_reward(SORT_PROMPTS, responses, reward_fn).double()
    new, before, other = (
        compute_log_probs(SORT_PROMPTS, responses, each) for each in (model, old, ref)
    )
    before, other = before.detach(), other.detach()
    losses, kls, cut = {}, {}, {}
    for deltas_mode, loss_mode in product(DELTA_MODES, LOSS_MODES):
        deltas = compute_deltas(rewards, deltas_mode)
        loss = compute_loss(new, deltas, loss_mode, before)
        losses[deltas_mode, loss_mode] = loss.item(), gradients(loss, model)
        report = loss_report(new, deltas, before, mode=loss_mode)
        shares = report["clip_fraction_low"] + report["clip_fraction_high"]
        cut[deltas_mode, loss_mode] = shares.item()
    for name in KL_ESTIMATORS:
        kl = compute_kl_penalty(new, other, name, old_log_probs=before)
        kls[name] = kl.item(), gradients(kl, model)
    assert 0.1 < cut["normalized_rewards", "clipped"] < 0.9, (
        "the clip must do something"
    )

    cases = list(product(DELTA_MODES, LOSS_MODES, KL_ESTIMATORS, BETAS))
    knobs = ("deltas_mode", "loss_mode", "kl_estimator", "kl_penalty")
    configs = [settings(**dict(zip(knobs, case, strict=True))) for case in cases]
    weights = [flat(each.named_parameters()) for each in (model, old, ref)]
    given = [configs, *weights, responses.tolist()]
    found = json.loads(numbers.evaluate(ONE_LOSS, given))  # quicker than as it is
    records, found_gradients = zip(*found, strict=True)
    for name, truth in (
        ("policy_loss", [losses[case[:2]][0] for case in cases]),
        ("kl", [kls[case[2]][0] for case in cases]),
        ("loss", [losses[c[:2]][0] + c[3] * kls[c[2]][0] for c in cases]),
        ("clip_fraction", [cut[case[:2]] for case in cases]),
    ):
        agree([record[name] for record in records], truth)
    sums = [losses[c[:2]][1] + c[3] * kls[c[2]][1] for c in cases]
    agree(found_gradients, torch.stack(sums))


class Fed(SortPolicy):
    """It answers with responses that it was given, a rollout after the other."""

    def sample(self, prompts, num_responses):
        return Rollout(prompts, next(self.generator))


RUNS = list(zip([*DELTA_MODES], [*LOSS_MODES] * 2, [*KL_ESTIMATORS] * 3, strict=False))


@pytest.mark.parametrize("deltas_mode, loss_mode, kl_estimator", RUNS)
def test_twenty_steps_end_at_the_same_weights(
    numbers, deltas_mode, loss_mode, kl_estimator
):
    """Four rollouts, five steps of Adam on each, a new reference at the third.

    Each of the modes once, with and without a KL in turn.
    """
    modes = {"deltas_mode": deltas_mode, "loss_mode": loss_mode}
    modes |= {"kl_estimator": kl_estimator}
    modes["kl_penalty"] = BETAS[RUNS.index((deltas_mode, loss_mode, kl_estimator)) % 2]
    config = settings(**modes)
    model = make_model()
    start = flat(model.named_parameters())
    rollouts = torch.randint(0, 5, (EPOCHS, 3, GROUP, 3))
    reward_fn = REWARDS[config["reward_fn"]]
    history = train(
        Fed(model, iter(rollouts)),
        SORT_PROMPTS,
        lambda r: compute_reward(r.prompts, r.responses, reward_fn).double(),
        torch.optim.Adam(model.parameters(), lr=RATE),
        TrainConfig(
            num_epochs=EPOCHS,
            num_steps_per_epoch=MU,
            num_responses=GROUP,
            compute_ref_model_period=PERIOD,
            **modes,
        ),
    )
    weights, records = numbers.evaluate(TWENTY, [config, start, rollouts.tolist()])
    for name, truth in flat(model.named_parameters()).items():
        agree(weights[name], truth)
        assert (torch.tensor(truth) - torch.tensor(start[name])).abs().max() > 0.02
    names = ["loss", "policy_loss", "gradient_norm", "mean_reward"]
    names += ["ratio_min", "ratio_max"] + ["kl"] * (config["kl_penalty"] > 0)
    for name in names:
        agree([record[name] for record in records], history.curve(name))


def test_the_start_is_spread_as_in_the_package(numbers):
    """Standard deviations of the weights; the numbers themselves are not torch's."""
    found = numbers.evaluate(
        "Object.values(GRPO.makeWeights(40, 12, 0.3, new GRPO.Random(0))).map(w => {"
        "  const middle = GRPO.mean([...w]);"
        "  return Math.sqrt(GRPO.mean([...w].map(x => (x - middle) ** 2))); })"
    )
    torch.manual_seed(0)
    model = SortModel(40, 10, 12, 12, init_scale=0.3)
    truth = [weight.std().item() for weight in model.parameters()]
    assert found == pytest.approx(truth, rel=0.15)


def test_samples_come_as_often_as_the_policy_says(numbers):
    counts = numbers.evaluate(
        "() => { const random = new GRPO.Random(3), counts = [0, 0, 0];"
        "  for (let k = 0; k < 20000; k++) counts[random.choose([0.1, 0.6, 0.3])]++;"
        "  return counts; }"
    )
    shares = [count / 20000 for count in counts]
    assert shares == pytest.approx([0.1, 0.6, 0.3], abs=0.015)  # four standard errors


PLACED = """([config, weights, refWeights]) => {
  const arrays = (lists) => Object.fromEntries(
    Object.entries(lists).map(([name, list]) => [name, Float64Array.from(list)]));
  const trainer = new GRPO.Trainer(config, { weights: arrays(weights) });
  const { prompts } = config;
  trainer.ref = arrays(refWeights);
  return """

ONE_LOSS = """([configs, weights, oldWeights, refWeights, responses]) => {
  const arrays = (lists) => Object.fromEntries(
    Object.entries(lists).map(([name, list]) => [name, Float64Array.from(list)]));
  return JSON.stringify(configs.map((config) => {
    let next = 0;
    const sample = () => responses[next++];
    const trainer = new GRPO.Trainer(config, { weights: arrays(oldWeights), sample });
    trainer.ref = arrays(refWeights);
    trainer.collect();
    trainer.weights = arrays(weights);
    const { gradient, record } = trainer.loss();
    return [record, Object.values(gradient).flatMap((g) => [...g])];
  }));
}"""

TWENTY = """([config, weights, rollouts]) => {
  const given = rollouts.flat();
  const arrays = Object.fromEntries(
    Object.entries(weights).map(([name, list]) => [name, Float64Array.from(list)]));
  const trainer = new GRPO.Trainer(
    config, { weights: arrays, sample: () => given.shift() });
  const records = GRPO.range(20).map(() => trainer.improve());
  return [Object.fromEntries(
    Object.entries(trainer.weights).map(([name, w]) => [name, [...w]])), records];
}"""


RUN = """([knobs, seed, epochs]) => {
  const { START, PROMPTS } = PLAYGROUND;
  const config = { ...START, ...knobs, seed };
  config.prompts = PROMPTS[config.prompts];
  const trainer = new GRPO.Trainer(config);
  const seen = [{ ...trainer.observe() }];
  let lowest = Infinity;
  for (let k = 0; k < epochs * config.num_steps_per_epoch; k++) {
    seen.push({ ...trainer.improve(), ...trainer.observe() });
    lowest = Math.min(lowest, ...trainer.batch.deltas.flat());
  }
  const ratios = trainer.tokens().map((token) => token.ratio);
  const far = [Math.min(...ratios), Math.max(...ratios)];
  const [start, end] = [seen.shift(), seen[seen.length - 1]];
  const [losses, norms] = ["loss", "gradient_norm"].map((n) => seen.map((r) => r[n]));
  return { start, end, far, lowest, losses, norms };
}"""


def story(numbers, key, epochs, **changes):
    """Five seeds of a story of the page, or of one with a knob changed."""
    find = f"PLAYGROUND.STORIES.find(story => story.key === '{key}').knobs"
    knobs = numbers.evaluate(find) | changes
    return [numbers.evaluate(RUN, [knobs, seed, epochs]) for seed in range(5)]


def ends(runs, name):
    return [run["end"][name] for run in runs]


def test_it_learns(numbers):
    runs = story(numbers, "healthy", 30)
    assert min(ends(runs, "mean_reward")) > 2.6
    assert max(run["start"]["sorted_probability"] for run in runs) < 0.1
    assert min(ends(runs, "sorted_probability")) > 0.6


def test_a_reward_that_says_nothing(numbers):
    """Hardly ever is not never: one of the five seeds finds an answer in the end."""
    for run in story(numbers, "silent", 5):
        assert set(run["norms"]) == {0} and run["end"]["mean_reward"] == 0
        for name in ("entropy", "sorted_probability"):
            assert run["end"][name] == run["start"][name]
    later = story(numbers, "silent", 20)
    assert sum(set(run["norms"]) == {0} for run in later) >= 4


def test_the_duplicate_hack(numbers):
    runs = story(numbers, "hack", 40)
    assert min(ends(runs, "mean_reward")) > 4.5
    assert max(ends(runs, "sorted_probability")) < 0.9
    paid = "GRPO.REWARDS.sort_inclusion_ordering_reward([1, 1, 2], [1, 2, 2])"
    assert numbers.evaluate(paid) == 5
    cured = story(numbers, "hack", 40, reward_fn="sort_multiset_reward")
    truth = [torch.tensor(ends(each, "sorted_probability")) for each in (cured, runs)]
    assert truth[0].mean() > truth[1].mean() + 0.2


def test_no_clip(numbers):
    for run in story(numbers, "unclipped", 1):
        assert run["far"][0] < 0.25 and run["far"][1] > 4
        assert run["end"]["entropy"] < 0.4 < 1.3 < run["start"]["entropy"]
    for run in story(numbers, "unclipped", 1, loss_mode="clipped"):
        assert run["end"]["entropy"] > 0.6


def test_the_loss_is_zero(numbers):
    for run in story(numbers, "zero", 60):
        assert max(map(abs, run["losses"])) < 1e-12
        assert run["norms"][0] > 0.5 and run["end"]["mean_reward"] > 1.6


def test_collapse(numbers):
    runs = story(numbers, "collapse", 30)
    assert min(run["lowest"] for run in runs) == 0, "an arrow points down"
    assert max(ends(runs, "entropy")) < 0.1
    assert max(ends(runs, "sorted_probability")) < 0.7
    cured = story(numbers, "collapse", 30, deltas_mode="normalized_rewards")
    truth = [torch.tensor(ends(each, "sorted_probability")) for each in (cured, runs)]
    assert (truth[0] > truth[1]).all()
