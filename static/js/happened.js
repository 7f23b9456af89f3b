// What happened to the memory, in the server's sentences: the newest first, older ones folded.

import { setText, slot } from "./dom.js";
import { count } from "./format.js";
import { say } from "./words.js";

const NEWEST = 3;
const KEPT = 100;

export function mountHappened(element) {
  const newest = slot(element, "events");
  const older = slot(element, "older");
  let retold = []; // items that may be told once more: then they are not two

  function arrange() {
    while (newest.children.length > NEWEST) older.prepend(newest.lastElementChild);
    while (older.children.length > KEPT) older.lastElementChild.remove();
    older.closest("details").hidden = older.children.length === 0;
    setText(slot(element, "earlier"), say("happened.earlier", { count: count(older.children.length) }));
    element.hidden = newest.children.length === 0;
  }

  function add(event) {
    const item = document.createElement("li");
    item.className = "happened__item";
    item.dataset.code = event.code ?? "";
    item.textContent = event.text ?? "";
    const known = retold.find((other) => other.textContent === item.textContent);
    known?.remove();
    retold = retold.filter((other) => other !== known);
    newest.prepend(item);
  }

  return {
    add(event) {
      add(event);
      arrange();
    },
    /** The last turn is told once more. */
    retell() { retold = [...element.querySelectorAll(".happened__item")]; },
    /** Shows these alone, the oldest first. */
    show(events) {
      newest.replaceChildren();
      older.replaceChildren();
      for (const event of events) add(event);
      arrange();
    },
  };
}
