/* What the playground draws. Each picture is text: HTML or SVG, from plain numbers. */
"use strict";

const PICTURES = (() => {
  const { ascending, mean, range } = GRPO;
  const spoken = (list) => list.join(" ");
  const signed = (x) => `${x < 0 ? "−" : "+"}${Math.abs(x).toFixed(2)}`;
  const hidden = (text) => `<span class="pg-hidden">${text}</span>`;
  const fixed = (x, digits = 2) => {
    const text = Math.abs(x).toFixed(digits);
    return x < 0 && Number(text) > 0 ? `−${text}` : text;
  };

  /** π for one prompt: a cell for each position and number, the right one outlined.
      Where π has moved since the group was sampled, the cell says from where. */
  function heatmap(prompt, probs, old) {
    const truth = ascending(prompt);
    const cell = (p, pos, v) => {
      const was = old[pos][v].toFixed(2);
      const moved = was === p.toFixed(2) ? "" : `<small>was ${was.replace("0.", ".")}</small>`;
      const right = v === truth[pos] ? hidden(", right") : "";
      const name = `${right ? "pg-right " : ""}${p > 0.94 ? "pg-sure" : ""}`;
      return `<td class="${name}" style="--p:${p.toFixed(3)}">${p.toFixed(2)}${right}${moved}</td>`;
    };
    const numbers = probs[0].map((_, v) => `<th scope="col">${v}</th>`).join("");
    const rows = probs.map(
      (row, pos) =>
        `<tr><th scope="row">place ${pos}</th>${row.map((p, v) => cell(p, pos, v)).join("")}</tr>`,
    );
    return `<table class="pg-heat">
      <caption class="pg-hidden">Probability of each number at each place, prompt ${spoken(prompt)}</caption>
      <thead><tr><th scope="col">${hidden("place")}</th>${numbers}</tr></thead>
      <tbody>${rows.join("")}</tbody></table>`;
  }

  /** δ as an arrow of 40 px either way; a dot where there is none. */
  function arrow(delta, largest) {
    if (Math.abs(delta) < 1e-9) return `<svg viewBox="0 0 20 44"><circle cx="10" cy="22" r="2.5" class="pg-none"/></svg>`;
    const length = 8 + 12 * Math.min(1, Math.abs(delta) / largest);
    const turn = delta < 0 ? ` transform="rotate(180 10 22)"` : "";
    return `<svg viewBox="0 0 20 44"><path class="${delta > 0 ? "pg-up" : "pg-down"}"${turn}
      d="M10 ${22 - length} L17 ${30 - length} L12.5 ${30 - length} L12.5 22 L7.5 22 L7.5 ${30 - length} L3 ${30 - length} Z"/></svg>`;
  }

  /** A group: a column for each response, its reward as a bar, its delta as an arrow. */
  function group(prompt, responses, rewards, deltas, top) {
    const largest = Math.max(1, ...deltas.map(Math.abs));
    const level = mean(rewards) / top;
    const truth = spoken(ascending(prompt));
    const column = (response, k) => {
      const right = spoken(response) === truth ? " pg-right" : "";
      const said = `Response ${spoken(response)}${right ? ", right" : ""}: reward ${rewards[k]}, delta ${signed(deltas[k])}`;
      return `<li>${hidden(said)}<div aria-hidden="true">
        <b>${rewards[k]}</b><div class="pg-bar"><i style="--part:${rewards[k] / top}"></i></div>
        <div class="pg-answer${right}">${response.map((x) => `<span>${x}</span>`).join("")}</div>
        ${arrow(deltas[k], largest)}<div class="pg-delta">${signed(deltas[k])}</div></div></li>`;
    };
    return `<ol class="pg-columns" style="--level:${level}">${responses.map(column).join("")}</ol>`;
  }

  /** A triangle for each sampled number: its ratio, and the delta of its response. */
  function ratios(tokens, { loss_mode, epsilon }) {
    const [left, right, height, reach] = [30, 350, 200, 4];
    const x = (r) => {
      const place = Math.log(Math.min(reach, Math.max(1 / reach, r))) / Math.log(reach);
      return left + ((right - left) * (place + 1)) / 2;
    };
    const largest = Math.max(1, ...tokens.map((t) => Math.abs(t.delta)));
    const y = (delta) => 88 - (62 * delta) / largest;
    const clips = !["naive", "unclipped", "sapo"].includes(loss_mode);
    const low = loss_mode === "cispo" ? 0 : 1 - epsilon;
    const band = clips
      ? `<rect class="pg-band" x="${x(low)}" y="12" width="${x(1 + epsilon) - x(low)}" height="152"/>`
      : "";
    const dot = ({ ratio, delta, cut, pos }) => {
      const [cx, cy] = [x(ratio), y(delta) + 7 * (pos - 1)];
      const name = cut ? "pg-cut" : delta > 0 ? "pg-up" : delta < 0 ? "pg-down" : "pg-none";
      const tip = delta < 0 ? 5 : -5;
      return `<path class="${name}" d="M${cx} ${cy + tip} l5 ${-1.7 * tip} h-10 Z"/>`;
    };
    const ticks = [[0.25, "¼"], [0.5, "½"], [1, "1"], [2, "2"], [4, "4"]];
    const out = (side) => {
      const count = tokens.filter((t) => (side === "left" ? t.ratio < 1 / reach : t.ratio > reach)).length;
      const at = side === "left" ? `x="${left}" text-anchor="start"` : `x="${right}" text-anchor="end"`;
      const arrows = side === "left" ? `◀ ${count} beyond` : `${count} beyond ▶`;
      return count ? `<text ${at} y="10">${arrows}</text>` : "";
    };
    return `<svg viewBox="0 0 360 ${height}" role="img" aria-label="${ratioWords(tokens)}">
      ${band}<path class="pg-axis" d="M${x(1)} 12 V164 M${left} 88 H${right}"/>
      ${ticks.map(([r, word]) => `<text x="${x(r)}" y="180" text-anchor="middle">${word}</text>`).join("")}
      <text x="4" y="24">+δ</text><text x="4" y="160">−δ</text>
      <text x="190" y="197" text-anchor="middle">ratio r</text>
      ${[...tokens].sort((a, b) => b.cut - a.cut).map(dot).join("")}${out("left")}${out("right")}</svg>`;
  }

  function ratioWords(tokens) {
    const rs = tokens.map((t) => t.ratio);
    const cut = tokens.filter((t) => t.cut).length;
    return `Ratios from ${fixed(Math.min(...rs))} to ${fixed(Math.max(...rs))}; the clip takes ${cut} of ${tokens.length} numbers`;
  }

  /** One measure over all steps; `low` and `high` are the ends of its axis. */
  function curve({ title, said, digits = 2 }, values, low, high) {
    const now = values.length ? values[values.length - 1] : null;
    const every = Math.max(1, Math.ceil(values.length / 400));
    const kept = range(values.length).filter((k) => k % every === 0 || k === values.length - 1);
    const last = Math.max(50, values.length - 1);
    const at = (k) => {
      const y = 58 - (56 * (values[k] - low)) / (high - low);
      return `${((200 * k) / last).toFixed(1)} ${Math.min(59, Math.max(1, y)).toFixed(1)}`;
    };
    const path = kept.length ? `M${kept.map(at).join("L")}` : "";
    const dot = kept.length ? `M${at(values.length - 1)}h0.01` : "";
    const words = now === null ? "no step yet" : `now ${fixed(now, digits)}, at first ${fixed(values[0], digits)}`;
    return `<figure><figcaption>${title} <b>${now === null ? "" : fixed(now, digits)}</b></figcaption>
      <div class="pg-plot"><span>${fixed(high, 1)}</span><span>${fixed(low, 1)}</span>
      <svg viewBox="0 0 200 60" preserveAspectRatio="none" role="img" aria-label="${said || title}: ${words}">
      <path class="pg-axis" d="M0 1H200M0 59H200"/><path class="pg-line" d="${path}"/><path class="pg-now" d="${dot}"/></svg></div></figure>`;
  }

  return { heatmap, group, ratios, ratioWords, curve, fixed, spoken };
})();
