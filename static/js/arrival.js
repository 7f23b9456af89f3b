// What the page before this one had to say, and where another page leads back to.

import { tab } from "./storage.js";

/** `conversation`: the chat of this page, or null. */
export function arrive(conversation, notice, status) {
  const leftBehind = tab.get("notice");
  if (leftBehind) notice.show(leftBehind);
  tab.set("notice", null);
  const opened = tab.get("opened"); // a saved chat
  if (opened) {
    notice.tell(opened);
    status.announce(opened);
  }
  tab.set("opened", null);
  if (conversation) tab.set("chat_path", location.pathname);
}
