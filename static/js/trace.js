// The conversation as the model sees it: every token a box in its order, white space made visible; or the same as a
// table. Built a bounded number of tokens a frame, and kept in line with the chat while it is open.

import { copyFrom } from "./copy.js";
import { closeByButtons } from "./dialogs.js";
import { fill, setText, slot } from "./dom.js";
import { count } from "./format.js";
import { mountCard, originOf, percent, sentenceOf } from "./token_card.js";
import { numbersOf, showText, textOf, visible } from "./token_text.js";
import { say } from "./words.js";

const TOKENS_A_FRAME = 400;
const ORIGIN_COLUMN = 4; // of the table: it changes while an answer is written

/** `tokens`: a token list. `bytesPerToken()` as it is now. */
export function mountTrace(dialog, opener, tokens, bytesPerToken) {
  const boxes = slot(dialog, "boxes");
  const lines = slot(dialog, "lines");
  const card = mountCard(dialog.querySelector(".token-card"));
  let items = [];        // the element of each token, as far as it is built
  let built = [];        // and the token that it was built for
  let way = "boxes";
  let current = null;    // the box that Tab goes to
  let frame = 0;

  // --- building

  /** The list that a token's box goes into: one for each message. */
  function groupOf(token) {
    const key = String(token.message);
    if (boxes.lastElementChild?.dataset.message === key) return boxes.lastElementChild.lastElementChild;
    const group = document.createElement("section");
    group.className = "trace__group";
    group.dataset.message = key;
    const title = document.createElement("h3");
    title.className = "trace__message";
    const isAnswer = token.origin === "written" || token.origin === "forced" || token.source;
    title.textContent = token.id === null ? say("token.unnamed") : token.message === null ? say("trace.nobody")
      : say(isAnswer ? "trace.answer" : "trace.question", { turn: count(token.turn) });
    const list = document.createElement("ol");
    list.className = "trace__boxes";
    group.append(title, list);
    boxes.append(group);
    return list;
  }

  function newBox(token, at) {
    const item = document.createElement("li");
    item.className = "trace__token";
    item.dataset.testid = "trace-token";
    item.dataset.position = at;
    item.tabIndex = -1;
    item.toggleAttribute("data-mark", Boolean(token.mark));
    item.toggleAttribute("data-ends-line", token.text.endsWith("\n"));
    const box = document.createElement("span");
    box.className = "token-box";
    showText(box, token.text);
    item.append(box);
    groupOf(token).append(item);
    return item;
  }

  function newLine(token, at) {
    const line = document.createElement("tr");
    line.dataset.position = at;
    const values = [count(at), visible(token.text), String(token.id ?? ""), token.turn ? count(token.turn) : "",
      originOf(token, tokens.stateOf(at)), token.chance === undefined ? "" : percent(token.chance)];
    values.forEach((value, column) => {
      const cell = document.createElement(column ? "td" : "th");
      if (!column) cell.scope = "row";
      cell.textContent = value;
      line.append(cell);
    });
    lines.append(line);
    return line;
  }

  function refresh(item, token, at) {
    item.dataset.origin = token.origin;
    item.classList.toggle("is-waiting", at >= tokens.cached);
    if (way === "table") setText(item.cells[ORIGIN_COLUMN], originOf(token, tokens.stateOf(at)));
  }

  function clear() {
    boxes.replaceChildren();
    lines.replaceChildren();
    items = [];
    built = [];
    current = null;
  }

  function build() {
    frame = 0;
    const { list } = tokens;
    const end = Math.min(list.length, items.length + TOKENS_A_FRAME);
    for (let at = items.length; at < end; at += 1) {
      items.push(way === "boxes" ? newBox(list[at], at) : newLine(list[at], at));
      built.push(list[at]);
      refresh(items[at], list[at], at);
    }
    if (!current && items.length) setCurrent(items[0]);
    if (items.length < list.length) schedule();
  }

  const schedule = () => { frame ||= requestAnimationFrame(build); };

  function showCount() {
    fill(dialog, "count", say("trace.count", { tokens: count(tokens.list.length), cached: count(tokens.cached) }));
  }

  /** The tokens from `from` on are not as they were. */
  function changed(from) {
    if (!dialog.open) return;
    const other = built.findIndex((token, at) => {
      const now = tokens.list[at];
      return token.id !== now?.id || token.message !== now.message;
    });
    if (other >= 0) cut(other);
    for (let at = from; at < items.length; at += 1) refresh(items[at], tokens.list[at], at);
    showCount();
    schedule();
  }

  function cut(from) {
    built.length = from;
    for (const item of items.splice(from)) {
      const group = item.closest(".trace__group");
      item.remove();
      if (group && !group.querySelector("li")) group.remove();
    }
    if (current && !current.isConnected) current = null;
  }

  function show(wanted) {
    way = wanted;
    for (const button of dialog.querySelectorAll("[data-way]")) {
      button.setAttribute("aria-pressed", String(button.dataset.way === way));
    }
    boxes.hidden = way !== "boxes";
    slot(dialog, "table").hidden = way !== "table";
    dialog.dataset.way = way;
    pointAt(null);
    clear();
    build();
  }

  // --- pointing

  function pointAt(item) {
    dialog.querySelector(".is-pointed-at")?.classList.remove("is-pointed-at");
    item?.classList.add("is-pointed-at");
    const at = item ? Number(item.dataset.position) : null;
    card.show(item ? tokens.list[at] ?? null : null, tokens.stateOf(at), bytesPerToken());
    slot(dialog, "hint").hidden = Boolean(item);
  }

  function setCurrent(item) {
    if (current) current.tabIndex = -1;
    current = item;
    if (way !== "boxes") return;
    const at = Number(item.dataset.position);
    current.tabIndex = 0;
    current.setAttribute("aria-label", sentenceOf(tokens.list[at], tokens.stateOf(at), bytesPerToken())); // as the card
  }

  /** The box above or below: the nearest one of the next line that has any. */
  function beside(item, direction) {
    const from = item.getBoundingClientRect();
    const middle = (from.left + from.right) / 2;
    let best = null;
    let line = null;
    for (let at = items.indexOf(item) + direction; items[at]; at += direction) {
      const place = items[at].getBoundingClientRect();
      if (Math.abs(place.top - from.top) < 2) continue;
      line ??= place.top;
      if (Math.abs(place.top - line) > 2) break;
      const distance = Math.abs((place.left + place.right) / 2 - middle);
      if (!best || distance < best.distance) best = { item: items[at], distance };
    }
    return best?.item;
  }

  const steps = {
    ArrowLeft: (item) => items[items.indexOf(item) - 1],
    ArrowRight: (item) => items[items.indexOf(item) + 1],
    ArrowUp: (item) => beside(item, -1),
    ArrowDown: (item) => beside(item, 1),
    Home: () => items[0],
    End: () => items.at(-1),
  };

  boxes.addEventListener("keydown", (event) => {
    const step = steps[event.key];
    const item = event.target.closest(".trace__token");
    if (!step || !item || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    const wanted = step(item) ?? item;
    setCurrent(wanted);
    wanted.focus();
  });
  boxes.addEventListener("focusin", (event) => pointAt(event.target.closest(".trace__token")));
  boxes.addEventListener("pointerover", (event) => {
    const item = event.target.closest(".trace__token");
    if (item) pointAt(item);
  });
  boxes.addEventListener("click", (event) => {
    const item = event.target.closest(".trace__token");
    if (item) setCurrent(item);
    item?.focus();
  });

  // --- the dialog

  opener.addEventListener("click", () => {
    dialog.showModal();
    showCount();
    show(way);
  });
  dialog.addEventListener("close", () => {
    pointAt(null);
    clear();
  });
  dialog.addEventListener("click", (event) => {
    if (event.target === dialog) dialog.close(); // on the backdrop
    const button = event.target.closest("button");
    if (button?.dataset.way) show(button.dataset.way);
    else if (button?.dataset.copy === "trace.copy_text") copyFrom(button, textOf(tokens.list));
    else if (button?.dataset.copy === "trace.copy_numbers") copyFrom(button, numbersOf(tokens.list));
  });
  closeByButtons(dialog);

  return { opener, changed };
}
