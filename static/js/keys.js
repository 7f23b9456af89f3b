// When Enter means "send".

const coarse = matchMedia("(pointer: coarse)");

/** Plain Enter, unless it belongs to an input method (Safari says so by keyCode 229 alone) or to a screen
    keyboard, where it breaks the line. */
export function meansSend(event) {
  return event.key === "Enter" && !event.shiftKey && !event.ctrlKey && !event.altKey && !event.metaKey
    && !event.isComposing && event.keyCode !== 229 && !coarse.matches;
}
