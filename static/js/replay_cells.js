// The tokens of a replay as the cells of the strip. Their text is known where they were saved with the chat; of a prompt
// that no longer follows from it, since old turns were left out, say, there is nothing to show but that they were there.

/** `messages`: [{message, turn, tokens}] in order, as app/chat/replay_cells.py writes them. */
export function savedTokens(messages) {
  const cell = ({ message, turn }, token, position) => ({ ...token, message, turn, position });

  return {
    /** The tokens that a run was given: `prompt` of them, up to the token `first` of its own message. */
    prompt({ message, first, prompt }) {
      const cells = [];
      for (const each of messages) {
        const isOwn = each.message === message;
        for (const token of isOwn ? each.tokens.slice(0, first) : each.tokens) cells.push(cell(each, token, cells.length));
        if (isOwn) break;
      }
      if (cells.length === prompt) return cells;
      return Array.from({ length: prompt }, (_, position) => ({ id: null, text: "", source: "read", position }));
    },

    /** A token of a reply: the one number `index` of its message. */
    own(message, index, position) {
      const its = messages.find((each) => each.message === message);
      const token = its?.tokens[index];
      return token ? cell(its, token, position) : { id: null, text: "", source: "written", message, position };
    },
  };
}

/** A cell as it is told: its origin, and its source only where that says more. */
export function told({ source, ...cell }, origin) {
  return source === "read" || source === origin ? { ...cell, origin } : { ...cell, source, origin };
}
