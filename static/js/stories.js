// The ready stories: begun with a click on the empty page, gone on with by the button over the text box.

import { setText, slot } from "./dom.js";
import { awaitFigures } from "./reply_figures.js";
import { makeStory } from "./story_steps.js";
import { tab } from "./storage.js";
import { say, together } from "./words.js";

/** `send(text, {isEdit, settings}, settled)` asks a question; `isBusy()`: none can be asked now; `conversation()`: the chat
    of this page, or null. `begun()` is told when a story begins. */
export function mountStories({ welcome, bar, send, isBusy, conversation, begun }) {
  const story = makeStory(tab.get("story"));
  const next = bar.querySelector("[data-action=next]");
  if (story.now && story.now.conversation !== conversation()) story.end();

  function changed() {
    tab.set("story", story.now);
    paint();
  }

  function paint() {
    const { now } = story;
    bar.hidden = now === null;
    if (!now) return;
    setText(slot(bar, "title"), say(`story.${now.name}.title`));
    setText(slot(bar, "step"), say("story.step", { step: now.step, steps: story.steps }));
    setText(slot(bar, "look"), look());
    const coming = story.next;
    next.hidden = coming === null;
    next.setAttribute("aria-disabled", String(isBusy()));
    if (coming) setText(slot(next, "next"), say(coming.isEdit ? "story.next_edit" : "story.next", { text: textOf(coming) }));
  }

  function look() {
    const { name, step, look: figures } = story.now;
    if (!figures) return say(`story.${name}.about`);
    const said = say(story.missedCalculator ? "story.without_calculator" : `story.${name}.look${step}`, figures);
    return story.next ? said : together(said, say("story.end"));
  }

  const textOf = ({ name, step }) => say(`story.${name}.ask${step}`);

  function ask(coming) {
    if (isBusy()) return;
    send(textOf(coming), { isEdit: coming.isEdit, settings: story.settings(coming.name) }, (isTaken) => {
      if (!isTaken) return;
      if (coming.step === 1) begun();
      story.asked(coming.name, coming.step);
      story.belongsTo(conversation());
      changed();
    });
  }

  welcome?.addEventListener("click", (event) => {
    const card = event.target.closest("[data-story]");
    if (card) ask({ name: card.dataset.story, step: 1, isEdit: false });
  });
  next.addEventListener("click", () => { if (story.next) ask(story.next); });

  function end() {
    story.end();
    changed();
  }

  bar.querySelector("[data-action=close]").addEventListener("click", end);
  paint();
  const hear = awaitFigures((_, figures) => {
    story.belongsTo(conversation());
    story.answered(figures);
    changed();
  });

  return {
    receive(event) {
      if (!story.now) return;
      const isTold = story.now.look && !story.next;
      if (isTold && event.type === "message" && event.role === "user" && !event.repeat) end(); // the person goes on by themselves
      if (event.type === "tool_call" && event.state === "done") story.called();
      hear(event);
    },
    paint,
    end,
  };
}
