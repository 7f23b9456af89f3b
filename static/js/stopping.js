// Stopping: what is being written, what the server has not named yet, and what was never sent.

import { say } from "./words.js";

/** `takeBack()` takes back a question that was never sent, and says whether there was one. */
export function mountStopping({ channel, transcript, slow, notice, takeBack }) {
  const told = new Set(); // the replies that the server was told to stop
  let isWanted = false;   // for all that is being written, also what has no name yet

  function one(message) {
    told.add(message);
    if (!channel.tell({ type: "stop", message })) notice.show(say("notice.offline"));
  }

  function goOn() {
    if (!isWanted) return;
    for (const id of transcript.writingIds) if (!told.has(id)) one(id);
  }

  return {
    one,
    goOn,
    /** There is nothing to be stopped any more. */
    forget() {
      isWanted = false;
      slow.holdAgain();
    },
    stop() {
      if (takeBack()) return;
      slow.flowToEnd(); // what has been written already is shown, and the rest is not waited for
      isWanted = true;
      told.clear();
      goOn();
    },
  };
}
