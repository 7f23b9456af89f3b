// The result to take along: a picture the size of a slide, drawn here, and the numbers as CSV.

import { count, number } from "./format.js";
import { ceiling, csv, digitsOf, moments, points, ticks } from "./race_figures.js";
import { say } from "./words.js";

const WIDTH = 1920;
const HEIGHT = 1080;
const EDGE = 110;

export function saveNumbers(result) {
  // with a mark of the encoding, without which spreadsheets take it for another
  save(new Blob(["\ufeff", csv(result, result.prompt_tokens)], { type: "text/csv;charset=utf-8" }), "glasschat-race.csv");
}

export function savePicture(result, how) {
  const canvas = document.createElement("canvas");
  canvas.width = WIDTH;
  canvas.height = HEIGHT;
  draw(canvas.getContext("2d"), result, how);
  canvas.toBlob((blob) => save(blob, "glasschat-race.png"), "image/png");
}

function save(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

/** The page's colours as they are now; a canvas knows nothing of custom properties. */
function palette(...names) {
  const probe = document.createElement("span");
  document.body.append(probe);
  const colours = Object.fromEntries(names.map((name) => {
    probe.style.setProperty("color", `var(--${name})`);
    return [name, getComputedStyle(probe).color];
  }));
  probe.remove();
  return colours;
}

function draw(pen, result, how) {
  const colour = palette("page", "ink", "muted", "line", "remembers", "again");
  const family = getComputedStyle(document.body).fontFamily;

  function write(text, x, y, size, { weight = 400, fill = "ink", align = "left", most, halo } = {}) {
    pen.font = `${weight} ${size}px ${family}`;
    pen.fillStyle = colour[fill];
    pen.textAlign = align;
    if (halo) {
      pen.strokeStyle = colour.page;
      pen.lineWidth = 10;
      pen.strokeText(text, x, y);
    }
    pen.fillText(most ? cut(pen, text, most) : text, x, y);
  }

  const right = WIDTH - EDGE;
  pen.fillStyle = colour.page;
  pen.fillRect(0, 0, WIDTH, HEIGHT);
  write(say("race.title"), EDGE, 150, 64, { weight: 700 });
  write(say("race.slide_question", { text: result.text.replace(/\s+/g, " ") }), EDGE, 212, 34, { fill: "muted", most: right - EDGE });

  write(say("race.remembering"), EDGE, 334, 40, { fill: "muted" });
  write(say("race.times", { times: number(result.speedup, digitsOf(result.speedup)) }), EDGE - 8, 530, 220, { weight: 750, fill: "remembers" });
  const sentence = result.same ? say(result.speedup >= 1.05 ? "race.same" : "race.same_slow")
    : say("race.parts", { at: count(result.parts_at + 1) });
  const below = wrap(pen, sentence, 560, `400 40px ${family}`);
  below.forEach((line, index) => write(line, EDGE, 604 + 52 * index, 40));

  let y = 772;
  for (const [name, title, fill] of [["cached", "race.remembers", "remembers"], ["uncached", "race.again", "again"]]) {
    const lane = result[name];
    pen.fillStyle = colour[fill];
    pen.fillRect(EDGE, y - 34, 8, 70);
    write(say(title), EDGE + 28, y - 4, 32, { weight: 650 });
    write(say("race.computed", { positions: count(lane.positions.at(-1)) }), EDGE + 28, y + 36, 28, { fill: "muted" });
    const total = moments(lane.seconds).at(-1);
    write(say("unit.seconds", { seconds: number(total, total < 10 ? 1 : 0) }), EDGE + 600, y + 16, 46, { weight: 700, fill, align: "right" });
    y += 96;
  }
  drawChart(pen, result, { left: 860, top: 320, right, bottom: 870 }, colour, write);
  write(say(result.temperature > 0 ? "race.slide_foot" : "race.slide_foot_greedy", { model: result.model,
    tokens: count(result.cached.tokens.length), dtype: result.dtype, seed: result.seed }), EDGE, HEIGHT - 54, 26, { fill: "muted" });
  write(`${say("app")} · ${how}`, EDGE, HEIGHT - 94, 26, { fill: "muted", most: right - EDGE });
}

function drawChart(pen, result, box, colour, write) {
  const lanes = { uncached: points(result.uncached, result.prompt_tokens), cached: points(result.cached, result.prompt_tokens) };
  const all = [...lanes.cached, ...lanes.uncached];
  const marks = ticks(ceiling(all.map(([, ms]) => ms)));
  const higher = all.filter(([, ms]) => ms > marks.at(-1)).length;
  const [least, most] = [all[0][0], Math.max(...all.map(([x]) => x))];
  const left = box.left + 90;
  const x = (tokens) => left + ((tokens - least) / Math.max(1, most - least)) * (box.right - left);
  const y = (ms) => box.bottom - (Math.min(ms, marks.at(-1)) / marks.at(-1)) * (box.bottom - box.top);
  write(say("race.chart"), box.left, box.top - 44, 30, { weight: 650 });
  for (const ms of marks) {
    pen.strokeStyle = colour.line;
    pen.lineWidth = 2;
    pen.beginPath();
    pen.moveTo(left, y(ms));
    pen.lineTo(box.right, y(ms));
    pen.stroke();
    write(number(ms, Number.isInteger(ms) ? 0 : 1), left - 20, y(ms) + 9, 26, { fill: "muted", align: "right" });
  }
  write(say("race.x_first", { tokens: count(least) }), left, box.bottom + 46, 26, { fill: "muted" });
  write(count(most), box.right, box.bottom + 46, 26, { fill: "muted", align: "right" });
  if (higher) write(say("race.off_chart", { count: count(higher) }), (left + box.right) / 2, box.bottom + 46, 26, { fill: "muted", align: "center" });
  const lasts = Object.fromEntries(Object.entries(lanes).map(([name, lane]) => [name, y(lane.at(-1)[1])]));
  for (const [name, fill, dash] of [["uncached", "again", [16, 10]], ["cached", "remembers", []]]) {
    pen.strokeStyle = colour[fill];
    pen.lineWidth = 7;
    pen.lineJoin = "round";
    pen.setLineDash(dash);
    pen.beginPath();
    for (const [tokens, ms] of lanes[name]) pen.lineTo(x(tokens), y(ms));
    pen.stroke();
    pen.setLineDash([]);
    const [, last] = lanes[name].at(-1);
    const isLower = name === "cached" ? lasts.cached >= lasts.uncached : lasts.uncached > lasts.cached; // on the paper
    const isBelow = isLower && Math.abs(lasts.cached - lasts.uncached) < 54 && lasts[name] < box.bottom - 44;
    const at = isBelow ? lasts[name] + 40 : Math.max(lasts[name] - 20, box.top - 8);
    write(say("race.ms", { ms: number(last, last < 10 ? 1 : 0) }), box.right, at, 28, { fill, weight: 650, align: "right", halo: true });
  }
}

function cut(pen, text, width) {
  if (pen.measureText(text).width <= width) return text;
  let end = text.length;
  while (end > 0 && pen.measureText(`${text.slice(0, end)}…”`).width > width) end -= 1 + (end >> 5);
  return `${text.slice(0, end).trimEnd()}…”`;
}

/** Lines no wider than `width`; broken between words, and between letters where a script has no spaces. */
function wrap(pen, text, width, font) {
  pen.font = font;
  const lines = [""];
  for (const piece of text.match(/[\u2e80-\uffef]|[^\s\u2e80-\uffef]+\s*|\s+/gu) ?? []) {
    if (lines.at(-1) && pen.measureText((lines.at(-1) + piece).trimEnd()).width > width) lines.push("");
    lines[lines.length - 1] += piece;
  }
  return lines.map((line) => line.trimEnd());
}
