// Opening a chat that was saved as a file: the server checks all of it, and makes a new chat of this browser's.
// The page of that chat says that it was opened.

import { bytes, count } from "./format.js";
import { tab } from "./storage.js";
import { say } from "./words.js";

const LIMIT_BYTES = 8 * 2 ** 20; // as MAX_BODY_BYTES in app/web/access.py

export function mountImport({ button, input, notice, root }) {
  button.addEventListener("click", () => input.click());
  input.addEventListener("change", async () => {
    const [file] = input.files;
    if (!file) return;
    button.disabled = true;
    await take(file);
    button.disabled = false;
    input.value = ""; // the same file can be chosen again
  });

  async function take(file) {
    if (file.size > LIMIT_BYTES) {
      notice.show(say("import.too_large", { bytes: bytes(file.size) }));
      return;
    }
    try {
      const answer = await fetch(`${root}api/import${location.search}`, {
        method: "POST", body: file, headers: { "Content-Type": "application/json" }, credentials: "same-origin",
      });
      const told = await answer.json();
      if (!answer.ok) return notice.show(told.text);
      tab.set("opened", say("import.opened", { title: told.title, messages: count(told.messages) }));
      location.assign(told.url);
    } catch {
      notice.show(say("import.failed"));
    }
  }
}
