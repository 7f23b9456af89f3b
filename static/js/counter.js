// How many tokens the text in the box is, counted by the server's own tokenizer: shown beside the box, and what a
// text too long for the memory is told by, before it is sent.

import { setText } from "./dom.js";
import { count } from "./format.js";
import { say } from "./words.js";

const AFTER_MS = 300;

/** `isWarm()`: whether the chat is in memory. `counted({tokens, limit})`: `limit` of which one message may have. */
export function mountCounter({ root, place, conversation, isWarm, counted }) {
  const quiet = place.textContent;
  let timer = 0;
  let asking = null;

  /** -> {tokens, limit}, or null where it cannot be told. */
  async function ask(text, signal) {
    try {
      const answer = await fetch(`${root}api/count`, {
        method: "POST",
        credentials: "same-origin",
        headers: { "Content-Type": "application/json" },
        body: JSON.stringify({ conversation: conversation(), text }),
        signal,
      });
      return answer.ok ? await answer.json() : null;
    } catch { return null; } // no connection, or no longer wanted
  }

  async function update(text) {
    asking = new AbortController();
    const { signal } = asking;
    const numbers = await ask(text, signal);
    if (signal.aborted || !numbers) return;
    const key = isWarm() && numbers.tokens <= numbers.limit ? "count.warm" : "count";
    setText(place, say(key, { tokens: count(numbers.tokens) }));
    counted(numbers);
  }

  return {
    ask,
    /** The text in the box is another. */
    changed(text) {
      clearTimeout(timer);
      asking?.abort();
      if (!text.trim()) setText(place, quiet);
      else timer = setTimeout(update, AFTER_MS, text);
    },
  };
}
