// How many tokens the text in the box is, counted by the server's own tokenizer: shown beside the box, and what a
// text too long for the memory is told by, before it is sent.

import { isBlank } from "./blank.js";
import { setText } from "./dom.js";
import { count } from "./format.js";
import { say } from "./words.js";

const AFTER_MS = 300;

/** `settings()`: those of the next answer. `counted({tokens, limit})`: `limit` of which one message may have. */
export function mountCounter({ root, place, conversation, settings, counted }) {
  const quiet = place.textContent;
  let text = "";
  let timer = 0;
  let asking = null;

  /** -> {tokens, limit, read}, or null where it cannot be told. `limit` is for the text alone. */
  async function ask(text, signal) {
    try {
      const answer = await fetch(`${root}api/count`, {
        method: "POST",
        credentials: "same-origin",
        headers: { "Content-Type": "application/json" },
        body: JSON.stringify({ conversation: conversation(), text, settings: settings() }),
        signal,
      });
      if (!answer.ok) return null;
      const { tokens, alone, limit, read } = await answer.json();
      return { tokens, limit: Math.max(0, limit - (alone - tokens)), read }; // a text needs marks and a system prompt
    } catch { return null; } // no connection, or no longer wanted
  }

  async function update() {
    asking = new AbortController();
    const { signal } = asking;
    const numbers = await ask(text, signal);
    if (signal.aborted || !numbers) return;
    const key = conversation() && numbers.read !== undefined ? "count.read" : "count";
    setText(place, say(key, { tokens: count(numbers.tokens), read: count(numbers.read) }));
    counted(numbers);
  }

  /** What the count depends on is another. */
  function refresh() {
    clearTimeout(timer);
    asking?.abort();
    if (isBlank(text)) setText(place, quiet);
    else timer = setTimeout(update, AFTER_MS);
  }

  return {
    ask,
    refresh,
    /** The text in the box is another. */
    changed(now) {
      text = now;
      refresh();
    },
  };
}
