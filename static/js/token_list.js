// The tokens of a chat in the order of the cache, kept from the server's events. Knows nothing of the page.
//
//     list     t t t t t t t t w      all that the model is given; `cached` of them are in the cache
//                              ^      chosen, but not computed with yet
//
// `reading` and `token` events let it grow, a `strip` event says what it should be, and where it cannot be known from
// events it says so: `isLost`, and whoever holds it fetches the whole.

/** `isLost`: whether there are tokens that it was not told of. */
export function newTokenList(isLost = false) {
  let list = [];
  let cached = 0;
  let live = null;       // the message that is being written into the cache
  let changedFrom = 0;   // the first cell that is not as it was when `taken` last

  const touch = (at) => { changedFrom = Math.min(changedFrom, at); };

  function setCached(count) {
    const now = Math.min(count, list.length);
    touch(Math.min(now, cached));
    cached = now;
  }

  function cut(length) {
    if (length >= list.length) return;
    list.length = length;
    touch(length);
    cached = Math.min(cached, length);
  }

  /** What a token is in this turn; `source` keeps what it was when it first came. */
  function setOrigin(token, origin) {
    if (token.origin === origin) return;
    if (token.origin === "written" || token.origin === "forced") token.source ??= token.origin;
    token.origin = origin;
  }

  const handlers = {
    reading(event) {
      if (!event.tokens) return; // not into the cache, or not into the row of this chat
      const from = event.done - event.tokens.length;
      if (from > list.length) {
        isLost = true;
        return;
      }
      if (live !== event.message) {
        for (let at = 0; at < event.reused; at += 1) setOrigin(list[at], "reused");
        touch(0);
      }
      live = event.message;
      // the tokens after what is read are not remembered in this form any more
      cut(from);
      for (const token of event.tokens) list.push(token);
      setCached(event.done);
    },

    token(event) {
      if (event.message !== live || !event.tokens?.length) return;
      for (const token of event.tokens) {
        if (token.position > list.length) {
          isLost = true;
          return;
        }
        cut(token.position);
        list.push({ ...token, message: event.message, turn: list.at(-1)?.turn ?? 1 });
      }
      touch(cached);
      setCached(event.tokens.at(-1).position); // it is drawn from all that stand before it
    },

    cache({ cache }) {
      if (cache?.conversation) setCached(cache.conversation.tokens);
    },

    done(event) {
      if (event.stats?.use_cache === false) isLost = true; // what it read and wrote went by
    },

    strip(event) {
      if (!event.tokens) isLost = true;
      else if (event.tokens.some(({ id }, at) => list[at]?.id !== id)) isLost = true;
      else {
        event.tokens.forEach(({ origin, source, message, turn }, at) => {
          const token = list[at];
          if (token.origin !== origin || token.message !== message) touch(at);
          Object.assign(token, { origin, source, message, turn });
        });
        setCached(event.tokens.length);
      }
    },

    /** These are what is in the cache, whatever was before: told by a replay. */
    cells({ tokens }) {
      list = [...tokens];
      cached = list.length;
      live = null;
      touch(0);
    },

    picked() { isLost = true; },
    snapshot() { isLost = true; },
  };

  return {
    get list() { return list; },
    get cached() { return cached; },
    /** "cached", or of those that are not: "last", with which nothing can have been computed, or "left". */
    stateOf: (at) => (at < cached ? "cached" : at === list.length - 1 ? "last" : "left"),
    /** Whether the whole has to be fetched. */
    get isLost() { return isLost; },
    /** Whether anything is not as it was when `taken` last. */
    get isChanged() { return changedFrom < Infinity; },

    receive(event) { handlers[event.type]?.(event); },

    /** The whole, as fetched. */
    replace({ tokens, waiting }) {
      list = [...tokens, ...waiting];
      cached = tokens.length;
      changedFrom = 0;
      isLost = false;
    },

    /** The first cell that has changed since this was asked last. */
    taken() {
      const from = changedFrom;
      changedFrom = Infinity;
      return from;
    },
  };
}

/** The places [from, to) of a message's tokens, or of one of its tool calls; null where it has none. */
export function placesOf(list, message, call = null) {
  const isIts = (token) => token.message === message && (call === null || token.call === call);
  const from = list.findIndex(isIts);
  if (from < 0) return null;
  let to = from;
  while (to < list.length && isIts(list[to])) to += 1;
  return [from, to];
}
