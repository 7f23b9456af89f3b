// Changing a question in its place, to send it again.

import { clone } from "./dom.js";
import { growWithText } from "./grow.js";
import { meansSend } from "./keys.js";

export function mountEdit(element, text, send) {
  if (element.classList.contains("is-editing")) return;
  const form = clone("edit");
  const area = form.querySelector("textarea");
  area.value = text;
  element.classList.add("is-editing");
  element.querySelector(".message__body").after(form);
  growWithText(area);
  area.focus();
  area.setSelectionRange(text.length, text.length);

  function leave() {
    form.remove();
    element.classList.remove("is-editing");
  }

  function close() {
    leave();
    element.querySelector("[data-action=edit]")?.focus();
  }

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    // refused (too long, busy, no connection): the text stays where it is
    if (area.value.trim() && send(area.value)) leave();
  });
  form.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && !event.isComposing) close();
    else if (event.target === area && meansSend(event)) {
      event.preventDefault();
      form.requestSubmit();
    }
  });
  form.querySelector("[data-action=edit-cancel]").addEventListener("click", close);
}
