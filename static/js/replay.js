// The replay page: the parts of the chat page, told by a clock and a script in place of the server.

import { fill, pageJson, setText, slot } from "./dom.js";
import { mountDrawer } from "./drawer.js";
import { number } from "./format.js";
import { mountPanel } from "./panel.js";
import { makeClock } from "./replay_clock.js";
import { expand } from "./replay_script.js";
import { mountScroll } from "./scroll.js";
import { mountStatus } from "./status.js";
import { mountTranscript } from "./transcript.js";
import { say } from "./words.js";

const LONGEST_FRAME_MS = 250; // a tab that was hidden goes on where it was

const element = (id) => document.getElementById(id);
const player = element("player");
const entries = expand(pageJson("page-data").script);
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
const clock = makeClock(entries, { tell, begin });

function begin() {
  for (const part of [transcript, panel, status]) part.receive({ type: "snapshot", state: "idle", messages: [], events: [], cache: emptyCache() });
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
    transcript.receive(event);
    panel.receive(event);
    status.receive(event);
    if (event.type === "done") {
      usesCache = event.stats?.use_cache !== false;
      status.replyEnded(event);
    }
  }
}

function paint() {
  transcript.paint();
  panel.paint();
  status.paint();
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
mountDrawer(element("panel"), "(width < 54rem)");
for (const button of player.querySelectorAll("button")) button.disabled = false;
begin();
paint();
