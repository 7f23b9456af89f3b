// Pointing from the conversation to the cells, and from a cell to the conversation: one marks the other.

/** `mark(message, call)`: a message, or the number of one of its tool calls, is pointed at; null: none is. */
export function mountMarking(list, mark) {
  let marked = null;   // the element that a cell marks
  let pointed = null;  // the element that is pointed at

  const callsOf = (message) => [...message.querySelectorAll(":scope > .message__body > .tool-call")];

  function point(target) {
    const message = target?.closest?.(".message");
    const call = target?.closest?.(".tool-call");
    const now = call ?? message ?? null;
    if (now === pointed) return;
    pointed = now;
    if (!message) mark(null, null);
    else mark(message.dataset.id, call ? callsOf(message).indexOf(call) : null);
  }

  list.addEventListener("pointerover", (event) => point(event.target));
  list.addEventListener("pointerleave", () => point(null));
  list.addEventListener("focusin", (event) => { if (event.target.matches(":focus-visible")) point(event.target); });
  list.addEventListener("focusout", (event) => { if (!list.contains(event.relatedTarget)) point(null); });

  return {
    /** Marks where a token stands in the conversation; null: nowhere. */
    show(token) {
      const message = token?.message && list.querySelector(`[data-id="${CSS.escape(token.message)}"]`);
      const call = message && token.call !== undefined ? callsOf(message)[token.call] : null;
      const wanted = call ?? message ?? null;
      if (wanted === marked) return;
      marked?.classList.remove("is-marked");
      marked = wanted;
      marked?.classList.add("is-marked");
    },
  };
}
