// One lane of the race: its text, its clock, and what it has computed so far; while it is measured and then in the show.

import { setText, slot } from "./dom.js";
import { count, number } from "./format.js";
import { moments, reached } from "./race_figures.js";
import { say } from "./words.js";

const clock = (s) => say("unit.seconds", { seconds: number(s, s < 9.995 ? 2 : 1) });

export function mountLane(element) {
  const [about, text, time, tokens, positions] = ["about", "text", "time", "tokens", "positions"].map((name) => slot(element, name));
  let lane = null;
  let times = [];
  let shown = 0;

  /** With nothing in it yet; null for a lane that explains itself. */
  function show(next, total, partsAt = null) {
    lane = next && { ...next, total, partsAt };
    times = next ? moments(next.seconds) : [];
    shown = 0;
    text.replaceChildren();
    about.hidden = next !== null;
    text.hidden = next === null;
    element.dataset.state = next ? "ready" : "empty";
    for (const place of [time, tokens, positions]) setText(place, "");
    if (next) at(0);
  }

  /** As it stands `now` seconds after the start -> how many tokens are there. */
  function at(now) {
    const upTo = reached(times, now);
    if (upTo > shown) {
      write(lane.tokens.slice(shown, upTo), shown);
      shown = upTo;
      text.scrollTop = text.scrollHeight;
    }
    const isDone = upTo === times.length;
    element.dataset.state = isDone ? "done" : "running";
    setText(time, clock(Math.min(now, times.at(-1))));
    const ended = lane.reason === "stop" ? "race.ended" : "race.finished";
    setText(tokens, say(isDone ? ended : "race.tokens", { done: count(upTo), total: count(lane.total) }));
    setText(positions, say("race.computed", { positions: count(upTo ? lane.positions[upTo - 1] : 0) }));
    return upTo;
  }

  /** From where the answers part on, the tokens are marked. */
  function write(more, first) {
    const common = lane.partsAt === null ? more.length : Math.max(0, Math.min(more.length, lane.partsAt - first));
    append(text, "span", more.slice(0, common));
    append(text, "mark", more.slice(common));
  }

  /** Before the show: how far its measuring is. `state`: waiting, measuring or measured; `total`: tokens at most. */
  function measured(state, { done, text: said, seconds, positions: computed }, total) {
    element.dataset.state = state;
    about.hidden = said !== "";
    text.hidden = said === "";
    setText(text, said);
    text.scrollTop = text.scrollHeight;
    setText(time, done ? clock(seconds) : "");
    setText(tokens, say(`race.lane_${state}`, { done: count(done), total: count(total) }));
    setText(positions, done ? say("race.computed", { positions: count(computed) }) : "");
  }

  return { show, at, measured, get total_s() { return times.at(-1) ?? 0; } };
}

function append(parent, name, tokens) {
  if (!tokens.length) return;
  let last = parent.lastElementChild;
  if (last?.localName !== name) {
    last = document.createElement(name);
    last.append("");
    parent.append(last);
  }
  last.firstChild.appendData(tokens.map((token) => token.text).join(""));
}
