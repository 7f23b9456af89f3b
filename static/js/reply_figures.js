// The figures of a finished reply as sentences take them: from the reply's `stats`, nothing estimated.

import { count } from "./format.js";

/** `tokens`: how many are remembered now. */
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
