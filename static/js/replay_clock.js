// Where a replay stands, and what is due. Knows entries with a time, and nothing of what they hold.

/** `tell(entry)` for each that is due, in order; `begin()` before the first, and whenever it is begun anew. What is due at
    the very beginning is told with it. */
export function makeClock(entries, { tell, begin }) {
  const end = entries.length ? entries.at(-1).at : 0;
  let next = 0;
  let at = 0;

  function tellUntil(time) {
    while (next < entries.length && entries[next].at <= time) tell(entries[next++]);
    at = Math.min(Math.max(at, time), end);
  }

  return {
    /** Milliseconds go by. */
    advance(ms) { tellUntil(at + ms); },
    /** Up to the next token, or the next piece that was read, and what belongs to it. */
    step() {
      const from = next;
      while (next < entries.length) {
        const entry = entries[next++];
        tell(entry);
        at = entry.at;
        if (entry.isStep) break;
      }
      return next > from;
    },
    /** To where it stood before the newest step. */
    back() {
      const stepped = entries.slice(0, next).findLastIndex((entry) => entry.isStep);
      const before = entries.slice(0, Math.max(0, stepped)).findLastIndex((entry) => entry.isStep);
      this.restart();
      while (next <= before) {
        at = entries[next].at;
        tell(entries[next++]);
      }
    },
    /** To any time; back is from the beginning. */
    seek(time) {
      if (time < at) this.restart();
      tellUntil(time);
      at = Math.min(time, end);
    },
    restart() {
      next = 0;
      at = 0;
      begin();
      tellUntil(0);
    },
    get at() { return at; },
    get end() { return end; },
    get isOver() { return next >= entries.length; },
  };
}
