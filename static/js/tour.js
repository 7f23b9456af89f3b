// The tour's card: it stands over the text box, or at the head of a page, where it covers nothing. It says what to do,
// outlines where, and sees by itself when it was done. Left at any time, it is taken up where it was left.

import { setText, slot } from "./dom.js";
import { awaitFigures, figuresOf } from "./reply_figures.js";
import { kept, tab } from "./storage.js";
import { makeTour, STEPS } from "./tour_steps.js";
import { knows, say } from "./words.js";

// Where a step happens: the first of these that can be seen. The panel and the list of chats may be behind a button.
const PLACES = {
  ask: ["#composer-form"],
  see: ["#panel .tiles", "#panel-line"],
  again: ["#panel .tile[data-origin=reused]", "#panel-line"],
  calculator: ["#composer-form"],
  edit: ["#messages .message[data-role=user]"],
  cache: [".switch:has(#use-cache)", "#panel-line"],
  race: ["[data-testid=race-start]"],
  forget: ["#open-forget", "[data-open=sidebar]"],
};

/** `page`: what the page can do and knows. `name`; and of the chat alone: `ask(text)`, `edit(text)`, which opens the first
    question with this text in its place, `usesCache()`, `forget()`, `focus()`, `hasCalculator`, `last` (id of the last
    message, or null), `answered` ({id, stats, tokens} of the last reply where it is finished, or null: `tokens` are
    remembered after it).
    `openers`: buttons that start the tour or take it up. */
export function mountTour({ card, openers, page }) {
  const tour = makeTour(kept.get("tour"), page.last ?? null, tab.get("tour_awaited"));
  const isChat = page.name === "chat";
  const button = (name) => card.querySelector(`[data-action=${name}]`);
  let pointed = null;

  function changed() {
    kept.set("tour", tour.saved);
    if (isChat) tab.set("tour_awaited", tour.awaited);
    paint();
  }

  function paint() {
    card.hidden = !tour.isOpen;
    point();
    if (!tour.isOpen) return;
    const { name, figures } = tour;
    card.toggleAttribute("data-done", figures !== null);
    setText(slot(card, "step"), name === "end" ? "" : say("tour.step", { step: tour.at + 1, steps: STEPS.length }));
    setText(slot(card, "title"), say(`tour.${name}.title`));
    setText(slot(card, "text"), textOf(name, figures));
    const suggestion = suggestionFor(name, figures);
    button("suggest").hidden = !suggestion;
    setText(button("suggest"), suggestion && say(name === "edit" ? "tour.edit.go" : "tour.suggest", { text: suggestion }));
    button("forget").hidden = !isChat || name !== "forget" || figures !== null;
    card.querySelector("[data-go=race]").hidden = page.name === "race" || name !== "race" || figures !== null;
    card.querySelector("[data-go=chat]").hidden = isChat || (name === "race" && figures === null);
    button("skip").hidden = name === "end" || figures !== null;
    button("next").hidden = name === "end" || figures === null;
    button("again").hidden = name !== "end";
  }

  function textOf(name, figures) {
    if (figures) return say(`tour.${name}.done`, figures);
    if (name === "calculator" && page.hasCalculator === false) return say("tour.calculator.none");
    if (name === "calculator" && tour.hasMissedCalculator) return say("tour.calculator.missed");
    if (name === "edit" && isChat && !find(PLACES.edit)) return say("tour.edit.empty");
    return say(name === page.name && knows(`tour.${name}.here`) ? `tour.${name}.here` : `tour.${name}.do`);
  }

  function suggestionFor(name, figures) {
    if (!isChat || figures || !knows(`tour.${name}.suggest`)) return "";
    if (name === "calculator" && page.hasCalculator === false) return "";
    if (name === "cache" && page.usesCache()) return "";
    if (name === "edit" && !find(PLACES.edit)) return "";
    return say(`tour.${name}.suggest`);
  }

  function point() {
    const wanted = tour.isOpen && !tour.figures ? find(PLACES[tour.name] ?? []) : null;
    if (wanted === pointed) return;
    pointed?.classList.remove("is-pointed");
    wanted?.classList.add("is-pointed");
    wanted?.scrollIntoView({ block: "nearest" });
    pointed = wanted;
  }

  function go(step) {
    step();
    changed();
    card.querySelector("[data-slot=title]").focus({ preventScroll: true });
  }

  function close() {
    tour.close();
    changed();
  }

  const acts = {
    next: () => go(tour.next),
    skip: () => go(tour.next),
    again: () => go(tour.again),
    suggest: () => (tour.name === "edit" ? page.edit : page.ask)(suggestionFor(tour.name, null)),
    forget: () => page.forget(),
    close() {
      close();
      page.focus?.();
    },
  };

  card.addEventListener("click", (event) => acts[event.target.closest("[data-action]")?.dataset.action]?.());
  for (const opener of openers) {
    opener.addEventListener("click", (event) => {
      event.preventDefault();
      go(tour.start);
    });
  }
  document.addEventListener("change", () => { if (tour.isOpen) paint(); }); // what it suggests hangs on a switch
  if (location.hash === "#tour") {
    history.replaceState(null, "", location.pathname + location.search);
    tour.start();
    changed();
  }
  card.querySelector("[data-go=chat]").href = tab.get("chat_path") ?? card.querySelector("[data-go=chat]").href;
  paint();
  const hear = awaitFigures(ended);
  finished(page.answered);

  function ended(stats, figures) {
    tour.ended(stats, figures);
    changed();
  }

  /** The page was shown anew, and ends with this reply: its end, if it was waited for, is not told of any more. */
  function finished(reply) {
    const isAwaited = tour.isOpen && reply?.stats && reply.id === tour.awaited?.id;
    if (isAwaited) ended(reply.stats, figuresOf(reply.stats, reply.tokens));
  }

  return {
    receive(event) {
      const isBeside = event.type === "done" && event.message !== tour.awaited?.id; // another answer to the question
      tour.receive(event);
      if (!tour.isOpen) return;
      if (!isBeside) hear(event);
      if (event.type === "snapshot") finished(answeredIn(event));
      if (event.type === "message") changed();
    },
    /** A step was done elsewhere than in the events of a chat. */
    did(name, figures) {
      if (!tour.isOpen) return;
      tour.did(name, figures);
      changed();
    },
    /** Another guide takes its place. */
    close,
    paint: () => { if (tour.isOpen) paint(); },
  };
}

function answeredIn({ messages, cache }) {
  const last = messages?.at(-1);
  if (!last || last.state === "writing") return null;
  return { id: last.id, stats: last.stats, tokens: cache?.conversation?.tokens };
}

function find(selectors) {
  for (const selector of selectors) {
    const element = document.querySelector(selector);
    if (element?.checkVisibility({ visibilityProperty: true })) return element;
  }
  return null;
}
