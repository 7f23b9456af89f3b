// One call of the calculator: the server's element, filled. The same slots as templates/_tool_call.html.

import { clone, fill } from "./dom.js";
import { count } from "./format.js";
import { say } from "./words.js";

export const newToolCall = () => clone("tool-call");

export function fillToolCall(element, call) {
  element.dataset.state = call.state;
  element.dataset.index = call.index;
  fill(element, "expression", call.expression ?? "");
  fill(element, "result", call.result ?? "");
  fill(element, "outcome", call.result ?? call.reason ?? "");
  fill(element, "badge", badgeOf(call));
  fill(element, "written", tokens(call.written_tokens, call.written_marks));
  fill(element, "forced", tokens(call.forced_tokens, call.forced_marks));
}

function badgeOf({ state, forced_tokens: forced, forced_marks: marks, reason }) {
  const isMarked = state === "done" && marks > 0;
  return say(isMarked ? "tool.done_marked" : `tool.${state}`, { forced: count(forced), marks: count(marks), reason });
}

/** So many tokens, and how many of them stand around what is meant: a reader counts digits, and finds two more. */
function tokens(n, marks) {
  if (!n) return "";
  const key = !marks ? "tokens" : n === 1 ? "token_mark" : marks > 1 ? "tokens_marked" : "tokens_mark";
  return say(`tool.${key}`, { count: count(n), marks: count(marks) });
}
