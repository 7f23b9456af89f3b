// Wishes about an answer that is there: once more, exactly so, further, or this one of several.

import { say } from "./words.js";

const REPEATED = ["seed", "temperature", "top_k", "max_tokens", "use_cache"];

/** `isBusy()` says whether an answer is being written; `confirm` asks before later turns are removed. */
export function mountAnsweringAgain({ channel, settings, notice, confirm, isBusy, focus }) {
  async function again(message, followers, wanted) {
    if (isBusy()) return notice.show(say("notice.busy"));
    if (followers > 0 && !await confirm(say("ask.again", { count: followers }), say("ask.again_yes"))) return;
    notice.hide();
    channel.ask({ type: "regenerate", message: message.id, settings: wanted });
    focus();
  }

  /** The settings that make the same answer once more. */
  function repeating(made) {
    const { n, ...wanted } = settings.current; // one answer, whatever was asked for
    for (const name of REPEATED) if (made[name] !== null && made[name] !== undefined) wanted[name] = made[name];
    return wanted;
  }

  return {
    regenerate: (message, followers) => again(message, followers, settings.current),
    repeat: (message, followers) => again(message, followers, repeating(message.settings)),
    continue(message) {
      if (isBusy()) return notice.show(say("notice.busy"));
      channel.ask({ type: "continue", message: message.id, settings: settings.current });
    },
    pick(message) {
      notice.hide();
      if (!channel.tell({ type: "pick", message: message.id })) return notice.show(say("notice.offline"));
      focus();
    },
  };
}
