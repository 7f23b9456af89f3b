// Several answers to one question: side by side until one is picked; then that one, and the others folded away.
// The same elements as templates/_answers.html.

import { clone, fill, setText, slot } from "./dom.js";
import { say } from "./words.js";

const messagesIn = (group) => [...group.querySelectorAll(".message")];

/** The message that the chat goes on with, of one child of the list: a message, or a group of answers. */
export const mainOf = (child) => (child.matches(".message") ? child : slot(child, "row").querySelector(".message"));

/** Makes a message one of several, as the server says of it. */
export function markAnswer(element, { choice, answer, seed }) {
  if (!choice || choice === "only") return;
  element.dataset.choice = choice;
  element.dataset.answer = answer;
  fill(element, "number", say("answers.number", { number: answer + 1 }));
  element.querySelector("[data-action=pick]").setAttribute("aria-label", say("answers.pick", { number: answer + 1 }));
  fill(element, "own_seed", say("stats.seed", { seed }));
}

/** A group for the answers to `question`, with none in it yet. */
export function newAnswers(question) {
  const group = clone("answers");
  group.dataset.question = question;
  return group;
}

/** Puts one more into a group: side by side, or folded away. */
export function addAnswer(group, element) {
  slot(group, element.dataset.choice === "folded" ? "folded" : "row").append(element);
  settle(group);
}

/** The chat goes on with this one of its group. */
export function pickAnswer(picked) {
  const group = picked.closest(".answers");
  if (!group) return;
  const inOrder = messagesIn(group).sort((a, b) => a.dataset.answer - b.dataset.answer);
  for (const element of inOrder) {
    const isPicked = element === picked;
    element.dataset.choice = isPicked ? "picked" : "folded";
    element.dataset.edge = isPicked ? "written" : "none";
    slot(group, isPicked ? "row" : "folded").append(element);
  }
  settle(group);
}

function settle(group) {
  const isOpen = slot(group, "row").querySelector('[data-choice="open"]') !== null;
  group.dataset.choice = isOpen ? "open" : "picked";
  const row = slot(group, "row");
  if (isOpen) row.tabIndex = 0; // on a narrow screen it is scrolled sideways, by keyboard too
  else row.removeAttribute("tabindex");
  const others = messagesIn(group).length - 1;
  setText(slot(group, "others"), say(others === 1 ? "answers.other" : "answers.others", { count: others }));
}
