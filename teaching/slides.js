// Keys on a slide that has controls: a slider, a button, a list to choose from.
//
// reveal.js does nothing while a slider or a field has the focus, and a mouse leaves the
// focus there. So a control keeps the keys that it uses if Tab or a script has led to
// it; what a pointer has used last gives all of them back to the deck, unless it is
// written into. PageUp and PageDown, which every clicker sends, always turn the slides.
(() => {
  const CONTROLS = "input, select, textarea, button, summary, a[href], audio, video, "
    + "[role=slider], [contenteditable=true]";
  const CLICKED = "button, summary, a, input:is([type=button], [type=checkbox], "
    + "[type=file], [type=reset], [type=submit])";
  const WRITTEN = "textarea, [contenteditable=true], input:not([type=button], "
    + "[type=checkbox], [type=color], [type=file], [type=radio], [type=range], "
    + "[type=reset], [type=submit])";
  const CLICKS = [" ", "Enter"];
  const TURNS = ["PageDown", "PageUp"];
  const NOT_OF_A_DECK = ["Alt", "Control", "Enter", "Meta", "Shift", "Tab"];
  let isPressed = false;  // from a pointer's press to the click that it ends in
  let isPointed = false;  // whether a pointer was what used the focused control last

  const on = (kind, act) => window.addEventListener(kind, act, true);
  on("pointerdown", () => { isPointed = isPressed = true; });
  on("click", () => { isPressed = false; });
  on("focusin", () => { isPointed = isPressed; });
  on("keydown", (event) => {
    isPressed = false;
    const control = document.activeElement?.closest(CONTROLS);
    if (!control || event.altKey || event.ctrlKey || event.metaKey) return;
    const isWritten = control.matches(WRITTEN);
    if (event.key === "Enter" && isWritten && control.matches("input"))
      control.addEventListener("keyup", () => control.blur(), {once: true});  // it is in
    const isUsed = control.matches(CLICKED)
      ? CLICKS.includes(event.key) : !TURNS.includes(event.key);
    if (NOT_OF_A_DECK.includes(event.key)) return;
    if (isUsed && (isWritten || !isPointed)) {
      // Not for the deck, which listens further out.
      if (!isWritten)
        control.addEventListener("keydown", (e) => e.stopPropagation(), {once: true});
      return;
    }
    event.preventDefault();
    event.stopImmediatePropagation();
    control.blur();
    document.body.dispatchEvent(new KeyboardEvent(event.type, event));
  });
})();
