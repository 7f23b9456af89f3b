// The list of chats: searching it, keeping it true, renaming and deleting. The list itself is the server's HTML,
// fetched again when something changed.

import { isBlank } from "./blank.js";
import { ask } from "./dialogs.js";
import { clone, fill, setText, slot } from "./dom.js";
import { count } from "./format.js";
import { freshPage } from "./fresh.js";
import { say } from "./words.js";

export function mountSidebar({ element, chatDialog, confirm, notice, root, current, rename, remove }) {
  const search = element.querySelector("#search");
  const chats = () => element.querySelector("#chats");
  const item = (id) => chats().querySelector(`.chat-item[data-id="${CSS.escape(id)}"]`);
  const group = (name) => chats().querySelector(`[data-group="${name}"] .chats__list`);

  /** Shows what the search leaves, and no group without a chat. */
  function arrange() {
    const wanted = search.value.trim().toLocaleLowerCase();
    let all = 0;
    let found = 0;
    for (const section of chats().querySelectorAll("[data-group]")) {
      let shown = 0;
      for (const entry of section.querySelectorAll(".chat-item")) {
        entry.hidden = wanted !== "" && !slot(entry, "title").textContent.toLocaleLowerCase().includes(wanted);
        all += 1;
        if (!entry.hidden) shown += 1;
      }
      section.hidden = shown === 0;
      found += shown;
    }
    chats().querySelector("[data-none=chats]").hidden = all > 0;
    chats().querySelector("[data-none=found]").hidden = all === 0 || found > 0;
  }

  function mark() {
    const id = current();
    for (const entry of chats().querySelectorAll(".chat-item")) {
      const isCurrent = entry.dataset.id === id;
      entry.classList.toggle("is-current", isCurrent);
      if (isCurrent) slot(entry, "title").parentElement.setAttribute("aria-current", "page");
      else slot(entry, "title").parentElement.removeAttribute("aria-current");
    }
  }

  function title(id, text) {
    const entry = item(id);
    if (!entry) return;
    fill(entry, "title", text);
    entry.querySelector("[data-action=options]").setAttribute("aria-label", say("chat.options", { title: text }));
  }

  function add(event) {
    const entry = clone("chat");
    entry.dataset.id = event.conversation;
    entry.querySelector("a").href = event.url;
    group("cold").prepend(entry); // it may have to wait before anything of it is remembered
    title(event.conversation, event.title);
    mark();
    arrange();
  }

  async function refresh() {
    const fresh = (await freshPage(root))?.getElementById("chats");
    if (!fresh) return; // no connection: the list stays as it is
    const focused = chats().querySelector(".chat-item:focus-within")?.dataset.id;
    const top = chats().scrollTop;
    chats().replaceChildren(...fresh.childNodes);
    mark();
    arrange();
    chats().scrollTop = top;
    if (focused) item(focused)?.querySelector("a").focus();
  }

  async function options(id) {
    const had = slot(item(id), "title").textContent;
    const input = chatDialog.querySelector("input");
    input.value = had;
    for (const link of chatDialog.querySelectorAll("[data-leads]")) link.href = `${root}c/${id}/${link.dataset.leads}`;
    const isSaved = ask(chatDialog);
    input.select();
    if (await isSaved) {
      const wanted = input.value.trim();
      if (isBlank(wanted)) notice.show(say("notice.no_name", { title: had }));
      else if (wanted !== had) rename(id, wanted);
    } else if (chatDialog.returnValue === "delete") {
      if (await confirm(say("ask.delete", { title: had }), say("ask.delete_yes"))) remove(id);
    }
  }

  chatDialog.querySelector("[data-action=delete]").addEventListener("click", () => chatDialog.close("delete"));
  search.addEventListener("input", arrange);
  element.addEventListener("click", (event) => {
    const button = event.target.closest("[data-action=options]");
    if (button) options(button.closest(".chat-item").dataset.id);
  });
  arrange();

  return {
    refresh,
    receive(event) {
      if (event.type === "conversation" || event.type === "listed") {
        if (event.deleted) item(event.conversation)?.remove();
        else if (item(event.conversation)) title(event.conversation, event.title);
        else add(event);
        arrange();
      }
    },
    /** How many tokens of the current chat are remembered. */
    tokens(n) {
      const entry = current() && item(current());
      if (!entry) return;
      setText(slot(entry, "tokens"), n ? count(n) : "");
      const list = group(n ? "warm" : "cold");
      if (list.contains(entry)) return;
      const focused = entry.contains(document.activeElement) ? document.activeElement : null;
      list.prepend(entry);
      focused?.focus();
      arrange();
    },
  };
}
