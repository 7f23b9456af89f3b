// Keys and touch: when Enter means "send", when Escape means "stop", and when a text box may take the focus.

const coarse = matchMedia("(pointer: coarse)");

/** Focuses a text box, but on a touch screen, where that would bring up a keyboard nobody asked for. */
export function focusText(area) {
  if (!coarse.matches) area.focus({ preventScroll: true });
}

/** Plain Enter, unless it belongs to an input method (Safari says so by keyCode 229 alone) or to a screen
    keyboard, where it breaks the line. */
export function meansSend(event) {
  return event.key === "Enter" && !event.shiftKey && !event.ctrlKey && !event.altKey && !event.metaKey
    && !event.isComposing && event.keyCode !== 229 && !coarse.matches;
}

/** What Escape closes or leaves first. */
export const TAKES_ESCAPE = "dialog[open], .edit, .is-open, details[open].explain";
const TAKES_ESCAPE_WITHIN = "input[type=search], [data-takes-escape]"; // while it has the focus

/** Calls `stop` when Escape is pressed with nothing to be closed, as long as `isBusy()`. It is asked before all others:
    what they close is still open then. */
export function onEscape(isBusy, stop) {
  addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || event.isComposing || event.repeat || !isBusy()) return;
    if (document.querySelector(TAKES_ESCAPE) || event.target.closest?.(TAKES_ESCAPE_WITHIN)) return;
    event.preventDefault();
    event.stopPropagation();
    stop();
  }, { capture: true });
}
