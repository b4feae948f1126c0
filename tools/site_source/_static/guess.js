// The choices of a guess, which a notebook prints as "( ) up   ( ) down", can be clicked.
// Nothing is sent or kept: a reader commits to a choice before the folded output opens.
addEventListener("DOMContentLoaded", () => {
  let count = 0;
  for (const printed of document.querySelectorAll(".tag_predict .cell_output pre")) {
    const box = document.createElement("div");
    box.className = "guess";
    let question = null;
    for (const line of printed.textContent.trimEnd().split("\n")) {
      const [words, ...choices] = line.split("( )").map((part) => part.trim());
      if (words && (!question || question.querySelector("label"))) {
        question = box.appendChild(document.createElement("fieldset"));
        question.append(document.createElement("legend"));
        count += 1;
      }
      if (words) question.querySelector("legend").append(`${words} `);
      for (const choice of choices) {
        const label = question.appendChild(document.createElement("label"));
        label.innerHTML = `<input type="radio" name="guess-${count}"> `;
        label.append(choice);
      }
    }
    printed.closest(".output").replaceWith(box);
  }
});
