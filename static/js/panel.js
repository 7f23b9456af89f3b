// The numbers of what the model remembers. Takes `cache` events and the stats of a reply, shows the newest once
// a frame. Computes only what the contract defines from them.

import { mountCopies } from "./copies.js";
import { bytesRead, mountCost, windowsOf } from "./cost.js";
import { fill, setText, slot } from "./dom.js";
import { bytes, count, rate, seconds } from "./format.js";
import { mountHappened } from "./happened.js";
import { mountMachine } from "./machine.js";
import { say } from "./words.js";

const SPEED_EVERY_MS = 250; // a number that changes faster than this cannot be read
const SPEED_AFTER_MS = 400;

/** `usesCache()`: whether the reply that begins now does; its end says so for certain. `besideNow`: ids of answers
    that are written beside another, which is the one that the numbers speak of. */
export function mountPanel(element, line, usesCache, besideNow) {
  let beside = new Set(besideNow);
  let cache = null;
  let isStale = false;
  let isReference = element.hasAttribute("data-reference"); // the last reply was made without the cache
  let hasEnded = element.hasAttribute("data-ended"); // the last reply: until then a token is computed at the next step
  let speed = null; // while writing: {from, to, tokens, shown}
  const copies = mountCopies(element.querySelector("#copies"));
  const cost = mountCost(element.querySelector("#cost"));
  const happened = mountHappened(element.querySelector("#happened"));
  const machine = mountMachine(element.querySelector("#machine"));

  // found once: to look for them in each frame, among thousands of cells, could be felt
  const places = new Map();
  for (const place of element.querySelectorAll("[data-slot]")) {
    places.set(place.dataset.slot, [...(places.get(place.dataset.slot) ?? []), place]);
  }
  const put = (name, text) => { for (const place of places.get(name) ?? []) setText(place, text); };
  const ways = element.querySelectorAll("[data-way]");
  const bar = slot(element, "bar");
  const room = slot(element, "room");

  const number = (name, value, text) => {
    const [place] = places.get(name);
    setText(place, text);
    place.toggleAttribute("data-long", text.length > 5); // a tile is narrow
    place.dataset.value = value;
    if (place.value !== undefined) place.value = value;
  };

  function paint() {
    if (!isStale || !cache) return;
    isStale = false;
    const { conversation: here = {}, last_reply: reply = {}, pool = {}, model = {}, process = {} } = cache;
    const tokens = here.tokens ?? 0;
    const limit = here.limit ?? 0;
    number("tokens", tokens, count(tokens));
    number("bytes_used", here.bytes_used ?? 0, bytes(here.bytes_used));
    put("bytes_reserved", bytes(limit * (model.bytes_per_token ?? 0)));
    put("of", say("panel.of", { tokens: count(tokens), limit: count(limit) }));
    for (const origin of ["reused", "read", "written", "forced"]) {
      number(origin, reply[origin] ?? 0, count(reply[origin]));
    }
    const made = (reply.written ?? 0) + (reply.forced ?? 0);
    // the last token made is in no cache yet: it has not been computed with
    const computed = Math.max(0, (reply.read ?? 0) + made - (made ? 1 : 0));
    const without = reply.without_cache ?? 0;
    put("computed", count(computed));
    const all = (reply.reused ?? 0) + (reply.read ?? 0) + made;
    const isAllButLast = tokens > 0 && all === tokens + 1 && hasEnded && !isReference;
    put("all_but_last", isAllButLast ? say("panel.all_but_last", { all: count(all) }) : "");
    put("without_cache", count(without));
    put("times", computed && without > computed ? say("panel.times", { times: rate(without / computed) }) : "–");
    put("windows", windowsOf(model));
    put("bytes_read", bytes(bytesRead(model, tokens, here.bytes_used ?? 0)));
    put("weights", bytes(model.weight_bytes));
    put("resident", bytes(process.resident_bytes));
    put("then", thenOf(tokens, reply));
    paintRoom(cache.room);
    paintBar(tokens, limit, reply, made);
    machine.show(pool, model, process);
    copies.show(cache.copies, model.bytes_per_token);
    cost.show(model, tokens, here.bytes_used ?? 0);
    fill(line, "line", say("panel.line", { tokens: count(tokens), bytes: bytes(here.bytes_used) }));
    line.querySelector(".panel-line__dot").classList.toggle("is-warm", tokens > 0);
  }

  /** That the figures of a reply are not of now, where nothing is remembered of it any more. */
  function thenOf(tokens, reply) {
    if (tokens || isReference || !(reply.read || reply.written)) return "";
    return say(reply.from_file ? "panel.then_file" : "panel.then");
  }

  /** What will happen when the context is full, and how soon. */
  function paintRoom(left) {
    const key = !left ? "much" : left.questions > 1 ? "some" : left.questions === 1 ? "one" : "none";
    setText(room, say(`room.${key}`, { questions: count(left?.questions) }));
    room.toggleAttribute("data-little", Boolean(left));
  }

  function paintBar(tokens, limit, reply, made) {
    const reused = !isReference && (made || reply.read) ? Math.min(tokens, reply.reused ?? 0) : tokens;
    const wanted = { reused, read: reply.read ?? 0, written: reply.written ?? 0, forced: reply.forced ?? 0 };
    const shown = {};
    let x = 0;
    for (const part of bar.querySelectorAll(".context-bar__part")) {
      const width = Math.min(wanted[part.dataset.origin], tokens - x);
      shown[part.dataset.origin] = count(width);
      part.setAttribute("x", limit ? `${(100 * x) / limit}%` : "0%");
      part.setAttribute("width", limit ? `${(100 * width) / limit}%` : "0%");
      x += width;
    }
    bar.dataset.value = tokens;
    bar.dataset.max = limit;
    bar.setAttribute("aria-label", say("panel.bar", { tokens: count(tokens), limit: count(limit), ...shown }));
  }

  function showStats(stats) {
    if (!stats) return;
    const { time_to_first_token_s: first, read_tokens_per_s: reads, write_tokens_per_s: writes } = stats;
    put("first", first === null || first === undefined ? "–" : seconds(first));
    put("reads", reads ? rate(reads) : "–");
    put("writes", writes ? rate(writes) : "–");
  }

  function setReference(is) {
    isReference = is;
    isStale = true;
    for (const way of ways) way.hidden = (way.dataset.way === "reference") !== is;
  }

  function countSpeed(event) {
    const now = performance.now();
    if (!speed) {
      speed = { from: now, tokens: 0, shown: 0 }; // what came before the clock began does not count
      return;
    }
    speed.tokens += event.tokens?.length ?? 0;
    if (now - speed.from < SPEED_AFTER_MS || now - speed.shown < SPEED_EVERY_MS) return;
    speed.shown = now;
    put("writes", rate((1000 * speed.tokens) / (now - speed.from)));
  }

  const handlers = {
    cache(event) {
      cache = event.cache;
      isStale = true;
    },
    message(event) {
      if (event.role !== "assistant" || event.repeat) return;
      if (event.answer > 0) {
        beside.add(event.id);
        return;
      }
      speed = null;
      hasEnded = false;
      setReference(!usesCache());
      for (const name of ["first", "reads", "writes"]) put(name, "–");
    },
    // one that is let go slowly says nothing of speed
    token(event) { if (!beside.has(event.message) && !event.isStep) countSpeed(event); },
    event: happened.add,
    picked(event) {
      beside = new Set(event.others);
      showStats(event.stats);
      if (cache) handlers.cache({ cache: { ...cache, copies: undefined } }); // the rest is told in a moment
    },
    done(event) {
      if (beside.has(event.message)) return;
      speed = null;
      hasEnded = isStale = true;
      if (event.stats) setReference(event.stats.use_cache === false);
      showStats(event.stats);
    },
    snapshot(event) {
      if (event.cache) handlers.cache({ cache: event.cache });
      happened.show(event.events ?? []);
      beside = new Set((event.messages ?? []).flatMap((message) => message.others ?? []).map(({ id }) => id));
      const last = event.messages?.findLast((message) => message.stats);
      hasEnded = event.messages?.at(-1)?.state !== "writing";
      setReference(last?.stats.use_cache === false);
      showStats(last?.stats);
    },
  };

  for (const details of element.querySelectorAll(".explain")) mountExplanation(details);

  return {
    receive(event) { handlers[event.type]?.(event); },
    paint,
    retell: happened.retell,
    /** Tokens of this chat that are remembered. */
    get tokens() { return cache?.conversation?.tokens ?? 0; },
    /** Shows a `cache` object that was fetched. */
    show(fetched) {
      handlers.cache({ cache: fetched });
      paint();
    },
  };
}

/** What a name means: closed by Escape, and by a click elsewhere. */
function mountExplanation(details) {
  document.addEventListener("click", (event) => { if (!details.contains(event.target)) details.open = false; });
  details.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !details.open) return;
    event.stopPropagation(); // the sheet around it stays
    details.open = false;
    details.querySelector("summary").focus();
  });
}
