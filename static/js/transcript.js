// The conversation in the middle of the page: which messages there are, and what is done to them.
// Takes the server's events; tells `acts` what a person wants of a message.

import { addAnswer, mainOf, newAnswers, pickAnswer } from "./answers.js";
import { copyFrom } from "./copy.js";
import { mountEdit, textsBeingEdited } from "./edit.js";
import { mountMessage, newMessage } from "./message.js";

/** Whether a `message` event is the beginning of a reply. */
export const isBeingWritten = (event) => event.role === "assistant" && (event.state ?? "writing") === "writing";

export function mountTranscript(list, welcome, scroll, acts) {
  const messages = new Map(); // id -> message
  const touched = new Set();  // those with text that is not painted yet
  let waitText = "";
  let waitFraction = null;
  let hasGrown = false;

  for (const element of list.querySelectorAll(".message")) {
    const message = mountMessage(element);
    messages.set(message.id, message);
  }
  scroll.follow();

  const ofEvent = (event) => messages.get(String(event.message));
  const writing = () => [...messages.values()].filter((m) => m.role === "assistant" && m.state === "writing");

  /** The child of the list that a message stands in: itself, or a group of answers. */
  function placeOf(element) {
    let place = element;
    while (place.parentElement !== list) place = place.parentElement;
    return place;
  }

  /** Removes all that stands after a child of the list; after null, everything. */
  function removeAfter(place) {
    while (list.lastElementChild && list.lastElementChild !== place) {
      const last = list.lastElementChild;
      for (const text of textsBeingEdited(last)) acts.rescue(text);
      for (const element of last.matches(".message") ? [last] : last.querySelectorAll(".message")) {
        messages.delete(element.dataset.id);
      }
      last.remove();
    }
  }

  /** Puts an answer to a question beside the others, in the group at the end of the list. */
  function putBeside(message, question) {
    let group = list.lastElementChild;
    if (!group?.matches(".answers") || group.dataset.question !== String(question)) {
      group = newAnswers(question);
      list.append(group);
    }
    addAnswer(group, message.element);
  }

  function added(event) {
    const known = messages.get(String(event.id));
    if (known) {
      if (isBeingWritten(event) && !event.repeat) known.reopen(); // a cut answer goes on
      return;
    }
    // an edited question or a second answer takes the place of all that came after what it replies to
    const before = messages.get(String(event.reply_to));
    if (event.reply_to === null) removeAfter(null);
    else if (before && !(event.answer > 0)) removeAfter(placeOf(before.element));
    welcome?.remove();
    const message = newMessage({ ...event, edge: event.role === "user" ? "read" : "written" });
    messages.set(message.id, message);
    if (event.choice === "open") putBeside(message, event.reply_to);
    else list.append(message.element);
    if (message.role === "assistant" && message.state === "writing") {
      message.reopen();
      message.wait(waitText, waitFraction);
    }
    if (message.role === "user") scroll.follow();
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

  function show(view) {
    const message = newMessage(view);
    messages.set(message.id, message);
    if (view.role === "assistant" && view.state === "writing") message.reopen();
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
    edges(event) {
      for (const [id, edge] of Object.entries(event.edges ?? {})) messages.get(id)?.setEdge(edge);
    },
    picked(event) {
      const message = ofEvent(event);
      if (message) pickAnswer(message.element);
    },
    done(event) {
      ofEvent(event)?.end(event.reason === "stop" ? "done" : event.reason, event.stats, event.text);
    },
    event(event) {
      if (event.code === "left_out") leaveOut(event.figures?.messages ?? 0);
    },
    snapshot(event) {
      removeAfter(null);
      for (const view of event.messages ?? []) {
        const { element } = show(view);
        if (!view.others?.length) {
          list.append(element);
          continue;
        }
        const group = newAnswers(view.reply_to);
        group.classList.toggle("is-left-out", Boolean(view.left_out));
        list.append(group);
        for (const each of [element, ...view.others.map((other) => show(other).element)]) addAnswer(group, each);
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
    pick: (message) => acts.pick(message),
    stop: (message) => acts.stop(message),
    edit: (message, _, wanted) => mountEdit(message.element, message.text(), (text, settled) => {
      acts.edit(message, followers(message), text, settled);
    }, wanted),
  };

  const followers = (message) => list.children.length - 1 - [...list.children].indexOf(placeOf(message.element));

  list.addEventListener("click", (event) => {
    const button = event.target.closest("[data-action]");
    const element = button && (button.closest(".message") ?? mainOf(button.closest(".answers")));
    const message = element && messages.get(element.dataset.id);
    if (message) actions[button.dataset.action]?.(message, button);
  });

  return {
    /** Takes away all that stand after the question `id`: they are told once more. */
    rewind(id) { removeAfter(placeOf(messages.get(String(id)).element)); },

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

    /** Opens the first question to be changed, with `text` in its place. */
    editFirst(text) {
      const first = messages.get(mainOf(list.firstElementChild).dataset.id);
      actions.edit(first, null, text);
      first.element.scrollIntoView({ block: "nearest" });
    },

    wait(text, fraction) {
      waitText = text;
      waitFraction = fraction;
      for (const message of writing()) message.wait(text, fraction);
    },

    /** The id of the last message that the chat goes on with, or null. */
    get lastId() { return list.lastElementChild ? mainOf(list.lastElementChild).dataset.id : null; },
    /** The id of the first message, or null. */
    get firstId() { return list.firstElementChild ? mainOf(list.firstElementChild).dataset.id : null; },
    /** Texts of questions that are being changed. */
    get edited() { return textsBeingEdited(list); },
    /** The ids of the replies that are being made. */
    get writingIds() { return writing().map((message) => message.id); },
  };
}
