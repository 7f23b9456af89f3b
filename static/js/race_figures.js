// The arithmetic of the race: what was measured, at a moment of the show. Knows no element.

/** When each token of a lane stands there, in seconds from the start. */
export function moments(seconds) {
  let at = 0;
  return seconds.map((each) => (at += each));
}

/** How many of these moments have come at `now`. They rise. */
export function reached(times, now) {
  let low = 0;
  let high = times.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (times[middle] <= now) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Positions that a lane computes for so many tokens after a prompt. */
export function positionsOf(prompt, tokens, remembers) {
  if (tokens === 0) return 0;
  return remembers ? prompt + tokens - 1 : tokens * prompt + (tokens * (tokens - 1)) / 2;
}

/** Seconds that measuring takes, about; null where the pace is not known. */
export function estimate(pace, prompt, tokens) {
  if (!pace) return null;
  const positions = positionsOf(prompt, tokens, true) + positionsOf(prompt, tokens, false);
  return 2 * tokens * pace.token_s + positions * pace.position_s;
}

/** Round marks from 0 to `most` or a little over: three to six of them. */
export function ticks(most) {
  const raw = Math.max(most, 1e-9) / 4;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 2.5, 5, 10].map((each) => each * power).find((each) => each >= raw * 0.999);
  return Array.from({ length: Math.ceil(most / step - 1e-9) + 1 }, (_, index) => index * step);
}

/** A lane for the chart: how many tokens stood before each, and the milliseconds that it took. */
export const points = (lane, prompt) => lane.seconds.map((seconds, index) => [prompt + index, seconds * 1000]);

/** How far up the chart goes: over all but the few tokens that the machine was busy elsewhere with, if there are such. */
export function ceiling(milliseconds) {
  const rising = [...milliseconds].sort((a, b) => a - b);
  const ordinary = rising[Math.floor(0.97 * (rising.length - 1))];
  return rising.at(-1) > 1.6 * ordinary ? 1.15 * ordinary : rising.at(-1);
}

/** "11.4", "73": three digits at most. */
export const digitsOf = (times) => (times < 99.95 ? 1 : 0);

/** The result as a table of comma-separated values, one token a line. */
export function csv(result, prompt) {
  const { cached, uncached } = result;
  const lines = [["token", "tokens_before", "remembers_id", "remembers_text", "remembers_ms", "remembers_positions",
    "again_id", "again_text", "again_ms", "again_positions"]];
  for (let index = 0; index < Math.max(cached.tokens.length, uncached.tokens.length); index++) {
    lines.push([index + 1, prompt + index, ...[cached, uncached].flatMap((lane) => cells(lane, index))]);
  }
  return lines.map((line) => line.join(",")).join("\r\n") + "\r\n";
}

function cells(lane, index) {
  if (index >= lane.tokens.length) return ["", "", "", ""];
  const { id, text } = lane.tokens[index];
  return [id, quoted(text), (lane.seconds[index] * 1000).toFixed(3), lane.positions[index]];
}

/** A text as a cell. What a spreadsheet would take for a formula is kept from being one. */
function quoted(text) {
  const safe = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return `"${safe.replaceAll('"', '""')}"`;
}
