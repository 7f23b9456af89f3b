// The end of a chat: deleted, here or in another tab, or forgotten with all the others. The page leaves it for a new one.

import { ask } from "./dialogs.js";
import { tab } from "./storage.js";
import { say } from "./words.js";

/** `dialog` asks before all is forgotten. */
export function mountForgetting({ root, dialog, channel, slow, tour, notice, transcript, composer }) {
  let expected = null; // the chat whose end was asked for here: what is told of it is no news

  return {
    remove(id) {
      expected = id;
      channel.ask({ type: "delete", conversation: id });
    },

    /** The chat of this page was deleted: what was typed goes along to the next page. */
    leave(conversation) {
      slow.drop();
      tour.did("forget");
      tab.set("chat_path", null);
      for (const text of transcript.edited) composer.rescue(text);
      const hasDraft = composer.carryOver();
      if (conversation !== expected) tab.set("notice", say(hasDraft ? "notice.deleted_draft" : "notice.deleted"));
      location.assign(root);
    },

    async forgetAll() {
      if (!await ask(dialog)) return;
      expected = channel.conversation;
      try {
        const answer = await fetch(`${root}api/forget${location.search}`, { method: "POST", credentials: "same-origin" });
        if (!answer.ok) {
          expected = null;
          return notice.show((await answer.json()).text);
        }
        slow.drop();
        sessionStorage.clear();
        tour.did("forget");
        location.assign(root);
      } catch {
        expected = null;
        notice.show(say("notice.forget_failed"));
      }
    },
  };
}
