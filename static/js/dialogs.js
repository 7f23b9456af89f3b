// Native <dialog>s: opening one, and asking before something is lost.

import { fill } from "./dom.js";

/** Opens `dialog`; resolves to true when its form was submitted, false when it was left. */
export function ask(dialog) {
  dialog.returnValue = "";
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => resolve(dialog.returnValue === "yes"), { once: true });
  });
}

export function mountDialog(dialog) {
  dialog.querySelector("form").addEventListener("submit", (event) => {
    event.preventDefault();
    dialog.close("yes");
  });
  closeByButtons(dialog);
  dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); }); // on the backdrop
  return dialog;
}

/** Lets the dialog's own buttons leave it. */
export function closeByButtons(dialog) {
  for (const button of dialog.querySelectorAll("[data-dismiss]")) {
    button.addEventListener("click", () => dialog.close());
  }
}

/** `confirm(text, yes)`: a sentence, and the word on the button that does it. */
export function mountConfirm(dialog) {
  mountDialog(dialog);
  return (text, yes) => {
    fill(dialog, "text", text);
    fill(dialog, "yes", yes);
    return ask(dialog);
  };
}
