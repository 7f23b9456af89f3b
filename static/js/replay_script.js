// A script of timed events, as app/chat/replay.py writes it, as what the parts of the chat page take. Each entry:
// {at, events, isStep}. The numbers follow from what was recorded, by the contract's own definitions.

import { savedTokens, told } from "./replay_cells.js";

const EDGES = { "-": "none", u: "reused", r: "read", w: "written" };

/** All entries of a script, in order. `tokens`: those that were saved with the chat, message by message. */
export function expand(script, tokens) {
  const saved = savedTokens(tokens);
  const changed = edgesSoFar();
  let counted = null; // of the reply that is being told
  return script.map(([at, what, forced]) => {
    if (typeof what === "string") return { at, events: counted.token(what, forced === 1), isStep: true };
    if (what.type === "run") {
      counted = countsOf(what, saved);
      return { at, events: counted.begin(), isStep: false };
    }
    if (what.type === "reading") return { at, events: counted.read(what), isStep: what.done > what.reused };
    if (what.type === "done" && counted) return { at, events: [what, counted.end(), { type: "state", state: "idle" }], isStep: false };
    if (what.type === "edges") return { at, events: [{ ...what, edges: changed.edges(what.edges) }], isStep: false };
    if (what.type === "message") changed.message(what);
    return { at, events: [what], isStep: false };
  });
}

/** The edges of the messages that were told: which of them change. */
function edgesSoFar() {
  const told = []; // [id, edge], message by message
  return {
    message({ id, edge }) { told.push([id, edge]); },
    /** `letters`: one for each of them. */
    edges(letters) {
      const now = told.map(([id], index) => [id, EDGES[letters[index]]]);
      const changes = now.filter(([, edge], index) => edge !== told[index][1]);
      for (const [index, each] of now.entries()) told[index] = each;
      return Object.fromEntries(changes);
    },
  };
}

/** The counts of one run of a reply. */
function countsOf(run, saved) {
  const { message, first, prompt, reused, use_cache: usesCache, cached, limit, model } = run;
  const reply = { reused, read: 0, written: 0, forced: 0, without_cache: 0 };
  const given = saved.prompt(run);
  let tokens = usesCache ? reused : cached;
  const made = () => reply.written + reply.forced;

  function cache() {
    const conversation = { tokens, bytes_used: tokens * model.bytes_per_token, limit };
    return { type: "cache", cache: { conversation, last_reply: { ...reply }, model } };
  }

  return {
    /** What is reused is in the cache already, and nothing else of this chat. */
    begin() {
      return [{ type: "cells", tokens: given.slice(0, tokens).map((cell) => told(cell, "reused")) }, cache()];
    },
    read(event) {
      const before = reused + reply.read;
      reply.read = event.done - reused;
      tokens = usesCache ? event.done : cached;
      const cells = usesCache ? { tokens: given.slice(before, event.done).map((cell) => told(cell, "read")) } : {};
      return [{ ...event, ...cells, isStep: true }, cache()];
    },
    token(text, isForced) {
      const index = first + made();
      const position = prompt + made();
      reply.without_cache += position; // the reference way computes all that stands before it
      reply[isForced ? "forced" : "written"] += 1;
      tokens = usesCache ? position : cached; // the newest token is in the cache only once it was computed with
      // without the cache nothing comes into the row
      const cells = usesCache ? [told(saved.own(message, index, position), isForced ? "forced" : "written")] : [];
      return [{ type: "state", state: "writing" }, { type: "token", message, text, tokens: cells, isStep: true }, cache()];
    },
    end() {
      tokens = cached;
      return cache();
    },
  };
}
