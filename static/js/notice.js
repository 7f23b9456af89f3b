// One sentence over the text box, about what stands in the way.

import { fill } from "./dom.js";

export function mountNotice(element) {
  const hide = () => { element.hidden = true; };
  element.querySelector("[data-action=close]").addEventListener("click", hide);
  return {
    show(text) {
      fill(element, "text", text);
      element.hidden = false;
    },
    hide,
  };
}
