// The replay page: the parts of the chat page, told by a clock and a script in place of the server. It stands at the first
// question until somebody starts it.

import { fill, pageJson, setText, slot } from "./dom.js";
import { mountDrawer } from "./drawer.js";
import { number } from "./format.js";
import { mountPanel } from "./panel.js";
import { makeClock } from "./replay_clock.js";
import { expand } from "./replay_script.js";
import { mountScroll } from "./scroll.js";
import { mountStatus } from "./status.js";
import { mountStrip } from "./strip.js";
import { mountTranscript } from "./transcript.js";
import { say } from "./words.js";

const LONGEST_FRAME_MS = 250; // a tab that was hidden goes on where it was

const element = (id) => document.getElementById(id);
const player = element("player");
const start = element("start");
const page = pageJson("page-data");
const entries = expand(page.script, page.tokens);
let usesCache = true;
let isPlaying = false;
let shownAt = 0;

const panel = mountPanel(element("panel"), element("panel-line"), () => usesCache, []);
const status = mountStatus(element("state"), element("announcer"), {
  state: "idle",
  showWait: (text, fraction) => transcript.wait(text, fraction),
});
const scroll = mountScroll(element("transcript"), element("to-newest"));
const ignored = () => {};
const acts = new Proxy({}, { get: () => ignored }); // nothing can be asked of what was
const transcript = mountTranscript(element("messages"), null, scroll, acts);
const strip = mountStrip({
  section: element("strip"), dialog: element("trace"), messages: element("messages"), conversation: () => null, cache: emptyCache(),
});
const parts = [transcript, panel, strip, status];
const clock = makeClock(entries, { tell, begin });

function begin() {
  const nothing = { type: "snapshot", state: "idle", messages: [], events: [], cache: emptyCache() };
  for (const part of parts) part.receive(nothing);
  strip.receive({ type: "cells", tokens: [] });
}

/** Nothing is remembered yet, of a memory as large as it was then. */
function emptyCache() {
  const first = entries.flatMap((entry) => entry.events).find((event) => event.type === "cache")?.cache;
  const nothing = { reused: 0, read: 0, written: 0, forced: 0, without_cache: 0 };
  return { conversation: { tokens: 0, bytes_used: 0, limit: first?.conversation.limit ?? 0 }, last_reply: nothing, model: first?.model ?? {} };
}

function tell({ events }) {
  for (const event of events) {
    if (event.type === "message" && event.role === "assistant") status.replyBegan();
    for (const part of parts) part.receive(event);
    if (event.type === "done") {
      usesCache = event.stats?.use_cache !== false;
      status.replyEnded(event);
    }
  }
}

function paint() {
  for (const part of parts) part.paint();
  start.hidden = isPlaying || clock.at > 0;
  const isOver = clock.isOver;
  fill(player, "play", say(isPlaying ? "replay.pause" : isOver ? "replay.again" : "replay.play"));
  fill(player, "time", say("replay.time", { at: number(clock.at / 1000, 1), all: number(clock.end / 1000, 1) }));
  const slider = slot(player, "position");
  slider.max = clock.end;
  slider.value = Math.round(clock.at);
  slider.setAttribute("aria-valuetext", slot(player, "time").textContent);
  if (isOver && entries.length) setText(element("state"), say("replay.ended"));
  player.querySelector("[data-action=step]").disabled = isOver;
}

function frame(now) {
  if (!isPlaying) return;
  const speed = Number(slot(player, "speed").value);
  clock.advance(Math.min(now - shownAt, LONGEST_FRAME_MS) * speed);
  shownAt = now;
  if (clock.isOver) isPlaying = false;
  paint();
  requestAnimationFrame(frame);
}

function play() {
  if (clock.isOver) clock.restart();
  isPlaying = true;
  shownAt = performance.now();
  paint();
  requestAnimationFrame(frame);
}

function pause() {
  isPlaying = false;
  paint();
}

element("play").addEventListener("click", () => (isPlaying ? pause() : play()));
start.querySelector("button").addEventListener("click", () => {
  play();
  element("play").focus(); // what was pressed is gone
});
player.querySelector("[data-action=step]").addEventListener("click", () => {
  clock.step();
  pause();
});
player.querySelector("[data-action=restart]").addEventListener("click", () => {
  clock.restart();
  pause();
});
slot(player, "position").addEventListener("input", (event) => {
  clock.seek(event.target.valueAsNumber);
  pause();
});
// a millisecond an arrow key would lead nowhere
const steps = { ArrowRight: clock.step, ArrowUp: clock.step, ArrowLeft: () => clock.back(), ArrowDown: () => clock.back() };
slot(player, "position").addEventListener("keydown", (event) => {
  if (!steps[event.key] || event.altKey || event.ctrlKey || event.metaKey) return;
  event.preventDefault();
  steps[event.key]();
  pause();
});
mountDrawer(element("panel"), "(width < 54rem)");
for (const button of document.querySelectorAll(".player button, #start button")) button.disabled = false;
clock.restart();
paint();
