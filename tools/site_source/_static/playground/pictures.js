/* What the playground draws. Each picture is text: HTML or SVG, from plain numbers. */
"use strict";

const PICTURES = (() => {
  const { ascending, mean, range } = GRPO;
  const spoken = (list) => list.join(" ");
  const hidden = (text) => `<span class="pg-hidden">${text}</span>`;
  const fixed = (x, digits = 2) => {
    const text = Math.abs(x).toFixed(digits);
    return x < 0 && Number(text) > 0 ? `−${text}` : text;
  };
  const signed = (x) => (x > 0 ? `+${fixed(x)}` : fixed(x));

  /** π for one prompt: a cell for each position and number, the right one outlined.
      Where π has moved since the group was sampled, the cell says from where. */
  function heatmap(prompt, probs, old) {
    const truth = ascending(prompt);
    const cell = (p, pos, v) => {
      const [is, was] = [p.toFixed(2), old[pos][v].toFixed(2)];
      const moved = was === is ? "" : `<small>was ${was.replace("0.", ".")}</small>`;
      const right = v === truth[pos];
      const name = `${right ? "pg-right " : ""}${p > 0.94 ? "pg-sure" : ""}`;
      const words = right ? hidden(", right") : "";
      return `<td class="${name}" style="--p:${p.toFixed(3)}">${is}${words}${moved}</td>`;
    };
    const row = (ps, pos) => {
      const cells = ps.map((p, v) => cell(p, pos, v)).join("");
      return `<tr><th scope="row">position ${pos}</th>${cells}</tr>`;
    };
    const numbers = probs[0].map((_, v) => `<th scope="col">${v}</th>`).join("");
    const caption = "Probability of each number at each position, prompt";
    return `<table class="pg-heat">
      <caption class="pg-hidden">${caption} ${spoken(prompt)}</caption>
      <thead><tr><th scope="col">number</th>${numbers}</tr></thead>
      <tbody>${probs.map(row).join("")}</tbody></table>`;
  }

  /** δ as an arrow, longer for more; a dot where there is none. */
  function arrow(delta, largest) {
    const top = 14 - 12 * Math.min(1, Math.abs(delta) / largest);
    const turn = delta < 0 ? `transform="rotate(180 10 22)"` : "";
    const drawn =
      Math.abs(delta) < 1e-9
        ? `<circle cx="10" cy="22" r="2.5" class="pg-none"/>`
        : `<path class="${delta > 0 ? "pg-up" : "pg-down"}" ${turn}
           d="M10 ${top} l7 8 h-4.5 V22 h-5 V${top + 8} h-4.5 Z"/>`;
    return `<svg viewBox="0 0 20 44">${drawn}</svg>`;
  }

  /** A group: a column for each response, its reward as a bar, its delta as an arrow. */
  function group(prompt, responses, rewards, deltas, top) {
    const largest = Math.max(1, ...deltas.map(Math.abs));
    const truth = spoken(ascending(prompt));
    const column = (response, k) => {
      const [right, delta] = [spoken(response) === truth, signed(deltas[k])];
      const answer = `Response ${spoken(response)}${right ? ", right" : ""}`;
      const digits = response.map((x) => `<span>${x}</span>`).join("");
      return `<li>${hidden(`${answer}: reward ${rewards[k]}, delta ${delta}`)}
        <div aria-hidden="true"><b>${rewards[k]}</b>
        <div class="pg-bar"><i style="--part:${rewards[k] / top}"></i></div>
        <div class="pg-answer ${right ? "pg-right" : ""}">${digits}</div>
        ${arrow(deltas[k], largest)}<div class="pg-delta">${delta}</div></div></li>`;
    };
    const level = `--level:${mean(rewards) / top}`;
    const columns = responses.map(column).join("");
    return `<ol class="pg-columns" style="${level}">${columns}</ol>`;
  }

  /** A triangle for each sampled number: its ratio, and the delta of its response. */
  function ratios(tokens, { loss_mode, epsilon }) {
    const [left, right, reach] = [30, 350, 4];
    const x = (r) => {
      const near = Math.min(reach, Math.max(1 / reach, r));
      return left + ((right - left) * (Math.log(near) / Math.log(reach) + 1)) / 2;
    };
    const largest = Math.max(1, ...tokens.map((token) => Math.abs(token.delta)));
    const low = x(loss_mode === "cispo" ? 0 : 1 - epsilon);
    const hasBand = ["clipped", "dual_clipped", "cispo"].includes(loss_mode);
    const width = x(1 + epsilon) - low;
    const band = `<rect class="pg-band" x="${low}" y="12" width="${width}" height="152"/>`;
    const triangle = ({ ratio, delta, cut, pos }) => {
      const tip = delta < 0 ? 5 : -5;
      const y = 88 - (62 * delta) / largest + 7 * (pos - 1); // positions side by side
      const name = cut ? "cut" : delta > 0 ? "up" : delta < 0 ? "down" : "none";
      return `<path class="pg-${name}" d="M${x(ratio)} ${y + tip} l5 ${-1.7 * tip} h-10 Z"/>`;
    };
    const text = (at, y, words, anchor = "middle") =>
      `<text x="${at}" y="${y}" text-anchor="${anchor}">${words}</text>`;
    const ticks = { "¼": 0.25, "½": 0.5, 1: 1, 2: 2, 4: 4 };
    const below = tokens.filter((token) => token.ratio < 1 / reach).length;
    const above = tokens.filter((token) => token.ratio > reach).length;
    const inFront = [...tokens].sort((a, b) => b.cut - a.cut);
    return `<svg viewBox="0 0 360 200" role="img" aria-label="${ratioWords(tokens)}">
      ${hasBand ? band : ""}<path class="pg-axis" d="M${x(1)} 12 V164 M${left} 88 H${right}"/>
      ${Object.entries(ticks).map(([word, r]) => text(x(r), 180, word)).join("")}
      ${text(190, 197, "ratio r")}
      ${text(4, 24, "+δ", "start")}${text(4, 160, "−δ", "start")}
      ${inFront.map(triangle).join("")}
      ${below ? text(left, 10, `◀ ${below} beyond`, "start") : ""}
      ${above ? text(right, 10, `${above} beyond ▶`, "end") : ""}</svg>`;
  }

  function ratioWords(tokens) {
    const all = tokens.map((token) => token.ratio);
    const ends = `${fixed(Math.min(...all))} to ${fixed(Math.max(...all))}`;
    const cut = tokens.filter((token) => token.cut).length;
    return `Ratios from ${ends}; the clip takes ${cut} of ${tokens.length} numbers`;
  }

  /** One measure over all steps; `low` and `high` are the ends of its axis. */
  function curve({ title, said = title, digits = 2 }, values, low, high) {
    const last = values.length - 1;
    const every = Math.max(1, Math.ceil(values.length / 400));
    const kept = range(values.length).filter((k) => k % every === 0 || k === last);
    const at = (k) => {
      const y = 59 - (58 * (values[k] - low)) / (high - low);
      const x = (200 * k) / Math.max(50, last);
      return `${x.toFixed(1)} ${Math.min(59, Math.max(1, y)).toFixed(1)}`;
    };
    const now = last < 0 ? "" : fixed(values[last], digits);
    const words = now ? `now ${now}, at first ${fixed(values[0], digits)}` : "no step yet";
    const line = now
      ? `<path class="pg-line" d="M${kept.map(at).join("L")}"/>
         <path class="pg-now" d="M${at(last)}h0.01"/>`
      : "";
    return `<figure><figcaption>${title} <b>${now}</b></figcaption>
      <div class="pg-plot"><span>${fixed(high, 1)}</span><span>${fixed(low, 1)}</span>
      <svg viewBox="0 0 200 60" preserveAspectRatio="none" role="img"
        aria-label="${said}: ${words}"><path class="pg-axis" d="M0 1H200M0 59H200"/>
      ${line}</svg></div></figure>`;
  }

  return { heatmap, group, ratios, ratioWords, curve, fixed, spoken };
})();
