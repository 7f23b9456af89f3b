// Single keys that do something anywhere on the page, but never where one types; and the dialog that names them,
// in which they can be switched off.

import { closeByButtons } from "./dialogs.js";
import { kept } from "./storage.js";

const TYPED_INTO = "input:not([type=checkbox], [type=radio], [type=range], [type=button]), textarea, select, [contenteditable]";
const PRESSED = "button, a, summary, input, label, [role=button], [role=switch]";

/** Whether `target` takes the letters that are typed. */
export const isTypedInto = (target) => target instanceof Element && target.closest(TYPED_INTO) !== null;
/** Whether Space already means something to `target`. */
export const isPressed = (target) => target instanceof Element && target.closest(PRESSED) !== null;

const hasModifier = (event) => event.ctrlKey || event.metaKey || event.altKey;

/** `keys`: what a key does, by the letter in small. "?" opens `dialog`. */
export function mountShortcuts({ dialog, button, setting, keys }) {
  const open = () => { if (!dialog.open) dialog.showModal(); };
  const acts = { ...keys, "?": open };

  closeByButtons(dialog);
  button.addEventListener("click", open);
  setting.checked = kept.get("single_keys") ?? true;
  setting.addEventListener("change", () => kept.set("single_keys", setting.checked));

  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.repeat || event.isComposing || hasModifier(event)) return;
    if (!setting.checked || isTypedInto(event.target) || document.querySelector("dialog[open]")) return;
    const act = acts[event.key.toLowerCase()];
    if (!act) return;
    event.preventDefault();
    act();
  });
}
