// The figures of a finished reply as sentences take them, nothing estimated.

import { count } from "./format.js";

/** Waits for what is remembered after a reply: the server tells it behind the reply's end. `ended(stats, figures)`. */
export function awaitFigures(ended) {
  let stats = null;
  return (event) => {
    if (event.type === "done") stats = event.stats ?? null;
    if (event.type !== "cache" || !stats) return;
    const told = stats;
    stats = null;
    ended(told, figuresOf(told, event.cache.conversation?.tokens));
  };
}

/** `stats` of the reply; `tokens`: how many are remembered after it. */
export function figuresOf(stats, tokens) {
  const made = (stats.generated_tokens ?? 0) + (stats.forced_tokens ?? 0);
  const whole = stats.use_cache === false ? stats.prompt_tokens ?? 0 : stats.read_tokens ?? 0;
  return {
    reused: count(stats.reused_tokens),
    read: count(stats.read_tokens),
    written: count(stats.generated_tokens),
    forced: count(stats.forced_tokens),
    without: count(stats.without_cache),
    computed: count(Math.max(0, whole + made - (made ? 1 : 0))), // the last token made has not been computed with
    tokens: count(tokens),
  };
}
