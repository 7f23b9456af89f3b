// The conversation's line to the server: every event once and in order, every request until it is answered.
// After a break it goes on behind the last `seq`; a request that had no answer is sent again under the same
// id, which the server answers without doing it twice.

import { connect } from "./connection.js";

/** An id of the page's own making; `crypto.randomUUID` is missing over plain http. */
export function newId() {
  return Array.from(crypto.getRandomValues(new Uint8Array(12)), (b) => b.toString(16).padStart(2, "0")).join("");
}

export function mountChannel({ path, conversation, seq, receive, changed }) {
  const waiting = new Map(); // request id -> frame
  let id = conversation;
  let last = seq ?? 0;
  let askedAgainAt = -1;
  let isOpen = false;

  const resume = () => { if (id) connection.send({ type: "open", conversation: id, after: last }); };

  const connection = connect(path, {
    opened() {
      isOpen = true;
      resume();
      for (const frame of waiting.values()) connection.send(frame);
      changed(true);
    },
    closed(code) {
      isOpen = false;
      // the frame was larger than the server takes: sending it again would only break the line again
      if (code === 1009) {
        for (const request of waiting.keys()) receive({ type: "error", code: "too_long", request });
        waiting.clear();
      }
      changed(false);
    },
    received,
  });

  function received(event) {
    if (event.type === "pong") return;
    // the numbers have a part called `conversation`, where other events have an id
    if (event.type === "cache" && !event.cache) event = { type: "cache", seq: event.seq, cache: event };
    if (event.type === "listed") return receive(event); // another chat of this browser: for the list of chats alone
    if (event.request) waiting.delete(event.request);
    if (event.type === "conversation") settleNaming(event.conversation);
    if (event.conversation && event.conversation !== id) {
      if (id === null && event.type === "conversation" && !event.deleted) {
        id = event.conversation; // the answer to the first question of a new chat
        last = 0;
        askedAgainAt = -1;
      } else {
        if (event.type === "conversation" || event.type === "error") receive({ ...event, foreign: true });
        return;
      }
    }
    if (event.type === "snapshot") last = event.seq ?? last;
    else if (Number.isInteger(event.seq)) {
      if (event.seq <= last) return;
      // one is missing: ask for it once, and go on without it if it is not to be had
      if (last > 0 && event.seq > last + 1 && askedAgainAt !== last) {
        askedAgainAt = last;
        resume();
        return;
      }
      last = event.seq;
    }
    receive(event);
  }

  /** A chat was renamed or deleted: whoever asked for it has an answer. */
  function settleNaming(conversation) {
    for (const [request, frame] of waiting) {
      const isNaming = frame.type === "rename" || frame.type === "delete";
      if (isNaming && frame.conversation === conversation) waiting.delete(request);
    }
  }

  return {
    get conversation() { return id; },
    /** The number of the last event. */
    get seq() { return last; },
    get isOpen() { return isOpen; },
    /** Sends a frame that must be answered; it is kept, and sent again after a break, until it is. */
    ask(frame) {
      const request = newId();
      const whole = { conversation: id, ...frame, request };
      waiting.set(request, whole);
      connection.send(whole);
      return request;
    },
    /** Whether `request` has had no answer yet. */
    isWaiting: (request) => waiting.has(request),
    /** Takes a request back that has not been answered. */
    drop: (request) => waiting.delete(request),
    /** Sends a frame that may be lost; false when it was. */
    tell: (frame) => connection.send({ conversation: id, ...frame }),
  };
}
