"""The playground computes what the package computes, and its stories are true.

Everybody can use it: mouse, keyboard, screen reader, phone, a file on a disk.
"""

import copy
import re

import pytest
import torch
from chromium import PHONE, SITE, Visit
from test_site import audit

from grpo_course import (
    DELTA_MODES,
    LOSS_MODES,
    SortModel,
    compute_deltas,
    compute_reward,
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

RATE, PERIOD, REWARD = 0.02, 2, "sort_inclusion_ordering_reward"
REWARDS = {reward.__name__: reward for reward in BATCH_REWARDS}
OWN_PAGE = "_static/playground/index.html"


@pytest.fixture(scope="module")
def numbers(site, browser):
    """A page whose mathematics is called; no test clicks in it."""
    opened = Visit(browser)
    opened.page.goto(f"{site}/{OWN_PAGE}")
    yield opened.page
    opened.context.close()


def flat(model):
    return {n: w.detach().flatten().tolist() for n, w in model.named_parameters()}


def agree(found, truth):
    torch.testing.assert_close(
        torch.as_tensor(found, dtype=torch.float64).flatten(),
        torch.as_tensor(truth, dtype=torch.float64).flatten(),
        atol=1e-5,
        rtol=1e-5,
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


class Fed(SortPolicy):
    """It answers with responses that it was given, and keeps the reference."""

    def sample(self, prompts, num_responses):
        epoch, responses = next(self.generator)
        if epoch % PERIOD == 0:
            self.ref = copy.deepcopy(self.model)
        return Rollout(prompts, responses)


# Each mode once, and each estimator with a KL at least once.
MODES = list(zip([*DELTA_MODES], [*LOSS_MODES] * 2, [*KL_ESTIMATORS] * 3, strict=False))
RUNS = [(*modes, 0.0 if k == 5 else 0.3) for k, modes in enumerate(MODES)]
TRAIN = """([config, weights, rollouts]) => {
  const given = rollouts.flat();
  const arrays = Object.fromEntries(
    Object.entries(weights).map(([name, list]) => [name, Float64Array.from(list)]));
  const trainer = new GRPO.Trainer(
    config, { weights: arrays, sample: () => given.shift() });
  const records = GRPO.range(20).map(() => trainer.improve());
  return [Object.fromEntries(
    Object.entries(trainer.weights).map(([name, w]) => [name, [...w]])), records,
    config.prompts.map(p => trainer.probs(p)), trainer.observe()];
}"""


@pytest.mark.parametrize("deltas_mode, loss_mode, kl_estimator, kl_penalty", RUNS)
def test_twenty_steps(numbers, deltas_mode, loss_mode, kl_estimator, kl_penalty):
    """Four rollouts, five steps of Adam on each, a new reference at the third.

    The weights at the end, what was noted on the way, and what is exact.
    """
    torch.manual_seed(1)
    model = SortModel(5, 10, 3, 3, init_scale=0.5).double()
    rollouts = torch.randint(0, 5, (4, 3, 6, 3))
    config = {
        "num_responses": 6,
        "num_steps_per_epoch": 5,
        "compute_ref_model_period": PERIOD,
        "epsilon": 0.2,
        "deltas_mode": deltas_mode,
        "loss_mode": loss_mode,
        "kl_estimator": kl_estimator,
        "kl_penalty": kl_penalty,
    }
    start, prompts = flat(model), SORT_PROMPTS.tolist()
    more = {"prompts": prompts, "learning_rate": RATE, "reward_fn": REWARD}
    given = [config | more, start, rollouts.tolist()]
    weights, records, probs, seen = numbers.evaluate(TRAIN, given)
    policy = Fed(model, enumerate(rollouts))
    history = train(
        policy,
        SORT_PROMPTS,
        lambda r: compute_reward(r.prompts, r.responses, REWARDS[REWARD]).double(),
        torch.optim.Adam(model.parameters(), lr=RATE),
        TrainConfig(num_epochs=4, **config),
    )
    for name, truth in flat(model).items():
        agree(weights[name], truth)
        assert (torch.tensor(truth) - torch.tensor(start[name])).abs().max() > 0.02
    names = ["loss", "policy_loss", "gradient_norm", "mean_reward", "ratio_min"]
    for name in [*names, "ratio_max", *["kl"] * (kl_penalty > 0)]:
        agree([record[name] for record in records], history.curve(name))
    cut = history.curve("clip_fraction_low") + history.curve("clip_fraction_high")
    agree([record["clip_fraction"] for record in records], cut)
    with torch.no_grad():
        rows, ref = (m(SORT_PROMPTS).log_softmax(-1) for m in (model, policy.ref))
        agree(probs, rows.exp())
        right = exact_sorted_probability(model, SORT_PROMPTS).mean()
        agree(seen["sorted_probability"], right)
        agree(seen["entropy"], exact_entropy(model, SORT_PROMPTS).mean())
        agree(seen["exact_kl"], exact_kl(rows, ref).mean())


def test_its_random_numbers_are_spread_as_torch_s(numbers):
    """The weights of a start, and how often a sample comes."""
    found = numbers.evaluate(
        "Object.values(GRPO.makeWeights(40, 12, 0.3, new GRPO.Random(0))).map(w => {"
        "  const middle = GRPO.mean([...w]);"
        "  return Math.sqrt(GRPO.mean([...w].map(x => (x - middle) ** 2))); })"
    )
    torch.manual_seed(0)
    model = SortModel(40, 10, 12, 12, init_scale=0.3)
    truth = [weight.std().item() for weight in model.parameters()]
    assert found == pytest.approx(truth, rel=0.15)
    counts = numbers.evaluate(
        "() => { const random = new GRPO.Random(3), counts = [0, 0, 0];"
        "  for (let k = 0; k < 20000; k++) counts[random.choose([0.1, 0.6, 0.3])]++;"
        "  return counts; }"
    )
    assert counts == pytest.approx([2000, 12000, 6000], abs=300)  # 4 standard errors


RUN = """([key, changes, epochs, seeds]) => {
  const { START, PROMPTS, STORIES } = PLAYGROUND;
  const { knobs } = STORIES.find((story) => story.key === key);
  return seeds.map((seed) => {
    const config = { ...START, ...knobs, ...changes, seed };
    config.prompts = PROMPTS[config.prompts];
    const trainer = new GRPO.Trainer(config);
    const start = { ...trainer.observe() }, losses = [], norms = [];
    let end, lowest = Infinity;
    for (let k = 0; k < epochs * config.num_steps_per_epoch; k++) {
      end = trainer.improve();
      losses.push(Math.abs(end.loss));
      norms.push(end.gradient_norm);
      lowest = Math.min(lowest, ...trainer.batch.deltas.flat());
    }
    const ratios = trainer.tokens().map((token) => token.ratio);
    const now = trainer.observe();
    return {
      reward: end.mean_reward, entropy: now.entropy, spread: start.entropy,
      start: start.sorted_probability, right: now.sorted_probability, lowest,
      least_ratio: Math.min(...ratios), most_ratio: Math.max(...ratios),
      loss: Math.max(...losses), first_norm: norms[0], norm: Math.max(...norms),
    };
  });
}"""
# A story, or one with a knob changed; its epochs; what holds of five seeds.
STORIES = [
    ("healthy", {}, 30, "reward.min() > 2.6, start.max() < 0.1, right.min() > 0.6"),
    ("silent", {}, 5, "norm.max() == 0, reward.max() == 0, (right == start).all()"),
    ("silent", {}, 20, "(norm == 0).sum() >= 4"),  # hardly ever is not never
    ("hack", {}, 40, "reward.min() > 4.5, right.max() < 0.5"),
    ("hack", {"reward_fn": "sort_multiset_reward"}, 40, "right.min() > 0.6"),
    ("collapse", {}, 30, "lowest.min() == 0, entropy.max() < 0.1, right.mean() < 0.4"),
    ("collapse", {"deltas_mode": "normalized_rewards"}, 30, "right.mean() > 0.9"),
    ("unclipped", {}, 1, "least_ratio.max() < 0.25, most_ratio.min() > 4"),
    ("unclipped", {}, 1, "entropy.max() < 0.4, spread.min() > 1.3"),
    ("unclipped", {"loss_mode": "clipped"}, 1, "entropy.min() > 0.6"),
    ("zero", {}, 60, "loss.max() < 1e-12, first_norm.min() > 0.5, reward.min() > 1.6"),
]


@pytest.mark.parametrize("key, changes, epochs, claims", STORIES)
def test_stories_are_true(numbers, key, changes, epochs, claims):
    runs = numbers.evaluate(RUN, [key, changes, epochs, [*range(5)]])
    found = {name: torch.tensor([run[name] for run in runs]) for name in runs[0]}
    assert all(eval(f"[{claims}]", {}, found)), found


# The page


@pytest.fixture(scope="module")
def opened(site, browser):
    visit = Visit(browser)
    visit.page.goto(f"{site}/index.html")
    visit.page.locator(".pg-drawer > summary").click()
    yield visit
    visit.context.close()


@pytest.fixture
def page(opened):
    """The landing page with a story just begun; at the end: no complaint."""
    opened.page.set_viewport_size({"width": 1280, "height": 800})
    opened.page.emulate_media(reduced_motion="no-preference")
    button(opened.page, "It learns").click()
    yield opened.page
    assert opened.missing + opened.errors == []


def button(page, name):
    return page.get_by_role("button", name=name, exact=True)


def said(page):
    """The live region, which a screen reader reads out."""
    return page.locator("#playground [role=status]").inner_text()


def test_a_story_a_step_and_an_epoch(page):
    for story in page.locator("[data-story]").all():
        story.click()
        link = page.locator(".pg-watch a").get_attribute("href")
        assert (SITE / link).is_file()
    button(page, "The loss is zero").click()
    assert "the loss is 0 in every step" in page.locator(".pg-watch").inner_text()
    policy = page.locator(".pg-heat").inner_text()
    button(page, "One inner step").click()
    assert page.locator(".pg-heat").inner_text() != policy
    went = r"loss was 0\.000\. The right answer to 1 0 2 went from (\S+) to (\S+)\."
    moved = re.search(went, said(page))
    assert moved and moved[1] != moved[2]
    button(page, "It learns").click()
    button(page, "One epoch").click()
    grey = page.locator(".pg-ratios .pg-cut").count()
    words = page.locator(".pg-ratios svg").get_attribute("aria-label")
    assert grey > 0 and f"the clip takes {grey} of 30 numbers" in words


def test_a_run_ends_where_its_story_ends(page):
    """The mean hides a prompt that is never sorted: it is shown."""
    page.emulate_media(reduced_motion="reduce")  # whole epochs, and nothing slides
    cell = "getComputedStyle(document.querySelector('.pg-heat td')).transitionDuration"
    assert page.evaluate(cell) == "0s"
    button(page, "Twenty steps, no clip").click()
    button(page, "Run").click()
    page.get_by_text(re.compile("^5 epochs are done")).wait_for()
    assert re.search(r"Shown: (3 2 4|1 2 3), right with 0\.00\.$", said(page))
    assert page.locator('[name="pg-prompt"]:checked').get_attribute("value") != "0"


def test_knobs_by_keyboard(page):
    """G samples anew, the deltas of the same group change, the band gets wider."""

    def press(knob, key):
        page.locator(f"#pg-{knob}").press(key)

    press("num_responses", "ArrowRight")
    assert said(page) == "num_responses is now 12. A new group was sampled."
    answers = page.locator(".pg-answer").all_inner_texts()
    down = page.locator(".pg-columns .pg-down")
    assert len(answers) == 12 and down.count() > 0
    press("deltas_mode", "Home")
    assert "deltas_mode is now rewards. The group was judged anew." in said(page)
    assert down.count() == 0
    assert page.locator(".pg-answer").all_inner_texts() == answers
    width = "document.querySelector('.pg-band').getBBox().width"
    before = page.evaluate(width)
    press("epsilon", "ArrowRight")
    assert page.evaluate(width) > before * 1.3
    press("learning_rate", "End")
    press("kl_penalty", "End")
    for _ in range(4):
        button(page, "One epoch").click()
    assert "This step was not taken" in said(page)  # its loss is not finite


def test_another_prompt_on_a_phone(page):
    page.set_viewport_size(PHONE)
    page.get_by_label("3 2 4 → 2 3 4").check()
    caption = page.locator(".pg-heat caption").inner_text()
    assert caption.endswith("prompt 3 2 4")
    right = page.locator(".pg-heat td.pg-right")
    columns = right.evaluate_all("cells => cells.map(cell => cell.cellIndex - 1)")
    assert columns == [2, 3, 4]
    page.locator("#pg-num_responses").press("End")
    button(page, "One epoch").click()
    out = "e => e.filter(e => e.getBoundingClientRect().right > innerWidth + 1).length"
    assert page.locator("#playground *").evaluate_all(out) == 0


def test_who_cannot_see_is_told(site, visit):
    """axe in both themes after some steps; every drawing has words or is hidden."""
    page = visit().page
    page.goto(f"{site}/index.html")
    button(page, "One epoch").click()
    assert audit(page, "light") + audit(page, "dark") == []
    silent = page.locator("#playground svg").evaluate_all(
        "all => all.filter(svg => !svg.closest('[aria-hidden=true]')"
        "  && !(svg.getAttribute('aria-label') || '').match(/\\d|no step/))"
        ".map(svg => svg.outerHTML.slice(0, 90))"
    )
    assert silent == []
    first = page.locator(".pg-columns li").first.inner_text()
    assert re.match(r"Response \d \d \d: reward \d, delta [+−]\d\.\d\d", first)


@pytest.mark.parametrize("address", ["index.html", OWN_PAGE])
def test_from_disk(address, visit):
    """Without a server, and the page of its own without the website."""
    opened = visit(*PHONE.values())
    page = opened.page
    page.goto((SITE / address).as_uri())
    button(page, "One inner step").click()
    assert "One step on the group of epoch 1" in said(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    assert [each for each in opened.errors if "CORS" not in each] == []
