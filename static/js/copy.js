// Copying to the clipboard, also over plain http, where `navigator.clipboard` does not exist.

import { setText, slot } from "./dom.js";
import { say } from "./words.js";

const SHOWN_MS = 1600;

/** Copies `text` and says on `button`, and to a screen reader, whether it did. `data-copy` names a button's own words. */
export async function copyFrom(button, text) {
  const ok = await write(text);
  const label = slot(button, "copy");
  const said = say(ok ? "copy.done" : "copy.failed");
  // of an open dialog its own: what is outside of it cannot be heard
  const announcer = (button.closest("dialog") ?? document).querySelector("[data-slot=announcer], #announcer");
  setText(label, said);
  setText(announcer, said);
  button.classList.toggle("is-done", ok);
  setTimeout(() => {
    if (announcer?.textContent === said) setText(announcer, ""); // or it could not be said a second time
    setText(label, say(button.dataset.copy ?? "copy"));
    button.classList.remove("is-done");
  }, SHOWN_MS);
}

async function write(text) {
  if (navigator.clipboard?.writeText) {
    try {
      await navigator.clipboard.writeText(text);
      return true;
    } catch { /* not allowed: the old way may be */ }
  }
  const had = document.activeElement;
  const area = document.createElement("textarea");
  area.value = text;
  area.className = "visually-hidden";
  area.setAttribute("aria-hidden", "true");
  (had?.closest("dialog") ?? document.body).append(area); // what is outside of an open dialog cannot be selected
  area.select();
  let ok = false;
  try { ok = document.execCommand("copy"); } catch { /* neither way */ }
  area.remove();
  had?.focus?.({ preventScroll: true });
  return ok;
}
