// Events held back, to be let go one token at a time. Knows the server's events and nothing of the page.
//
// A step is one token, or the reading of a prompt (it is marked `isStep`: what is shown slowly says nothing of speed);
// whatever comes behind it, up to the next step, belongs to it.
// No event is dropped but by a snapshot, which has in it all that was held, and none overtakes another of its reply.
// Each step knows its turn, an answer or several side by side: another that was asked for meanwhile, in another tab,
// is not counted to this one.

const AT_ONCE = new Set(["conversation", "listed", "error"]); // names, addresses, what was refused: not of a reply

/** `pass(event)` gives an event on. `changed()` is told whenever more or less is held. `writing`: ids of the replies
    that are being written now. */
export function holdBack(pass, changed, writing = []) {
  const seen = new Set(); // replies whose reading has begun
  let held = [];          // the first is a step: what is none passes when nothing is held
  let shown = [];         // what has passed of the turn that is shown now, from its beginning on
  let isOn = false;
  let flows = false;      // what comes is not held, though slow motion is on
  let turn = null;        // the newest, called by the id of its first answer
  const turnOf = new Map();
  let open = new Set();   // ids of replies of which the server has not told the end

  const isStep = (event) => event.isStep === true;

  function marked(event) {
    const step = { ...event, isStep: true, turn: turnOf.get(String(event.message)) };
    if (event.type === "token" && event.tokens?.length) return step;
    if (event.type !== "reading" || seen.has(event.message)) return event;
    seen.add(event.message);
    return step;
  }

  function note(event) {
    if (beginsReply(event)) noteReply(event.id, !(event.answer > 0));
    if (event.type === "done") open.delete(String(event.message));
  }

  function noteReply(id, isFirst) {
    if (isFirst) turn = String(id);
    turnOf.set(String(id), turn);
    open.add(String(id));
  }

  /** Gives an event on, and keeps it as long as its turn may have to be shown once more. */
  function show(event) {
    if (beginsReply(event) && !(event.answer > 0)) shown = [];
    if (shown.length || beginsReply(event)) shown.push(event);
    pass(event);
  }

  function flow() {
    const all = held;
    held = [];
    all.forEach(show);
    changed();
  }

  writing.forEach((id, index) => noteReply(id, index === 0));

  return {
    take(event) {
      note(event);
      if (event.type === "snapshot") {
        held = [];
        shown = [];
        open = new Set();
        beingWritten(event.messages ?? []).forEach((id, index) => noteReply(id, index === 0));
        flows &&= open.size > 0;
      }
      if (AT_ONCE.has(event.type) || event.type === "snapshot") pass(event);
      else if (!isOn || flows) show(event);
      else {
        for (const piece of onePerToken(event).map(marked)) {
          if (held.length || isStep(piece)) held.push(piece);
          else show(piece);
        }
      }
      changed();
    },

    /** Lets the next step go -> its event, or null where nothing is held. */
    next() {
      if (!held.length) return null;
      const step = held[0];
      let untold = null; // what no numbers have come for
      do {
        const event = held.shift();
        show(event);
        if (event.type === "reading" || (event.type === "token" && event.tokens.length)) untold = event;
        if (event.type === "cache") untold = null;
      } while (held.length && !isStep(held[0]));
      const cache = untold && numbersAfter(untold, held);
      if (cache) show({ type: "cache", cache });
      changed();
      return step;
    },

    /** Lets everything go, what is held and what comes until `holdAgain`: told to stop, the server writes on for a step
        or two, and says that it has ended only behind them. */
    flowToEnd() {
      flows = true;
      flow();
    },
    holdAgain() { flows = false; },

    set on(is) {
      isOn = is;
      flows = false;
      if (!is) flow();
    },
    get on() { return isOn; },

    /** What stands at the front: "token", "reading" or null. */
    get nextKind() { return held[0]?.type ?? null; },
    /** Tokens of this turn that the model has written already and that are not shown yet. */
    get heldTokens() {
      return held.filter((event) => isStep(event) && event.type === "token" && event.turn === held[0].turn).length;
    },
    /** Whether the server is still at this turn; where nothing is held, at any. */
    get isWriting() { return held.length ? [...open].some((id) => turnOf.get(id) === held[0].turn) : open.size > 0; },

    /** What another page can go on with: the turn that is shown now, as far as it is, and what is held. null where all
        of it is shown, or its beginning is not known. */
    get unfinished() { return isOn && shown.length && (held.length || open.size) ? { shown, held } : null; },

    /** Goes on with what a page before this one left. */
    resume(left) {
      open = new Set();
      for (const event of [...left.shown, ...left.held]) {
        note(event);
        if (event.type === "reading") seen.add(event.message);
      }
      left.shown.forEach(show);
      held = left.held;
      changed();
    },

    /** Drops it all: the chat is gone. */
    drop() { [held, shown] = [[], []]; },
  };
}

/** Whether a reply begins to be written, or goes on. */
const beginsReply = (event) => event.type === "message" && event.role === "assistant" && !event.repeat;

const beingWritten = (views) => views.flatMap((view) => [view, ...(view.others ?? [])])
  .filter((view) => view.state === "writing").map((view) => String(view.id));

/** A `token` event as one for each of its tokens: the same text, cut where the tokens end. */
export function onePerToken(event) {
  if (event.type !== "token" || !(event.tokens?.length > 1)) return [event];
  const texts = textOfEach(event.text ?? "", event.tokens.map((token) => token.text));
  return event.tokens.map((token, index) => ({ ...event, text: texts[index], tokens: [token] }));
}

/** `text` in as many pieces as there are tokens. A token that is a mark, or a part of a character, may have none of
    it; the last has what is left, so that nothing is lost. */
function textOfEach(text, tokenTexts) {
  let rest = text;
  const pieces = tokenTexts.map((own) => {
    const start = own ? rest.indexOf(own) : -1;
    // further on it is another token's: only a character whose halves came before may stand in between
    const end = start >= 0 && start <= 4 ? start + own.length : 0;
    const piece = rest.slice(0, end);
    rest = rest.slice(end);
    return piece;
  });
  pieces[pieces.length - 1] += rest;
  return pieces;
}

/** The `cache` object as it stood after a `reading` or one `token`: the next one that is held, less the tokens between.
    The contract's own sums: a token stands at the position that counts those before it. null where it cannot be told. */
export function numbersAfter(last, held) {
  const between = [];
  let after = null;
  for (const event of held) {
    if (event.message && event.message !== last.message) return null; // answers side by side share the numbers
    if (event.type === "token") between.push(...event.tokens);
    if (event.type === "cache") {
      after = event.cache;
      break;
    }
  }
  if (!after?.conversation || !between.length) return null;
  const usesCache = after.conversation.tokens >= between.at(-1).position;
  const inCache = last.type === "reading" ? last.done : last.tokens[0].position; // the last one made is not in it yet
  const tokens = usesCache ? inCache : after.conversation.tokens;
  const forced = between.filter((token) => token.origin === "forced").length;
  const skipped = between.reduce((sum, token) => sum + token.position, 0);
  const { last_reply: reply, conversation: here, model } = after;
  return {
    ...after,
    conversation: { ...here, tokens, bytes_used: tokens * (model?.bytes_per_token ?? 0) },
    last_reply: {
      ...reply,
      written: reply.written - (between.length - forced),
      forced: reply.forced - forced,
      without_cache: reply.without_cache - skipped,
    },
  };
}
