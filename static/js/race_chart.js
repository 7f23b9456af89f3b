// The chart of a race: milliseconds a token against the tokens before it, one line a lane, drawn as the lanes run.
// Drawn in pixels, so that its letters keep their size on any screen.

import { setText } from "./dom.js";
import { count, number } from "./format.js";
import { ceiling, ticks } from "./race_figures.js";
import { say } from "./words.js";

const NS = "http://www.w3.org/2000/svg";
const ROOM = { top: 14, right: 20, bottom: 30 };
const LETTER = 7.5; // about as wide as a digit of the axis

function make(name, attributes, text) {
  const element = document.createElementNS(NS, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  if (text !== undefined) element.textContent = text;
  return element;
}

export const milliseconds = (ms) => say("race.ms", { ms: number(ms, ms < 10 ? 1 : 0) });

/** `hint` stands in an empty chart, and says what will be drawn; `off` tells how many tokens took longer than is drawn. */
export function mountChart(svg, hint, off) {
  let lanes = null; // name -> points
  let shown = { cached: 0, uncached: 0 };
  let marks = {};
  let scale = null;

  function draw() {
    const { width, height } = svg.getBoundingClientRect();
    svg.replaceChildren();
    if (!lanes || width === 0) return;
    svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    const all = [...lanes.cached, ...lanes.uncached];
    const lines = ticks(ceiling(all.map(([, ms]) => ms)));
    const higher = all.filter(([, ms]) => ms > lines.at(-1)).length;
    const [least, most] = [all[0][0], Math.max(...all.map(([x]) => x))];
    const labels = lines.map((ms) => number(ms, Number.isInteger(ms) ? 0 : 1));
    const left = 12 + LETTER * Math.max(...labels.map((label) => label.length));
    const bottom = height - ROOM.bottom;
    scale = {
      x: (tokens) => left + ((tokens - least) / Math.max(1, most - least)) * (width - left - ROOM.right),
      y: (ms) => bottom - (Math.min(ms, lines.at(-1)) / lines.at(-1)) * (bottom - ROOM.top),
    };
    lines.forEach((ms, index) => {
      const y = Math.round(scale.y(ms)) + 0.5;
      svg.append(make("line", { class: "chart__line", x1: left, x2: width - ROOM.right, y1: y, y2: y }));
      svg.append(make("text", { class: "chart__label", x: left - 10, y: y + 4, "text-anchor": "end" }, labels[index]));
    });
    svg.append(make("text", { class: "chart__label", x: left, y: height - 8 }, say("race.x_first", { tokens: count(least) })));
    svg.append(make("text", { class: "chart__label", x: width - ROOM.right, y: height - 8, "text-anchor": "end" }, count(most)));
    setText(off, higher ? say("race.off_chart", { count: count(higher) }) : "");
    marks = Object.fromEntries(["uncached", "cached"].map((name) => [name, drawLane(name)]));
    extend("cached", shown.cached);
    extend("uncached", shown.uncached);
  }

  function drawLane(name) {
    const line = make("polyline", { class: `chart__lane chart__lane--${name}` });
    const dot = make("circle", { class: `chart__dot chart__dot--${name}`, r: 4.5 });
    const value = make("text", { class: `chart__value chart__value--${name}`, "text-anchor": "end" });
    svg.append(line, dot, value);
    return { line, dot, value };
  }

  /** Draw the first `upTo` tokens of a lane. */
  function extend(name, upTo) {
    shown[name] = upTo;
    const mark = marks[name];
    if (!mark) return;
    const part = lanes[name].slice(0, upTo);
    mark.line.setAttribute("points", part.map(([x, ms]) => `${scale.x(x).toFixed(1)},${scale.y(ms).toFixed(1)}`).join(" "));
    for (const each of [mark.dot, mark.value]) each.setAttribute("visibility", upTo ? "visible" : "hidden");
    if (!upTo) return;
    const [x, y] = [scale.x(part.at(-1)[0]), scale.y(part.at(-1)[1])];
    mark.dot.setAttribute("cx", x);
    mark.dot.setAttribute("cy", y);
    mark.value.textContent = upTo === lanes[name].length ? milliseconds(part.at(-1)[1]) : "";
    mark.value.setAttribute("x", x + 4);
    // of two lines that end side by side, the lower one's figure stands under it
    const other = lanes[name === "cached" ? "uncached" : "cached"].at(-1)[1];
    const isLower = name === "cached" ? part.at(-1)[1] <= other : part.at(-1)[1] < other;
    const isBelow = isLower && y - scale.y(other) < 22 && y < scale.y(0) - 20;
    mark.value.setAttribute("y", isBelow ? y + 20 : Math.max(y - 10, 12));
  }

  /** What the chart is to those who do not see it; and, of an empty one, what stands in its place. */
  function tell(text) {
    if (svg.getAttribute("aria-label") !== text) svg.setAttribute("aria-label", text);
    if (!lanes) setText(hint, text);
  }

  new ResizeObserver(draw).observe(svg);
  return {
    /** The lanes are measured: nothing is drawn yet, since every line would move as the highest point rises. */
    wait: () => tell(say("race.chart_measuring")),
    /** Lanes to be drawn, none of them yet; null for an empty chart. */
    show(next) {
      lanes = next;
      shown = { cached: 0, uncached: 0 };
      marks = {};
      hint.hidden = next !== null;
      setText(off, "");
      tell(next ? describe(next) : say("race.chart_empty"));
      draw();
    },
    extend,
  };
}

function describe({ cached, uncached }) {
  const at = (lane, index) => milliseconds(lane.at(index)[1]);
  return say("race.chart_says", { cached_first: at(cached, 0), cached_last: at(cached, -1),
    uncached_first: at(uncached, 0), uncached_last: at(uncached, -1) });
}
