// The tour: its eight steps, how each is recognised from what really happened, and how far one has come.
// Knows the server's events and nothing of the page.

export const STEPS = ["ask", "see", "again", "calculator", "edit", "cache", "race", "forget"];

/** `saved`: {isOpen, at, figures} of a tour that was begun, or null. `figures` are those of the step it is at, if that
    was done: since it began, for what happened before says nothing of it. `last`: id of the chat's last message, or null.
    `awaited`: the reply that the page before this one waited for, if any. */
export function makeTour(saved, last, awaited) {
  let isOpen = saved?.isOpen ?? false;
  let at = Math.min(Math.max(0, saved?.at ?? 0), STEPS.length);
  let figures = saved?.figures ?? null;
  let reply = awaited?.id === last && awaited || null; // {id, at, isEdit} of the one being written; `at`: its step
  let isEdit = false;  // the question that is to be answered took the place of another
  let missed = false;  // at its step, an answer was made without the calculator

  function go(step) {
    [at, figures, missed] = [step, null, false];
  }

  function did(name, told = {}) {
    if (STEPS[at] !== name) return;
    if (name === "ask") go(at + 1); // the answer comes by itself: the next step is what to see in it
    else figures = told;
  }

  function question(event) {
    isEdit = last !== null && String(event.reply_to ?? "") !== String(last);
    did("ask");
  }

  /** A reply has ended; `told`: its figures as sentences take them. */
  function ended(stats, told) {
    const made = reply;
    reply = null;
    if (!stats.generated_tokens || made?.at !== at) return;
    const hasCalled = stats.forced_tokens > 0;
    if (stats.read_tokens > 0) did("see", told);
    if (hasCalled) did("calculator", told);
    missed = STEPS[at] === "calculator" && !hasCalled;
    if (made.isEdit) did("edit", told);
    else if (stats.use_cache !== false && stats.reused_tokens > 0) did("again", told);
    if (stats.use_cache === false) did("cache", told);
  }

  return {
    get saved() { return { isOpen, at, figures }; },
    /** The reply that is waited for, or null: for the page that comes next. */
    get awaited() { return reply; },
    get isOpen() { return isOpen; },
    get at() { return at; },
    /** The step's name, or "end". */
    get name() { return STEPS[at] ?? "end"; },
    /** The figures of the step, if it was done. */
    get figures() { return figures; },
    get hasMissedCalculator() { return missed; },

    /** An event of the chat. While the tour is closed, only which message is the last is kept. */
    receive(event) {
      if (event.foreign) return;
      if (event.type === "message" && !event.repeat) {
        if (isOpen && event.role === "user") question(event);
        else if (isOpen && !(event.answer > 0)) {
          const isToldAgain = event.id === reply?.id; // by slow motion, after a reload
          if (!isToldAgain) reply = { id: event.id, at, isEdit };
          isEdit = false;
        }
        if (!(event.answer > 0)) last = event.id;
      }
      if (event.type === "picked") last = event.message; // the chat goes on with this one of several answers
      if (event.type === "snapshot") {
        last = event.messages?.at(-1)?.id ?? null;
        if (last !== reply?.id) reply = null;
      }
    },
    ended,
    did,

    start() {
      isOpen = true;
      if (at >= STEPS.length) go(0);
      missed = false;
    },
    next: () => go(Math.min(at + 1, STEPS.length)),
    close() {
      isOpen = false;
      reply = null;
    },
    again: () => go(0),
  };
}
