// A script of timed events, as app/chat/replay.py writes it, as what the parts of the chat page take. Each entry:
// {at, events, isStep}. The numbers follow from what was recorded, by the contract's own definitions.

/** All entries of a script, in order. */
export function expand(script) {
  let counted = null; // of the reply that is being told
  return script.map(([at, what, forced]) => {
    if (typeof what === "string") return { at, events: counted.token(what, forced === 1), isStep: true };
    if (what.type === "run") {
      counted = countsOf(what);
      return { at, events: [counted.cache()], isStep: false };
    }
    if (what.type === "reading") return { at, events: [{ ...what, isStep: true }, counted.read(what)], isStep: what.done > what.reused };
    if (what.type === "done" && counted) return { at, events: [what, counted.end(), { type: "state", state: "idle" }], isStep: false };
    return { at, events: [what], isStep: false };
  });
}

/** The counts of one run of a reply. */
function countsOf({ message, prompt, reused, use_cache: usesCache, cached, limit, model }) {
  const reply = { reused, read: 0, written: 0, forced: 0, without_cache: 0 };
  let tokens = 0;
  const made = () => reply.written + reply.forced;

  function cache() {
    const conversation = { tokens, bytes_used: tokens * model.bytes_per_token, limit };
    return { type: "cache", cache: { conversation, last_reply: { ...reply }, model } };
  }

  return {
    cache,
    read({ done }) {
      reply.read = done - reused;
      tokens = usesCache ? done : cached;
      return cache();
    },
    token(text, isForced) {
      const position = prompt + made();
      reply.without_cache += position; // the reference way computes all that stands before it
      reply[isForced ? "forced" : "written"] += 1;
      tokens = usesCache ? position : cached; // the newest token is in the cache only once it was computed with
      const token = { origin: isForced ? "forced" : "written", position };
      return [{ type: "state", state: "writing" }, { type: "token", message, text, tokens: [token], isStep: true }, cache()];
    },
    end() {
      tokens = cached;
      return cache();
    },
  };
}
