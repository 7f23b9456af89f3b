// The button that changes between light and dark. A choice equal to the system's is not stored, so that
// the page follows the system again.

import { slot } from "./dom.js";
import { say } from "./words.js";

const systemDark = matchMedia("(prefers-color-scheme: dark)");

export function mountThemeSwitch(button) {
  const root = document.documentElement;
  const current = () => root.dataset.theme ?? (systemDark.matches ? "dark" : "light");

  function show() {
    const dark = current() === "dark";
    slot(button, "theme").textContent = say(dark ? "theme.to_light" : "theme.to_dark");
    button.setAttribute("aria-label", say(dark ? "theme.light" : "theme.dark")); // where it is heard there is no sun or moon
    button.querySelector(".theme__light").hidden = dark;
    button.querySelector(".theme__dark").hidden = !dark;
  }

  button.addEventListener("click", () => {
    const next = current() === "dark" ? "light" : "dark";
    const isSystem = (next === "dark") === systemDark.matches;
    if (isSystem) delete root.dataset.theme;
    else root.dataset.theme = next;
    try {
      if (isSystem) localStorage.removeItem("theme");
      else localStorage.setItem("theme", next);
    } catch { /* not remembered, then */ }
    show();
  });
  systemDark.addEventListener("change", show);
  show();
}
