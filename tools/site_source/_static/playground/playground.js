/* The page of the playground: buttons, knobs, and what a screen reader is told. */
"use strict";

(() => {
  const { PROMPTS, KNOBS, NOW, FORMULAS, START, STORIES } = PLAYGROUND;
  const { fixed, spoken } = PICTURES;
  const WATCHED = 100; // inner steps that a run shows one by one; then whole epochs
  const PACE = { quick: 120, slow: 400, calm: 600 }; // milliseconds for a picture
  const calm = window.matchMedia("(prefers-reduced-motion: reduce)");

  const root = document.getElementById("playground");
  const find = (name) => root.querySelector(`[data-pg="${name}"]`);
  const draw = (name, html) => (find(name).innerHTML = html);

  let settings = { ...START, seed: 0 };
  let trainer, history, shown, timer, goal;
  let epochs = STORIES[0].epochs; // the length of a run

  // The page

  const knob = ({ name, symbol, words, values }) => {
    const isNumber = typeof values[0] === "number";
    const label = `<label for="pg-${name}">${symbol ? `<b>${symbol}</b> ` : ""}${words}
      <code>${name}</code></label>`;
    const options = values.map((v) => `<option>${v}</option>`).join("");
    const field = isNumber
      ? `<input type="range" id="pg-${name}" min="0" max="${values.length - 1}">
         <output for="pg-${name}" data-pg="value-${name}"></output>`
      : `<select id="pg-${name}">${options}</select>`;
    const hint = FORMULAS[values[0]] ? `<small data-pg="hint-${name}"></small>` : "";
    return `<div class="pg-knob">${label}<div>${field}</div>${hint}</div>`;
  };

  const story = ({ key, title }) =>
    `<button type="button" data-story="${key}" aria-pressed="false">${title}</button>`;

  root.innerHTML = `
    <p class="pg-task">Put three numbers in order, 1 0 2 → 0 1 2: a small model, the
      <b>policy π</b>, answers several times, and each answer gets a <b>reward</b>. GRPO
      compares the answers of such a <b>group</b>: an arrow up pushes an answer's probability up, an
      arrow down pushes it down.</p>
    <div class="pg-stories" role="group" aria-label="Stories">
      ${STORIES.map(story).join("")}</div>
    <p class="pg-watch"><b>Watch:</b> <span data-pg="watch"></span>
      <span data-pg="changed" hidden>(You have changed its settings since.)</span></p>
    <div class="pg-bench">
      <div class="pg-buttons" role="group" aria-label="Controls">
        <button type="button" data-do="step">One inner step</button>
        <button type="button" data-do="epoch">One epoch</button>
        <button type="button" data-do="run" class="pg-first">Run</button>
        <button type="button" data-do="reset">Reset</button>
        <span data-pg="place"></span>
      </div>
      <p class="pg-said" role="status" data-pg="said"></p>
      <fieldset class="pg-prompts"><legend>Show the prompt</legend>
        <span data-pg="prompts"></span></fieldset>
      <section class="pg-policy"><h3>The policy π</h3>
        <p>The bluer a cell, the likelier the number in that position. Outlined: the
          right number. Small: what it was when the group was sampled, under
          π<sub>old</sub>.</p>
        <div data-pg="heatmap"></div></section>
      <section class="pg-group"><h3>A group of responses</h3>
        <p>Bar: the reward R. Dashed: the mean of the group. Arrow: δ, better or worse than
          the group. Outlined: right.</p>
        <div data-pg="group"></div></section>
      <section class="pg-ratios"><h3>Ratios against the clip</h3>
        <p>A triangle for each sampled number: r = π / π<sub>old</sub> across, δ upwards.
          Band: the clip range. Hollow: the clip pushes it no further. Filled grey: δ is 0. <span data-pg="cut"></span></p>
        <div data-pg="ratios"></div></section>
      <section class="pg-curves"><h3>What happened so far, by inner step</h3>
        <div data-pg="curves"></div></section>
    </div>
    <details class="pg-drawer">
    <summary><h3>Knobs: group size, clip, reward and more</h3></summary>
    <p><code>P(sorted)</code>, entropy and KL are exact and not sampled.</p>
    <p class="pg-more">
      <label>seed <input type="number" id="pg-seed" min="0" max="9999" value="0"></label>
      <label><input type="checkbox" id="pg-slow"> run slowly, step by step</label></p>
    <div class="pg-knobs">${KNOBS.map(knob).join("")}</div></details>`;

  // Drawing

  const top = () => {
    const most = { sort_exact_reward: 1, sort_distance_reward: 3 };
    return most[settings.reward_fn] || 5;
  };

  function drawPolicyAndGroup() {
    const { prompts } = trainer.config;
    const { responses, rewards, deltas, oldWeights } = trainer.batch;
    const prompt = prompts[shown];
    const tokens = trainer.tokens().filter((token) => token.b === shown);
    const [now, old] = [trainer.probs(prompt), trainer.probs(prompt, oldWeights)];
    draw("heatmap", PICTURES.heatmap(prompt, now, old));
    const parts = [responses, rewards, deltas].map((each) => each[shown]);
    draw("group", PICTURES.group(prompt, ...parts, top()));
    draw("ratios", PICTURES.ratios(tokens, settings));
    draw("cut", `${PICTURES.ratioWords(tokens)}.`);
  }

  function drawCurves() {
    const of = (name) => history.map((record) => record[name]);
    const reach = (name, least) => Math.max(least, ...of(name).map(Math.abs));
    const loss = reach("loss", 0.1);
    const vocab = Math.max(...trainer.config.prompts.flat()) + 1;
    const kl = { title: "KL to π<sub>ref</sub> (nats)", said: "KL to the reference" };
    const curves = [
      [{ title: "mean reward" }, "mean_reward", 0, top()],
      [{ title: "P(sorted)" }, "sorted_probability", 0, 1],
      [{ title: "entropy (nats)" }, "entropy", 0, Math.log(vocab)],
      [kl, "exact_kl", 0, reach("exact_kl", 0.5)],
      [{ title: "loss", digits: 3 }, "loss", -loss, loss],
      [{ title: "gradient, length" }, "gradient_norm", 0, reach("gradient_norm", 1)],
    ];
    const html = ([look, name, low, high]) => PICTURES.curve(look, of(name), low, high);
    draw("curves", curves.map(html).join(""));
  }

  function drawAll() {
    const { epoch, step } = trainer;
    drawPolicyAndGroup();
    drawCurves();
    // Beside the buttons, since a phone shows the curves further down.
    const last = history[history.length - 1];
    const earned = last ? `, reward ${fixed(last.mean_reward, 1)} of ${top()}` : "";
    const done = `step ${step} of ${settings.num_steps_per_epoch}`;
    draw("place", `epoch ${epoch + 1}, ${done}${earned}`);
  }

  function drawKnobs() {
    for (const { name, values } of KNOBS) {
      const field = document.getElementById(`pg-${name}`);
      const value = settings[name];
      const place = values.indexOf(value);
      if (field.type === "range") {
        field.value = place;
        field.setAttribute("aria-valuetext", value);
        find(`value-${name}`).textContent = value;
      } else field.value = value;
      const hint = find(`hint-${name}`);
      if (hint) hint.textContent = FORMULAS[value];
    }
    for (const { key, knobs } of STORIES) {
      const wanted = { ...START, ...knobs };
      const isIt = Object.keys(wanted).every((name) => wanted[name] === settings[name]);
      root.querySelector(`[data-story="${key}"]`).setAttribute("aria-pressed", isIt);
    }
  }

  function drawPrompts() {
    const pill = (prompt, k) =>
      `<label><input type="radio" name="pg-prompt" value="${k}"
         ${k === shown ? "checked" : ""}> ${spoken(prompt)}
       <span class="pg-to">→ ${spoken(GRPO.ascending(prompt))}</span></label>`;
    draw("prompts", trainer.config.prompts.map(pill).join(""));
  }

  const say = (text) => (find("said").textContent = text);

  // What the buttons do

  const config = () => ({ ...settings, prompts: PROMPTS[settings.prompts] });

  function reset() {
    stop();
    trainer = new GRPO.Trainer(config());
    trainer.collect();
    [history, shown, goal] = [[], 0, epochs];
    drawPrompts();
    drawKnobs();
    drawAll();
  }

  const first = () =>
    `${settings.num_responses} responses to each prompt were sampled and rewarded. Press ` +
    "Run to let the policy learn, or One inner step to follow this one group.";

  /** One optimizer step; false if it could not be taken. */
  function step() {
    try {
      const record = trainer.improve();
      history.push({ ...record, ...trainer.observe() });
      return true;
    } catch (error) {
      stop();
      say(error.message);
      return false;
    }
  }

  function take(count) {
    const prompt = trainer.config.prompts[shown];
    const right = () => fixed(trainer.right(prompt), 3);
    const before = right();
    for (let k = 0; k < count; k++) if (!step()) return;
    drawAll();
    const { loss, mean_reward } = history[history.length - 1];
    const steps = count === 1 ? "One step" : `${count} steps`;
    const cut = trainer.tokens().filter((token) => token.cut).length;
    say(
      `${steps} on the group of epoch ${trainer.epoch + 1}, whose mean reward is ` +
        `${fixed(mean_reward)}. The loss was ${fixed(loss, 3)}. The right answer to ` +
        `${spoken(prompt)} went from ${before} to ${right()}. ` +
        `The clip now holds back ${cut} of ${trainer.tokens().length} sampled numbers.`,
    );
  }

  /** How many steps there are to the end of the epoch, or in the next one. */
  const left = () => settings.num_steps_per_epoch - (trainer.isUsedUp ? 0 : trainer.step);

  const isSlow = () => document.getElementById("pg-slow").checked;
  const pace = () => PACE[calm.matches ? "calm" : isSlow() ? "slow" : "quick"];

  function tick() {
    const isWatched = history.length < WATCHED && !calm.matches;
    const count = isSlow() || isWatched ? 1 : left();
    for (let k = 0; k < count; k++) if (!step()) return drawAll();
    drawAll();
    if (trainer.epoch + 1 >= goal && trainer.isUsedUp) {
      goal += epochs;
      stop();
      const worst = showWorst();
      say(`${trainer.epoch + 1} epochs are done. ${summary()} Shown: ${worst}.`);
    } else timer = setTimeout(tick, pace());
  }

  /** Show the prompt that is answered worst: a mean hides it. */
  function showWorst() {
    const { prompts } = trainer.config;
    const chances = prompts.map((prompt) => trainer.right(prompt));
    shown = chances.indexOf(Math.min(...chances));
    root.querySelector(`[name="pg-prompt"][value="${shown}"]`).checked = true;
    drawPolicyAndGroup();
    return `${spoken(prompts[shown])}, right with ${fixed(chances[shown])}`;
  }

  function summary() {
    const { mean_reward, sorted_probability, entropy } = history[history.length - 1];
    return (
      `Means of ${trainer.config.prompts.length} prompts: reward ${fixed(mean_reward)}, ` +
      `probability of the right answer ${fixed(sorted_probability)}, ` +
      `entropy ${fixed(entropy)}.`
    );
  }

  function stop() {
    clearTimeout(timer);
    timer = undefined;
    root.querySelector('[data-do="run"]').textContent = "Run";
  }

  function run() {
    if (timer) {
      stop();
      return say(`Paused in epoch ${trainer.epoch + 1}. ${summary()}`);
    }
    root.querySelector('[data-do="run"]').textContent = "Pause";
    say(`Running until epoch ${goal}. Press Pause to stop.`);
    timer = setTimeout(tick, pace());
  }

  /** Scroll until the buttons and the pictures below them are on the screen. */
  function showPictures() {
    const [bench, picture] = [".pg-bench", ".pg-policy"].map((name) =>
      root.querySelector(name),
    );
    const [top, bottom] = [bench, picture].map((each) => each.getBoundingClientRect());
    if (top.top >= 0 && bottom.bottom <= window.innerHeight) return;
    bench.scrollIntoView({ behavior: calm.matches ? "instant" : "smooth" });
  }

  const ACTIONS = {
    step: () => (stop(), take(1), showPictures()),
    epoch: () => (stop(), take(left()), showPictures()),
    run: () => (run(), timer && showPictures()),
    reset: () => (reset(), say(`The policy starts again. ${first()}`)),
  };

  root.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (!button) return;
    if (button.dataset.do) return ACTIONS[button.dataset.do]();
    const chosen = STORIES.find(({ key }) => key === button.dataset.story);
    const { title, knobs, watch, notebook } = chosen;
    epochs = chosen.epochs;
    settings = { ...START, ...knobs, seed: settings.seed };
    tell(watch, notebook);
    reset();
    say(`${title}. ${first()}`);
  });

  /** What to watch; on the website also where the course treats it. */
  function tell(watch, notebook) {
    root.querySelector('[data-pg="changed"]').hidden = true;
    const folder = root.dataset.notebooks;
    const link = ` <a href="${folder}${notebook}.html">Notebook ${notebook.slice(0, 2)}</a>`;
    draw("watch", folder ? watch + link : watch);
  }

  function turn(name, value) {
    const { does } = KNOBS.find((each) => each.name === name);
    settings[name] = value;
    root.querySelector('[data-pg="changed"]').hidden = false;
    trainer.config = config();
    if (does === "restart") reset();
    if (does === "sample") trainer.collect();
    if (does === "judge") trainer.judge();
    drawKnobs();
    drawAll();
    say(`${name} is now ${value}. ${does ? NOW[does] : "It counts from the next step on"}.`);
  }

  root.addEventListener("input", (event) => {
    const { id, type, name, value } = event.target;
    if (name === "pg-prompt") {
      shown = Number(value);
      drawPolicyAndGroup();
    } else if (type === "range" || type === "select-one") {
      const { values } = KNOBS.find((each) => `pg-${each.name}` === id);
      turn(id.slice(3), type === "range" ? values[Number(value)] : value);
    } else if (id === "pg-seed" && Number.isInteger(Number(value)) && value !== "") {
      settings.seed = Number(value);
      reset();
      say(`Seed ${value}: another start, and other samples. ${first()}`);
    }
  });

  tell(STORIES[0].watch, STORIES[0].notebook);
  reset();
  say(first());
})();
