// The tour: its eight steps, how each is recognised from what really happened, and how far one has come.
// Knows the server's events and nothing of the page.

export const STEPS = ["ask", "see", "again", "calculator", "edit", "cache", "race", "forget"];

/** `saved`: {isOpen, at, done} of a tour that was begun, or null. `done` has the figures of each step that was done.
    `last`: id of the chat's last message, or null. */
export function makeTour(saved, last) {
  let isOpen = saved?.isOpen ?? false;
  let at = Math.min(Math.max(0, saved?.at ?? 0), STEPS.length);
  let done = saved?.done ?? {};
  let reply = null;    // {isEdit, isRead, hasCalled} of the reply that is being written
  let isEdit = false;  // the last question took the place of another
  let missed = false;  // at its step, an answer was made without the calculator

  function did(name, figures = {}) {
    done = { ...done, [name]: figures };
    // the answer to the question comes by itself: the next step is what to see in it
    if (name === "ask" && STEPS[at] === "ask") at += 1;
  }

  function question(event) {
    isEdit = last !== null && String(event.reply_to ?? "") !== String(last);
    did("ask");
  }

  /** A reply has ended; `figures` as sentences take them. */
  function ended(stats, figures) {
    const made = reply;
    reply = null;
    if (!stats.generated_tokens) return;
    if (made?.isRead) did("see", figures);
    if (made?.hasCalled) did("calculator", figures);
    missed = STEPS[at] === "calculator" && !made?.hasCalled;
    if (made?.isEdit) did("edit", figures);
    else if (stats.use_cache !== false && stats.reused_tokens > 0) did("again", figures);
    if (stats.use_cache === false) did("cache", figures);
  }

  return {
    get saved() { return { isOpen, at, done }; },
    get isOpen() { return isOpen; },
    get at() { return at; },
    /** The step's name, or "end". */
    get name() { return STEPS[at] ?? "end"; },
    /** The figures of the step, if it was done. */
    get figures() { return done[STEPS[at]] ?? null; },
    get hasMissedCalculator() { return missed; },

    /** An event of the chat. */
    receive(event) {
      if (event.foreign) return;
      if (event.type === "message" && !event.repeat) {
        if (event.role === "user") question(event);
        else if (!(event.answer > 0)) reply = { isEdit, isRead: false, hasCalled: false };
        if (!(event.answer > 0)) last = event.id;
      }
      if (event.type === "snapshot") last = event.messages?.at(-1)?.id ?? null;
      if (event.type === "reading" && reply) reply.isRead = true;
      if (event.type === "tool_call" && event.state === "done" && reply) reply.hasCalled = true;
    },
    ended,
    did,

    start() {
      isOpen = true;
      if (at >= STEPS.length) [at, done] = [0, {}];
      missed = false;
    },
    next() {
      at = Math.min(at + 1, STEPS.length);
      missed = false;
    },
    close() { isOpen = false; },
    again() { [at, done, missed] = [0, {}, false]; },
  };
}
