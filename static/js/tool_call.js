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
  fill(element, "badge", say(`tool.${call.state}`, { forced: count(call.forced_tokens), reason: call.reason }));
  fill(element, "written", tokens(call.written_tokens));
  fill(element, "forced", tokens(call.forced_tokens));
}

const tokens = (n) => (n ? say("tool.tokens", { count: count(n) }) : "");
