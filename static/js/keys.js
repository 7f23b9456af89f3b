// Keys and touch: when Enter means "send", and when a text box may take the focus.

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
