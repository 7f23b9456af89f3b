// The text box: sending and stopping, what Enter means, what is too long, and that nothing typed is lost.
// Text stays in the box until the server has it.

import { isBlank } from "./blank.js";
import { count } from "./format.js";
import { growWithText } from "./grow.js";
import { focusText, meansSend } from "./keys.js";
import { tab } from "./storage.js";
import { say } from "./words.js";

const DRAFT_AFTER_MS = 300;
const STOP_AFTER_MS = 400;    // the second half of a double click on Send is no wish to stop
const LONGEST_DRAFT = 100000; // characters; the browser keeps little for a page
const LARGE_PASTE = 50000;    // characters; counted before it is let in, since a box with a megabyte is a slow one

const encoder = new TextEncoder();

/** Bytes of `text` as it will be sent. */
export const byteLength = (text) => encoder.encode(text).length;

export function mountComposer({ form, area, send, stop, notice, limitBytes, draftKey, counter, onSend, onStop }) {
  let isBusy = false;
  let isTooLong = false;
  let draftTimer = 0;
  let stopTimer = 0;
  const key = () => `draft:${draftKey()}`;
  let savedAs = key();

  if (!area.value) area.value = tab.get(key()) ?? "";

  /** Refuses what is too long, with both numbers; true when it fits. */
  function fits(text, sentence) {
    // a character has at most 3 bytes a UTF-16 unit: most texts need no counting
    const size = text.length * 3 <= limitBytes ? 0 : byteLength(text);
    if (size <= limitBytes) return true;
    notice.show(say(sentence, { bytes: count(size), limit: count(limitBytes) }));
    return false;
  }

  function setTooLong(is) {
    if (!is && isTooLong) notice.hide();
    isTooLong = is;
    send.disabled = is;
  }

  function changed() {
    const fitsNow = fits(area.value, "notice.too_long");
    send.title = isBlank(area.value) ? say("send.empty") : "";
    setTooLong(!fitsNow);
    counter.changed(fitsNow ? area.value : "");
    clearTimeout(draftTimer);
    draftTimer = setTimeout(saveDraft, DRAFT_AFTER_MS);
  }

  async function pasteLarge(text) {
    notice.show(say("notice.counting"));
    const numbers = await counter.ask(text);
    if (numbers && numbers.tokens > numbers.limit) {
      notice.show(say("notice.paste_too_many", { tokens: count(numbers.tokens), limit: count(numbers.limit) }));
      return;
    }
    notice.hide();
    area.setRangeText(text, area.selectionStart, area.selectionEnd, "end");
    changed();
  }

  function saveDraft() {
    if (savedAs !== key()) tab.set(savedAs, ""); // a new chat has got its name
    savedAs = key();
    tab.set(savedAs, area.value.length > LONGEST_DRAFT ? "" : area.value);
  }

  /** Puts `text`, which has lost its place, behind what stands in the box. */
  function rescue(text) {
    area.value = isBlank(area.value) ? text : `${area.value}\n\n${text}`;
    area.dispatchEvent(new Event("input"));
    saveDraft();
  }

  /** The chat is gone: the new one gets what stands in the box. -> whether something does. */
  function carryOver() {
    if (isBlank(area.value)) return false;
    const there = tab.get("draft:new");
    tab.set("draft:new", there && there !== area.value ? `${there}\n\n${area.value}` : area.value);
    area.value = "";
    return true;
  }

  function submit() {
    const text = area.value;
    if (isBlank(text) || isTooLong) return area.focus();
    if (isBusy) return notice.show(say("notice.busy"));
    notice.hide();
    onSend(text);
  }

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    submit();
  });
  area.addEventListener("keydown", (event) => {
    if (!meansSend(event)) return;
    event.preventDefault();
    submit();
  });
  area.addEventListener("input", changed);
  area.addEventListener("paste", (event) => {
    const text = event.clipboardData?.getData("text/plain") ?? "";
    if (text.length < LARGE_PASTE) return;
    event.preventDefault();
    if (fits(text, "notice.paste_too_long")) pasteLarge(text);
  });
  stop.addEventListener("click", onStop);
  addEventListener("pagehide", saveDraft);
  growWithText(area);
  changed();

  return {
    fits: (text) => fits(text, "notice.too_long"),
    /** The text in the box was counted. */
    counted({ tokens, limit }) {
      if (tokens > limit) notice.show(say("notice.too_many", { tokens: count(tokens), limit: count(limit) }));
      setTooLong(tokens > limit);
    },
    focus: () => focusText(area),
    rescue,
    carryOver,
    /** The server has `text`: the box is for the next one, unless something else stands in it by now. */
    taken(text) {
      if (area.value === text) {
        area.value = "";
        area.dispatchEvent(new Event("input"));
      }
      saveDraft();
    },
    sending(is) { form.classList.toggle("is-sending", is); },
    set busy(is) {
      if (is === isBusy) return;
      isBusy = is;
      const hadFocus = document.activeElement === (is ? send : stop);
      stop.hidden = !is;
      clearTimeout(stopTimer);
      stop.disabled = is;
      if (is) stopTimer = setTimeout(() => { stop.disabled = false; }, STOP_AFTER_MS);
      send.hidden = is;
      if (hadFocus) focusText(area);
    },
  };
}
