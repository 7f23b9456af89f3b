// How the next answers are made: kept in this browser, sent with every question. What is empty is not sent,
// so that the model's own recommendation holds.

import { closeByButtons } from "./dialogs.js";
import { kept, tab } from "./storage.js";

const NUMBERS = ["temperature", "top_k", "max_tokens", "seed", "n"];

export function mountSettings({ button, dialog, cacheSwitch, cacheNote, onCacheSwitch, onChange }) {
  const form = dialog.querySelector("form");
  const error = dialog.querySelector("#settings-error");
  let saved = clean(kept.get("settings"));

  mountCacheSwitch();
  closeByButtons(dialog);
  button.addEventListener("click", () => {
    error.textContent = "";
    for (const name of [...NUMBERS, "system"]) form.elements[name].value = saved[name] ?? "";
    dialog.showModal();
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const wrong = NUMBERS.map((name) => form.elements[name]).find((input) => !input.validity.valid);
    if (wrong) {
      error.textContent = `${wrong.labels[0].textContent}: ${wrong.validationMessage}`;
      wrong.focus();
      return;
    }
    saved = clean(Object.fromEntries(new FormData(form)));
    kept.set("settings", saved);
    onChange();
    dialog.close();
  });
  dialog.querySelector("#settings-reset").addEventListener("click", () => {
    for (const name of [...NUMBERS, "system"]) form.elements[name].value = "";
  });

  function mountCacheSwitch() {
    cacheSwitch.checked = tab.get("use_cache") ?? true;
    const show = () => {
      cacheNote.hidden = cacheSwitch.checked;
      onCacheSwitch(cacheSwitch.checked);
    };
    cacheSwitch.addEventListener("change", () => {
      tab.set("use_cache", cacheSwitch.checked);
      onChange();
      show();
    });
    show();
  }

  return {
    /** The model's own values, once it is known. */
    takeDefaults(page) {
      for (const input of form.querySelectorAll("[placeholder]")) {
        input.placeholder = page.getElementById(input.id)?.placeholder ?? input.placeholder;
      }
    },
    /** For a `send`: only what differs from the model's own. Several answers at once need the cache. */
    get current() {
      const { n = 1, ...wanted } = saved;
      const answers = cacheSwitch.checked ? Math.min(n, Number(form.elements.n.max)) : 1;
      return { ...wanted, ...(answers > 1 && { n: answers }), use_cache: cacheSwitch.checked };
    },
  };
}

function clean(values) {
  const result = {};
  for (const name of NUMBERS) {
    const value = values?.[name] ?? "";
    if (value !== "" && Number.isFinite(Number(value))) result[name] = Number(value);
  }
  if (typeof values?.system === "string" && values.system.trim()) result.system = values.system;
  return result;
}
