// The race page: asks for a race over the socket, tells how its measurement goes, then lets the show run.
// The server measures whatever happens to the line; after a break the page asks where it is.

import { newId } from "./channel.js";
import { connect } from "./connection.js";
import { pageJson, setText, slot } from "./dom.js";
import { bytes, count, number } from "./format.js";
import { digitsOf, estimate } from "./race_figures.js";
import { about, mountRaceForm } from "./race_form.js";
import { saveNumbers, savePicture } from "./race_files.js";
import { mountShow } from "./race_show.js";
import { awaitModel } from "./readiness.js";
import { tab } from "./storage.js";
import { mountThemeSwitch } from "./theme_switch.js";
import { say, together } from "./words.js";

const MEASURING = ["begun", "widening", "warming", "cached", "uncached"];
const LANES = ["cached", "uncached"]; // in the order in which they are measured
const NOTHING_YET = { done: 0, text: "", seconds: 0, positions: 0 };
const page = pageJson("page-data");
const { root, socket } = document.body.dataset;
const find = (id) => document.querySelector(`[data-testid=${id}]`);
const narrator = document.getElementById("narrator");
const [says, counts, bar] = ["says", "count", "bar"].map((name) => slot(narrator, name));
const [start, stop] = [find("race-start"), find("race-stop")];
const announcer = document.getElementById("announcer");

let pace = page.pace;
let wish = null;       // a race that was asked for and has had no answer
let race = null;       // the id of the one that is measured, or was
let isMeasuring = false;
let isStopping = false;
let isOpen = false;
let isReady = page.ready;
let took = null;       // how long measuring was thought to take, for the bar
let idle = "";         // what is said while nothing happens

mountThemeSwitch(document.getElementById("theme"));

const show = mountShow({
  lanes: { cached: find("race-cached"), uncached: find("race-uncached") },
  chart: find("race-chart"),
  hint: document.querySelector("[data-slot=hint]"),
  off: document.querySelector("[data-slot=off]"),
  verdict: find("race-verdict"),
  table: find("race-table"),
  started: () => narrate("showing", say("race.showing")),
  ended(result) {
    narrate("done", how(result));
    setText(announcer, say("race.says_end", { times: number(result.speedup, digitsOf(result.speedup)) }));
  },
});

const form = mountRaceForm({
  form: document.getElementById("race-form"),
  root,
  limits: page.limits,
  pace: () => pace,
  tells(text, isEdited) {
    idle = text;
    const isFree = isReady && !isMeasuring && !show.isRunning;
    if (isFree && (isEdited || narrator.dataset.state === "idle")) narrate("idle", text);
  },
  started: begin,
});

const connection = connect(socket, {
  opened() {
    isOpen = true;
    if (wish) connection.send(wish);
    else if (race) connection.send({ type: "race_open", race });
    tellStop();
  },
  closed() {
    isOpen = false;
    if (isMeasuring) narrate("measuring", say(wish ? "race.offline" : "race.reconnecting"));
  },
  received,
});

// --- doing

function begin(asked) {
  if (isMeasuring || !isReady) return;
  show.clear();
  setText(announcer, "");
  wish = { type: "race", ...asked, request: newId() };
  race = null;
  isMeasuring = true;
  isStopping = false;
  took = null;
  tab.set("race", null);
  narrate("measuring", say("race.begun"));
  if (!connection.send(wish)) narrate("measuring", say("race.offline"));
}

stop.addEventListener("click", () => {
  isStopping = true;
  narrate("measuring", say("race.stopping"));
  if (wish && !isOpen) finishMeasuring("stopped", say("race.stopped")); // the server never heard of it
  else tellStop();
});

/** Once the server has told which race it is, and again after a break. */
function tellStop() {
  if (isStopping && race) connection.send({ type: "race_stop", race });
}

narrator.addEventListener("click", (event) => {
  const action = event.target.closest("[data-action]")?.dataset.action;
  if (action === "skip") show.skip();
  else if (action === "replay") show.play();
  else if (action === "png") savePicture(show.result, how(show.result));
  else if (action === "csv") saveNumbers(show.result);
});

