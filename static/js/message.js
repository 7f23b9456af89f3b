// One message of the conversation: the server's element, kept up to date. Text that a model or a person
// wrote goes in as text; only the server's own finished blocks go in as HTML.

import { markAnswer } from "./answers.js";
import { clone, fill, setText, slot } from "./dom.js";
import { count, rate } from "./format.js";
import { mountTail } from "./tail.js";
import { fillToolCall, newToolCall } from "./tool_call.js";
import { knows, say } from "./words.js";

const LONG_LINES = 20; // a question longer than this, or as long in one line, is folded
const LONG_CHARACTERS = 2000;

/** An element for `view`, which has the shape of the server's: id, role, state, text, parts, tail, stats. */
export function newMessage(view) {
  const element = clone(view.role === "user" ? "user" : "assistant");
  element.dataset.id = view.id;
  element.classList.toggle("is-left-out", Boolean(view.left_out));
  markAnswer(element, view);
  const message = mountMessage(element);
  message.setEdge(view.edge ?? "");
  if (view.role === "user") {
    const text = view.text ?? "";
    fill(element, "text", text);
    element.querySelector(".message__more").hidden = text.split("\n").length <= LONG_LINES
      && text.length <= LONG_CHARACTERS;
    return message;
  }
  for (const part of view.parts ?? []) {
    if (part.type === "tool_call") message.toolCall(part);
    else message.block(part.index, part.html, "");
  }
  if (view.tail) message.append(view.tail);
  message.paint();
  if (view.state && view.state !== "writing") message.end(view.state, view.stats, view.error);
  return message;
}

export function mountMessage(element) {
  const body = element.querySelector(".message__body");
  const tail = element.dataset.role === "assistant" ? mountTail(slot(element, "tail")) : null;

  for (const block of body.querySelectorAll(".block")) frameCode(block);

  function place(part, index) {
    part.dataset.index = index;
    const old = body.querySelector(`:scope > [data-index="${index}"]`);
    if (old) {
      old.replaceWith(part);
      return;
    }
    const parts = [...body.querySelectorAll(":scope > [data-index]")];
    const later = parts.find((other) => Number(other.dataset.index) > index);
    body.insertBefore(part, later ?? slot(body, "tail"));
  }

  function shown() {
    if (body.classList.contains("is-waiting")) body.classList.remove("is-waiting");
  }

  return {
    element,
    get id() { return element.dataset.id; },
    get role() { return element.dataset.role; },
    get state() { return element.dataset.state; },

    /** How the memory has it: see the legend in the panel. */
    setEdge(edge) {
      element.dataset.edge = edge;
      setText(slot(element, "edge"), knows(`edge.${edge}`) ? `(${say(`edge.${edge}`)})` : "");
    },

    append(text) {
      if (text) shown();
      tail.append(text);
    },

    block(index, html, rest) {
      shown();
      const block = document.createElement("div");
      block.className = "block";
      block.innerHTML = html; // made by the server's renderer, with raw HTML off
      frameCode(block);
      place(block, index);
      tail.replace(rest ?? "");
    },

    toolCall(call) {
      shown();
      let part = body.querySelector(`:scope > .tool-call[data-index="${call.index}"]`);
      if (!part) {
        tail.dropBlank();
        part = newToolCall();
        place(part, call.index);
      }
      fillToolCall(part, call);
    },

    /** It goes on being written. */
    reopen() {
      element.dataset.state = "writing";
      fill(element, "end", "");
      body.classList.toggle("is-waiting", tail.isEmpty && !body.querySelector(":scope > [data-index]"));
    },

    /** What is waited for before the first word; `fraction` of the reading done, or null. */
    wait(text, fraction) {
      setText(slot(element, "wait"), text);
      const progress = slot(element, "progress");
      progress.toggleAttribute("data-shown", fraction !== null);
      progress.value = fraction ?? 0;
    },

    /** `error`: the sentence, where it failed. */
    end(state, stats, error) {
      tail.dropBlank();
      element.dataset.state = state;
      body.classList.remove("is-waiting");
      setText(slot(element, "wait"), "");
      setText(slot(element, "end"), error || say(`end.${state}`));
      if (stats) showStats(element, stats);
    },

    paint() { tail?.paint(); },

    /** As plain text, for the clipboard. */
    text() {
      if (!tail) return slot(element, "text").textContent;
      const parts = [...body.querySelectorAll(":scope > [data-index], :scope > .tail")];
      return parts.map(plain).filter(Boolean).join("\n\n");
    },

    /** The settings it was made with, as far as the server said them. */
    get settings() {
      try { return JSON.parse(element.dataset.settings); } catch { return {}; }
    },
  };
}

function showStats(element, stats) {
  element.dataset.settings = JSON.stringify(stats);
  const said = [say("stats.tokens", { count: count(stats.generated_tokens) })];
  if (stats.write_tokens_per_s) said.push(say("stats.rate", { rate: rate(stats.write_tokens_per_s) }));
  if (stats.use_cache === false) said.push(say("stats.slow"));
  setText(slot(element, "stats"), said.join(" · "));
  const hasSeed = stats.seed !== null && stats.seed !== undefined;
  element.querySelector("[data-action=repeat]").hidden = !hasSeed;
  if (hasSeed) setText(slot(element, "seed"), say("stats.seed", { seed: stats.seed }));
}

function plain(part) {
  if (part.matches(".tool-call")) {
    const result = slot(part, "result").textContent;
    return slot(part, "expression").textContent + (result && ` = ${result}`);
  }
  const copy = part.cloneNode(true);
  for (const head of copy.querySelectorAll(".code-frame__head")) head.remove();
  // innerText needs a place in the page to know where lines break
  copy.classList.add("visually-hidden");
  document.body.append(copy);
  const text = copy.innerText.trim();
  copy.remove();
  return text;
}

function frameCode(block) {
  for (const pre of block.querySelectorAll("pre")) {
    if (pre.parentElement.classList.contains("code-frame")) continue;
    const frame = clone("code");
    fill(frame, "language", pre.dataset.language ?? "");
    pre.replaceWith(frame);
    pre.tabIndex = 0; // a long line is scrolled by keyboard, too
    frame.append(pre);
  }
}
