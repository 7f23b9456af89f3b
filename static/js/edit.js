// Changing a question in its place, to send it again. The changed text is never lost: the box stays, busy, until the
// server has taken it.

import { isBlank } from "./blank.js";
import { clone } from "./dom.js";
import { growWithText } from "./grow.js";
import { meansSend } from "./keys.js";

/** `send(text, settled)` calls `settled(isTaken)` once, when it is known whether the server took the text. `wanted`: what
    stands in the box at first, in place of `text`. */
export function mountEdit(element, text, send, wanted = text) {
  if (element.classList.contains("is-editing")) return propose(element.querySelector(".edit__text"), wanted, text);
  const form = clone("edit");
  const area = form.querySelector("textarea");
  area.value = text;
  const unchanged = area.value; // a text box has its own line ends
  let isBusy = false;
  element.classList.add("is-editing");
  element.querySelector(".message__body").after(form);
  growWithText(area);

  function leave() {
    form.remove();
    element.classList.remove("is-editing");
  }

  function close() {
    if (isBusy) return;
    leave();
    element.querySelector("[data-action=edit]")?.focus();
  }

  function setBusy(is) {
    isBusy = area.readOnly = is;
    form.setAttribute("aria-busy", String(is));
    for (const button of form.querySelectorAll("button")) button.disabled = is;
  }

  function settled(isTaken) {
    if (isTaken) return leave();
    setBusy(false);
    area.focus();
  }

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    if (isBusy || isBlank(area.value)) return;
    if (area.value === unchanged) return close();
    setBusy(true);
    send(area.value, settled);
  });
  area.addEventListener("input", () => area.toggleAttribute("data-changed", area.value !== unchanged));
  propose(area, wanted, text);
  form.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && !event.isComposing) close();
    else if (event.target === area && meansSend(event)) {
      event.preventDefault();
      form.requestSubmit();
    }
  });
  form.querySelector("[data-action=edit-cancel]").addEventListener("click", close);
}

/** Puts `wanted` into the box where it is not just `text`, and leads there. */
function propose(area, wanted, text) {
  if (wanted !== text) {
    area.value = wanted;
    area.dispatchEvent(new Event("input"));
  }
  area.focus();
  area.setSelectionRange(area.value.length, area.value.length);
}

/** The changed texts of boxes under `root`, which is about to go. */
export function textsBeingEdited(root) {
  return [...root.querySelectorAll(".edit__text[data-changed]")].map((area) => area.value);
}
