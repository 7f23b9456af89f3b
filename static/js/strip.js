// Every token in memory, one cell each, in the panel; the card of the one that is pointed at; and the trace. Takes the
// server's events, and fetches the whole where events do not tell it.

import { mountCells } from "./cells.js";
import { setText, slot } from "./dom.js";
import { count } from "./format.js";
import { mountMarking } from "./marking.js";
import { mountCard, sentenceOf } from "./token_card.js";
import { newTokenList, placesOf } from "./token_list.js";
import { mountTrace } from "./trace.js";
import { say } from "./words.js";

const SHOWN_WAITING = 8;      // tokens that are not in the cache: few are shown, a whole forgotten chat is told in words
const FETCH_EVERY_MS = 1000;

/** `conversation()`: the id of the chat, or null. `cache`: the `cache` object that the page came with. */
export function mountStrip({ section, dialog, messages, root, conversation, cache }) {
  const tokens = newTokenList(conversation() !== null);
  const box = slot(section, "cells");
  const cells = mountCells(box);
  const card = mountCard(section.querySelector(".token-card"));
  const trace = mountTrace(dialog, section.querySelector("#open-trace"), tokens, () => bytesPerToken);
  const marking = mountMarking(messages, mark);
  let bytesPerToken = cache?.model?.bytes_per_token ?? 0;
  let hovered = null;   // the cell under the pointer
  let pinned = null;    // the cell that was tapped or moved to by key
  let markedAs = null;  // [message, call] that is pointed at in the conversation
  let missed = null;    // events that came while the whole is fetched
  let asOf = -1;        // the whole told of events up to this one
  let isRetold = false; // what the first whole has in it is told once more
  let fetchedAt = -Infinity;
  let timer = 0;

  // --- what is remembered

  const shownCount = () => {
    const waiting = tokens.list.length - tokens.cached;
    return tokens.cached + (tokens.cached && waiting <= SHOWN_WAITING ? waiting : 0);
  };

  function paint() {
    if (tokens.isLost && !missed && !timer) timer = setTimeout(fetchWhole, fetchedAt + FETCH_EVERY_MS - performance.now());
    const from = tokens.taken();
    if (from < Infinity) {
      trace.changed(from);
      paintAround();
    }
    if (cells.paint(tokens.list, shownCount(), tokens.cached, from)) requestAnimationFrame(paint);
    else if (from < Infinity) pointAgain();
  }

  function paintAround() {
    setText(slot(section, "none"), saidOfTheRest());
    box.setAttribute("aria-valuemax", Math.max(0, shownCount() - 1));
    if (pinned === null) box.setAttribute("aria-valuetext", say("strip.said", { tokens: count(tokens.cached) }));
    trace.opener.disabled = !tokens.list.length;
  }

  /** What there is to say of tokens that have no cell. */
  function saidOfTheRest() {
    const left = tokens.list.length - shownCount();
    if (tokens.cached) return left ? say("strip.rest", { tokens: count(left) }) : "";
    return left ? say("strip.nothing", { tokens: count(left) }) : say("strip.empty");
  }

  async function fetchWhole() {
    clearTimeout(timer);
    timer = 0;
    const id = conversation();
    if (!id || missed) return;
    missed = [];
    fetchedAt = performance.now();
    try {
      const answer = await fetch(`${root}api/strip?conversation=${encodeURIComponent(id)}`);
      if (!answer.ok) return;
      const whole = await answer.json();
      asOf = isRetold ? -1 : whole.seq;
      isRetold = false;
      tokens.replace(whole);
      for (const event of missed) take(event);
    } catch { /* without a line there is none to be had; the next event asks again */ } finally {
      missed = null;
      paint();
    }
  }

  function take(event) {
    if (event.seq <= asOf) return; // the whole that was fetched has it
    if (event.type === "reading" && event.tokens && pinned !== null && pinned >= event.reused) pin(null);
    tokens.receive(event);
  }

  // --- pointing

  function point(at, isToBeSeen) {
    cells.point(at, isToBeSeen);
    const token = at === null ? null : tokens.list[at] ?? null;
    const state = tokens.stateOf(at);
    card.show(token, state, bytesPerToken);
    marking.show(token);
    if (!token) return;
    if (document.activeElement === box) {
      box.setAttribute("aria-valuenow", at);
      box.setAttribute("aria-valuetext", sentenceOf(token, state, bytesPerToken));
    }
    placeCard();
  }

  const pointAgain = () => { if ((hovered ?? pinned) !== null) point(hovered ?? pinned, false); };

  /** Under the strip, or over it where there is no room. */
  function placeCard() {
    const room = (section.closest(".panel") ?? document.documentElement).getBoundingClientRect();
    const isTooLow = box.getBoundingClientRect().bottom + card.card.offsetHeight > room.bottom;
    const head = section.closest(".panel")?.querySelector(".panel__head")?.getBoundingClientRect().bottom ?? 0; // stays, on a phone
    const hasRoomAbove = box.getBoundingClientRect().top - card.card.offsetHeight > Math.max(room.top, head);
    card.card.dataset.side = isTooLow && hasRoomAbove ? "above" : "below";
    card.card.style.setProperty("--strip-top", `${box.offsetTop}px`);
    card.card.style.setProperty("--strip-bottom", `${box.offsetTop + box.offsetHeight}px`);
  }

  function hover(at) {
    if (at === hovered) return;
    hovered = at;
    point(at ?? pinned, false);
  }

  function pin(at, isToBeSeen = false) {
    pinned = at;
    point(at ?? hovered, isToBeSeen);
  }

  function mark(message, call) {
    markedAs = message === null ? null : [message, call];
    cells.mark(markedAs && placesOf(tokens.list, ...markedAs));
  }

  box.addEventListener("pointermove", (event) => {
    if (event.pointerType === "mouse") hover(cells.at(event.clientX, event.clientY));
  });
  section.addEventListener("pointerleave", () => hover(null));
  box.addEventListener("click", (event) => {
    const at = cells.at(event.clientX, event.clientY);
    pin(at === pinned ? null : at);
  });
  document.addEventListener("click", (event) => {
    if (pinned !== null && !section.contains(event.target) && !dialog.contains(event.target)) pin(null);
  });

  // --- by keyboard: one stop for Tab, and from cell to cell by arrow

  const steps = {
    ArrowLeft: (at) => at - 1,
    ArrowRight: (at) => at + 1,
    ArrowUp: (at) => at - cells.columns,
    ArrowDown: (at) => at + cells.columns,
    PageUp: (at) => at - 5 * cells.columns,
    PageDown: (at) => at + 5 * cells.columns,
    Home: () => 0,
    End: () => cells.count - 1,
  };

  box.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && pinned !== null) {
      event.stopPropagation(); // the sheet around it stays
      pin(null);
    }
    const step = steps[event.key];
    if (!step || event.altKey || event.ctrlKey || event.metaKey || !cells.count) return;
    event.preventDefault();
    const wanted = pinned === null ? (event.key === "Home" ? 0 : cells.count - 1) : step(pinned);
    hovered = null;
    pin(wanted < 0 || wanted >= cells.count ? pinned ?? 0 : wanted, true);
  });
  box.addEventListener("focus", () => {
    if (box.matches(":focus-visible") && pinned === null && cells.count) pin(cells.count - 1, true);
  });
  box.addEventListener("blur", () => { if (!document.hidden) pin(null); });

  cells.reserve(cache?.conversation?.tokens ?? 0); // nothing moves when they are there
  if (conversation()) fetchWhole();
  else paintAround();

  return {
    /** The last turn is told once more, from its beginning. */
    retell() { isRetold = true; },
    receive(event) {
      if (event.type === "cache") bytesPerToken = event.cache.model?.bytes_per_token ?? bytesPerToken;
      if (missed) missed.push(event);
      else take(event);
    },
    paint,
  };
}
