// The presenter's view: large type, the chat and what is remembered, nothing else. How it looks is css/presenter.css;
// js/theme.js puts it on before the first paint. It holds for this tab.

import { TAKES_ESCAPE } from "./keys.js";
import { tab } from "./storage.js";

/** `switches`: buttons that put it on and off. */
export function mountPresenter(switches, changed) {
  const root = document.documentElement;
  const isOn = () => root.hasAttribute("data-presenter");

  function show() {
    for (const button of switches) button.setAttribute("aria-pressed", String(isOn()));
  }

  function set(is) {
    root.toggleAttribute("data-presenter", is);
    tab.set("presenter", is || null);
    show();
    changed();
  }

  for (const button of switches) button.addEventListener("click", () => set(!isOn()));
  // in the capturing phase: what Escape closes is still open then
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || event.isComposing || !isOn() || document.querySelector(TAKES_ESCAPE)) return;
    set(false);
  }, { capture: true });
  show();

  return { toggle: () => set(!isOn()) };
}
