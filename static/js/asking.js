// The question that was sent and that the server has not taken yet: sent, new or edited, then settled or taken back.
// There is one at a time.

import { say } from "./words.js";

/** `refused()` is told where the server did not take a question. */
export function mountAsking({ channel, composer, status, notice, confirm, settings, transcript, slow, refused }) {
  let asked = null; // {request, text, isTyped, settled}

  const isBusy = () => asked !== null || transcript.writingIds.length > 0;

  function settle(event) {
    const { text, isTyped, settled } = asked;
    const isTaken = event.type !== "error";
    asked = null;
    if (!isTaken) refused();
    else if (isTyped) composer.taken(text);
    settled?.(isTaken);
    if (isTaken && slow.isOn) slow.focus(); // there, Space is the next token
    else if (isTaken) composer.focus();
    composer.sending(false);
    status.sending(false);
  }

  function send(text, frame, settled, wanted = settings.current) {
    if (isBusy()) notice.show(say("notice.busy"));
    if (isBusy() || !composer.fits(text)) {
      settled?.(false);
      return;
    }
    notice.hide();
    const request = channel.ask({ base: transcript.lastId, ...frame, text, settings: wanted });
    asked = { request, text, isTyped: frame.type === "send", settled };
    if (asked.isTyped) composer.focus();
    composer.sending(true);
    composer.busy = true;
    status.sending(true);
  }

  return {
    /** Whether nothing can be asked now. */
    isBusy,

    /** Sends a question. `settled(isTaken)` is told once whether the server took it. `wanted`: the settings. */
    send,

    /** Sends a changed question. Its own answer is replaced unasked; further turns are not. */
    async edit(message, followers, text, settled) {
      const isWanted = isBusy() || followers <= 1 || await confirm(say("ask.edit", { count: followers }), say("ask.edit_yes"));
      if (isWanted) send(text, { type: "edit", message: message.id }, settled);
      else settled(false);
    },

    /** An event of the server, which may be the answer to what was asked. */
    receive(event) { if (event.request && event.request === asked?.request) settle(event); },

    /** The question that was being changed to `text` is gone from the chat. */
    rescue(text) {
      composer.rescue(text);
      if (asked?.text === text) asked.isTyped = true; // it leaves the box again once the server has it
      else notice.show(say("notice.rescued"));
    },

    /** A question that was never sent goes back into the box -> whether there was one. */
    takeBack() {
      if (!asked || channel.isOpen) return false;
      channel.drop(asked.request);
      settle({ type: "error" });
      composer.busy = isBusy();
      return true;
    },
  };
}
