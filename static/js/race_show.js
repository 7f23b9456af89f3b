// The show: both lanes run side by side at the speed that each was measured at, with the chart drawn as they go.
// Where less motion is wanted, the end stands there at once, and the show runs when it is asked for.

import { setText, slot } from "./dom.js";
import { count, number } from "./format.js";
import { mountChart } from "./race_chart.js";
import { digitsOf, points } from "./race_figures.js";
import { mountLane } from "./race_lane.js";
import { say } from "./words.js";

const stillness = matchMedia("(prefers-reduced-motion: reduce)");

/** `started()` and `ended(result)` are told; `ended` also where there was nothing to be seen of a show. */
export function mountShow({ lanes, chart, hint, off, verdict, table, started, ended }) {
  const drawing = mountChart(chart, hint, off);
  const mounted = Object.fromEntries(Object.entries(lanes).map(([name, element]) => [name, mountLane(element)]));
  const places = Object.fromEntries(["times", "same", "compared"].map((name) => [name, slot(verdict, name)]));
  const before = Object.fromEntries(Object.entries(places).map(([name, place]) => [name, place.textContent]));
  let result = null;
  let frame = 0;
  let since = 0;

  function clear(next = null) {
    cancelAnimationFrame(frame);
    frame = 0;
    result = next;
    for (const name of Object.keys(mounted)) mounted[name].show(next?.[name] ?? null, next?.max_tokens, next?.parts_at);
    drawing.show(next && Object.fromEntries(["cached", "uncached"].map((name) => [name, points(next[name], next.prompt_tokens)])));
    verdict.dataset.state = next ? "running" : "empty";
    for (const [name, place] of Object.entries(places)) setText(place, before[name]);
    places.times.dataset.value = places.same.dataset.value = "";
    table.hidden = true;
  }

  function at(now) {
    for (const [name, lane] of Object.entries(mounted)) drawing.extend(name, lane.at(now));
  }

  function step(moment) {
    const now = (moment - since) / 1000;
    at(now);
    if (now >= longest()) finish();
    else frame = requestAnimationFrame(step);
  }

  const longest = () => Math.max(mounted.cached.total_s, mounted.uncached.total_s);

  function finish() {
    cancelAnimationFrame(frame);
    frame = 0;
    at(longest() + 1);
    pronounce(result);
    fillTable(table, result);
    ended(result);
  }

  function pronounce({ speedup, same, parts_at: partsAt, cached, uncached }) {
    const isFaster = speedup >= 1.05;
    verdict.dataset.state = "done";
    setText(places.times, say("race.times", { times: number(speedup, digitsOf(speedup)) }));
    places.times.dataset.value = String(speedup);
    setText(places.same, same ? say(isFaster ? "race.same" : "race.same_slow") : say("race.parts", { at: count(partsAt + 1) }));
    places.same.dataset.value = String(same);
    setText(places.compared, say("race.compared", { few: count(cached.positions.at(-1)), many: count(uncached.positions.at(-1)) }));
  }

  function play() {
    clear(result);
    started();
    since = performance.now();
    frame = requestAnimationFrame(step);
  }

  return {
    clear,
    /** What was measured: run it, or show its end where it was seen before or less motion is wanted. */
    show(next, { seen = false } = {}) {
      clear(next);
      if (seen || stillness.matches) finish();
      else play();
    },
    measured(name, ...how) {
      mounted[name].measured(...how);
      drawing.wait();
    },
    play: () => { if (result) play(); },
    skip: () => { if (frame) finish(); },
    get result() { return result; },
    get isRunning() { return frame !== 0; },
  };
}

function fillTable(table, { cached, uncached, prompt_tokens: prompt }) {
  const rows = slot(table, "rows");
  rows.replaceChildren();
  for (let index = 0; index < Math.max(cached.seconds.length, uncached.seconds.length); index++) {
    const row = document.createElement("tr");
    const cells = [cached, uncached].flatMap(({ seconds, positions }) => index < seconds.length
      ? [number(seconds[index] * 1000, 1), count(positions[index])] : ["", ""]);
    row.append(cell("th", count(index + 1)), ...[count(prompt + index), ...cells].map((text) => cell("td", text)));
    rows.append(row);
  }
  table.hidden = false;
}

function cell(name, text) {
  const element = document.createElement(name);
  if (name === "th") element.scope = "row";
  element.textContent = text;
  return element;
}
