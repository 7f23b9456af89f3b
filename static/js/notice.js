// One sentence over the text box: about what stands in the way, or that something went well.

import { fill } from "./dom.js";

export function mountNotice(element) {
  const hide = () => { element.hidden = true; };
  element.querySelector("[data-action=close]").addEventListener("click", hide);

  function put(text, role, isGood) {
    element.setAttribute("role", role);
    element.toggleAttribute("data-good", isGood);
    fill(element, "text", text);
    element.hidden = false;
  }

  return {
    show(text) { put(text, "alert", false); },
    /** Good news. It is not announced: whoever tells it has the page's announcer say it, without a hurry. */
    tell(text) { put(text, "note", true); },
    hide,
  };
}