// --- hearing

function received(event) {
  if (event.type === "error" && event.request && event.request === wish?.request) finishMeasuring("refused", event.text);
  if (event.type !== "race") return;
  if (wish && event.request === wish.request) {
    race = event.race;
    wish = null;
    tab.set("race", race);
    tellStop();
  }
  if (event.race !== race) return;
  if (MEASURING.includes(event.state)) measuring(event);
  else if (event.state === "done") done(event.result);
  else if (event.state === "stopped") finishMeasuring("stopped", say("race.stopped"));
  else if (event.state === "failed") finishMeasuring("refused", say("race.failed", { text: event.text ?? "" }));
  else if (event.state === "gone") gone();
}

function measuring(event) {
  isMeasuring = true;
  if (isStopping) return;
  const left = event.seconds_left ?? null;
  if (left !== null && took === null) took = Math.max(left, 0.1);
  narrate("measuring", say(event.waiting ? "race.waiting" : `race.${event.state}`));
  const lanes = { cached: event.cached ?? NOTHING_YET, uncached: event.uncached ?? NOTHING_YET };
  const totals = { cached: event.max_tokens, uncached: lanes.cached.done }; // the second goes as far as the first came
  const now = LANES.indexOf(event.state); // -1: none yet
  LANES.forEach((name, index) => {
    const state = index === now ? "measuring" : index < now ? "measured" : "waiting";
    show.measured(name, state, lanes[name], totals[name]);
  });
  if (now >= 0) {
    const [done, total] = [lanes[event.state].done, totals[event.state]].map(count);
    setText(counts, say(left === null ? "race.count" : "race.count_left", { done, total, seconds: left === null ? "" : about(left) }));
  }
  bar.value = left === null ? 0 : Math.min(1, Math.max(bar.value, 1 - left / took));
}

function done(result) {
  if (show.result?.race === race) return; // heard once more, after a break
  pace = result.pace ?? pace;
  const seen = !isMeasuring; // the page was left and is there again
  finishMeasuring("done", "");
  form.refresh();
  show.show({ ...result, race }, { seen });
}

function gone() {
  if (isMeasuring) finishMeasuring("refused", say("race.gone"));
  if (!show.result) race = null;
  tab.set("race", null);
}

function finishMeasuring(state, text) {
  if (isMeasuring) show.clear();
  isMeasuring = isStopping = false;
  wish = null;
  narrate(state, text);
}

// --- telling

/** One line tells what goes on, with what can be done about it beside. */
function narrate(state, text) {
  narrator.dataset.state = state;
  setText(says, text);
  setText(counts, "");
  const isOver = show.result !== null && !isMeasuring && state !== "showing";
  for (const button of narrator.querySelectorAll("[data-action]")) {
    button.hidden = button.dataset.action === "skip" ? state !== "showing" : !isOver;
  }
  bar.hidden = state !== "measuring";
  if (bar.hidden) bar.value = 0;
  const hadFocus = document.activeElement === start || document.activeElement === stop;
  start.hidden = isMeasuring;
  stop.hidden = !isMeasuring;
  start.disabled = !isReady;
  if (hadFocus) (isMeasuring ? stop : start).focus();
}

/** How the result was come by. */
function how(result) {
  const figures = { dtype: result.dtype, running: result.running_dtype, needed: bytes(result.needed_bytes), free: bytes(result.free_bytes) };
  const key = result.needed_bytes ? "race.how_no_room" : result.dtype === result.running_dtype ? "race.how" : "race.how_widened";
  const disturbed = result.cached.disturbed + result.uncached.disturbed;
  const total = result.cached.tokens.length + result.uncached.tokens.length;
  return together(say(key, figures), disturbed ? say("race.disturbed", { count: count(disturbed), total: count(total) }) : "");
}

race = tab.get("race");
narrate("idle", isReady ? idle : say("race.loading"));
if (!isReady) {
  awaitModel(root, {
    ready() {
      isReady = true;
      narrate("idle", idle);
      form.refresh();
    },
    failed: (text) => narrate("refused", text),
  });
}
