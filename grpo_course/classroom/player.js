(film) => {
  let figure = document.currentScript;  // which VS Code runs at the output's end
  while (!figure.matches(".moving")) figure = figure.previousElementSibling;
  const picture = figure.querySelector("img");
  const words = figure.querySelector("figcaption");
  const inputs = [], outputs = [];
  let timer = 0;
  const place = () => film.knobs.reduce(
    (k, knob, i) => k * knob.values.length + Number(inputs[i].value), 0);
  const show = () => {
    const k = place();
    picture.src = film.frames[k];
    picture.alt = film.alts[k];
    words.textContent = film.told[k];
    film.knobs.forEach((knob, i) => {
      const value = knob.values[Number(inputs[i].value)];
      outputs[i].textContent = value;
      inputs[i].setAttribute("aria-valuetext", value + ". " + film.told[k]);
    });
  };
  const button = document.createElement("button");
  button.type = "button";
  const rest = () => {
    clearInterval(timer);
    timer = 0;
    button.textContent = "\u25B6 Play";
  };
  const step = () => {
    const last = Number(inputs[0].max), next = Number(inputs[0].value) + 1;
    inputs[0].value = Math.min(next, last);
    show();
    if (next >= last || !figure.isConnected) rest();
  };
  button.onclick = () => {
    if (timer) return rest();
    if (inputs[0].value === inputs[0].max) inputs[0].value = 0;
    show();
    timer = setInterval(step, 450);
    button.textContent = "\u23F8 Pause";
  };
  let before = film.first;
  for (const knob of [...film.knobs].reverse()) {
    const count = knob.values.length;
    knob.first = before % count;
    before = Math.floor(before / count);
  }
  const row = document.createElement("div");
  if (film.film) row.append(button);
  for (const knob of film.knobs) {
    const label = document.createElement("label");
    const input = document.createElement("input");
    const output = document.createElement("output");
    Object.assign(input, {type: "range", min: 0, max: knob.values.length - 1, step: 1});
    input.value = knob.first;
    input.dataset.lmSuppressShortcuts = "true";  // JupyterLab leaves the arrow keys alone
    input.oninput = () => { rest(); show(); };
    label.append(knob.name, input, output);
    row.append(label);
    inputs.push(input);
    outputs.push(output);
  }
  figure.insertBefore(row, words);
  rest();
  show();
}
