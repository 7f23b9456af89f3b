// What the page is doing, in a word that names it, and what a screen reader hears of it: the start and the end of an
// answer, with the memory, and that something stands in the way or no longer does.

import { setText } from "./dom.js";
import { count } from "./format.js";
import { knows, say } from "./words.js";

const PATIENCE_MS = 700; // a break shorter than this is nobody's business

export function mountStatus(element, announcer, { state, showWait }) {
  const isTold = state !== "writing" || element.hasAttribute("data-why"); // and not only named
  let current = { state: state === "ready" ? "idle" : state, text: isTold ? element.textContent.trim() : undefined };
  let reading = null;
  let isConnected = true;
  let isSending = false;
  let slow = false;
  let isBehind = false; // what is shown is not all that has happened
  let patience = 0;
  let tokens = 0;
  let ended = []; // the ends of replies, to be told once the memory's numbers are final

  function sentence() {
    if (isBehind) return say("slow.behind");
    const { state: name } = current;
    if (name === "reading" && reading) {
      return say("state.reading", { done: count(reading.done), total: count(reading.total) });
    }
    if (name === "queued" && current.place) return say("state.queued", { place: count(current.place) });
    if (name === "failed" && current.text) return say("state.failed", { text: current.text });
    if (name === "writing" && current.text) return current.text; // why it does not end
    if (name === "writing" && slow) return say("state.writing_slow");
    return say(knows(`state.${name}_unknown`) ? `state.${name}_unknown` : `state.${name}`);
  }

  function show() {
    let name = current.state;
    let text = sentence();
    if (!isConnected) {
      name = "reconnecting";
      text = say(isSending ? "state.reconnecting_send" : "state.reconnecting");
    } else if (isSending && name === "idle") text = say("state.sending");
    const was = element.dataset.state;
    if (was !== name) element.dataset.state = name;
    if (was !== name && [was, name].includes("reconnecting")) announce(text);
    element.toggleAttribute("data-why", name === "writing" && Boolean(current.text));
    setText(element, text);
    const isReading = current.state === "reading" && reading && reading.total > 0;
    showWait(text, isReading ? reading.done / reading.total : null);
  }

  const announce = (text) => setText(announcer, text);

  function sayEnd() {
    const [{ reason, text, stats }] = ended;
    const key = ended.length > 1 ? "says.end_many" : reason === "stop" ? "says.end" : "says.end_cut";
    const why = (text || say(`end.${reason}`)).replace(/[^.!?。！？]$/, "$&."); // an error may end without a full stop
    announce(say(key, { count: ended.length, written: count(stats?.generated_tokens), tokens: count(tokens), why }));
    ended = [];
  }

  return {
    receive(event) {
      if (event.type === "state") {
        current = { state: event.state === "ready" ? "idle" : event.state, place: event.place, text: event.text };
        if (event.state !== "reading") reading = null;
        if (event.state === "writing" && event.text) announce(event.text);
        if (ended.length && (event.state === "idle" || event.state === "failed")) sayEnd();
      } else if (event.type === "snapshot") {
        current = { state: event.state ?? "idle", place: event.place, text: event.text };
        tokens = event.cache?.conversation?.tokens ?? tokens;
      } else if (event.type === "reading") {
        reading = event;
        current = { state: "reading" };
      } else if (event.type === "cache") tokens = event.cache.conversation?.tokens ?? tokens;
    },
    paint: show,

    connected(is) {
      clearTimeout(patience);
      if (is) {
        isConnected = true;
        show();
      } else patience = setTimeout(() => { isConnected = false; show(); }, PATIENCE_MS);
    },
    sending(is) {
      isSending = is;
      show();
    },
    set withoutCache(is) { slow = is; },
    set behind(is) {
      if (is === isBehind) return;
      isBehind = is;
      show();
    },
    set(name, text) {
      current = { state: name, text };
      show();
      if (name === "failed") announce(element.textContent);
    },
    get state() { return current.state; },

    replyBegan() {
      current = { state: "queued" }; // until the engine says what it does
      announce(say("says.start"));
    },
    replyEnded(event) { ended.push(event); },
    announce,
  };
}
