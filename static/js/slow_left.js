// What slow motion had not shown yet when the page was left, kept in the tab for the page that comes next: a reload shows
// what had been shown, and holds back the rest as before. Whoever looks at another chat in between does not lose it.
// js/theme.js hides the answer until then.

import { tab } from "./storage.js";

const KEY = "slow_left";

/** `look()` -> {conversation, seq, shown, held}, or null: see `unfinished` in slow_steps.js. */
export function keepLeft(look) {
  addEventListener("pagehide", () => {
    const left = look();
    if (!left) return;
    tab.set(KEY, null); // too large to be kept: then nothing is, and not what was there before
    tab.set(KEY, left);
  });
  addEventListener("pageshow", (event) => { if (event.persisted) tab.set(KEY, null); }); // this page itself goes on
}

/** The chat was deleted. */
export function dropLeft(conversation) {
  if (tab.get(KEY)?.conversation === conversation) tab.set(KEY, null);
}

/** What was left of this chat, or null where there is nothing or where it fits no more: its question is gone, say. */
export function takeLeft(conversation, seq) {
  const left = tab.get(KEY);
  if (!left || left.conversation !== conversation) return null;
  tab.set(KEY, null);
  const fits = tab.get("slow_motion") === true && left.seq <= seq
    && document.querySelector(`#messages [data-id="${CSS.escape(left.shown[0].reply_to)}"]`);
  return fits ? left : null;
}

/** What was left is on the page by now, or will never be. */
export function endOfLeft() {
  document.documentElement.removeAttribute("data-slow-left");
}
