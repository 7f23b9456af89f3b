// The conversation in the middle of the page: which messages there are, and what is done to them.
// Takes the server's events; tells `acts` what a person wants of a message.

import { copyFrom } from "./copy.js";
import { mountEdit } from "./edit.js";
import { mountMessage, newMessage } from "./message.js";

/** Whether a `message` event is the beginning of a reply. */
export const isBeingWritten = (event) => event.role === "assistant" && (event.state ?? "writing") === "writing";

export function mountTranscript(list, welcome, scroll, acts) {
  const messages = new Map(); // id -> message
  const touched = new Set();  // those with text that is not painted yet
  let waitText = "";
  let waitFraction = null;
  let hasGrown = false;

  for (const element of list.children) {
    const message = mountMessage(element);
    messages.set(message.id, message);
  }
  scroll.follow();

  const ofEvent = (event) => messages.get(String(event.message));
  const lastElement = () => list.lastElementChild;
  const writing = () => [...messages.values()].findLast((m) => m.role === "assistant" && m.state === "writing");

  function removeAfter(element) {
    while (list.lastElementChild && list.lastElementChild !== element) {
      messages.delete(list.lastElementChild.dataset.id);
      list.lastElementChild.remove();
    }
  }

  function added(event) {
    const known = messages.get(String(event.id));
    if (known) {
      if (isBeingWritten(event) && !event.repeat) known.reopen(); // a cut answer goes on
      return;
    }
    // an edited question or a second answer takes the place of all that came after what it replies to
    if (event.reply_to === null) removeAfter(null);
    else if (messages.has(String(event.reply_to))) removeAfter(messages.get(String(event.reply_to)).element);
    welcome?.remove();
    const message = newMessage({ ...event, edge: event.role === "user" ? "read" : "written" });
    messages.set(message.id, message);
    list.append(message.element);
    if (message.role === "assistant" && message.state === "writing") {
      message.reopen();
      message.wait(waitText, waitFraction);
    }
    if (message.role === "user") scroll.follow();
  }

  /** What stood before this reply was remembered, or has been read again. */
  function markEdges(reused) {
    const current = writing();
    for (const message of messages.values()) {
      if (message === current || message.role !== "assistant") continue;
      message.element.dataset.edge = reused ? "reused" : "read";
    }
  }

  /** The oldest messages, so many more of them, are no longer part of what the model is given. */
  function leaveOut(count) {
    const kept = [...list.children].filter((element) => !element.classList.contains("is-left-out"));
    for (const element of kept.slice(0, count)) element.classList.add("is-left-out");
  }

  function going(event) {
    const message = ofEvent(event);
    if (message && message.state !== "writing") message.reopen();
    return message;
  }

  const handlers = {
    message: added,
    token(event) {
      const message = going(event);
      if (!message || !event.text) return;
      message.append(event.text);
      touched.add(message);
    },
    block(event) {
      const message = going(event);
      message?.paint();
      message?.block(event.index, event.html, event.rest);
    },
    tool_call(event) {
      const message = ofEvent(event);
      message?.paint();
      message?.toolCall(event);
    },
    reading(event) {
      if (event.done === event.reused || event.done === event.total) markEdges(event.reused > 0);
    },
    done(event) {
      ofEvent(event)?.end(event.reason === "stop" ? "done" : event.reason, event.stats, event.text);
    },
    event(event) {
      if (event.code === "left_out") leaveOut(event.figures?.messages ?? 0);
      if (event.code === "evicted") for (const message of messages.values()) message.element.dataset.edge = "none";
    },
    snapshot(event) {
      removeAfter(null);
      for (const view of event.messages ?? []) {
        const message = newMessage(view);
        messages.set(message.id, message);
        list.append(message.element);
        if (view.role === "assistant" && view.state === "writing") message.reopen();
      }
      if (event.messages?.length) welcome?.remove();
    },
  };

  const actions = {
    copy: (message, button) => copyFrom(button, message.text()),
    "copy-code": (message, button) => copyFrom(button, button.closest(".code-frame").querySelector("pre").textContent),
    regenerate: (message) => acts.regenerate(message, followers(message)),
    repeat: (message) => acts.repeat(message, followers(message)),
    continue: (message) => acts.continue(message),
    edit: (message) => mountEdit(message.element, message.text(), (text) => acts.edit(message, text)),
  };

  const followers = (message) => list.children.length - 1 - [...list.children].indexOf(message.element);

  list.addEventListener("click", (event) => {
    const button = event.target.closest("[data-action]");
    const message = button && messages.get(button.closest(".message").dataset.id);
    if (message) actions[button.dataset.action]?.(message, button);
  });

  return {
    receive(event) {
      if (!(event.type in handlers)) return;
      handlers[event.type](event);
      hasGrown = true;
    },

    paint() {
      for (const message of touched) message.paint();
      touched.clear();
      if (hasGrown) scroll.grown();
      hasGrown = false;
    },

    wait(text, fraction) {
      waitText = text;
      waitFraction = fraction;
      const message = writing();
      message?.wait(text, fraction);
    },

    /** The id of the last message, or null. */
    get lastId() { return lastElement()?.dataset.id ?? null; },
    /** The id of the reply that is being made, or null. */
    get writingId() { return writing()?.id ?? null; },
  };
}
