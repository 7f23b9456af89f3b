// The stories: which there are, and how far one has come. Knows nothing of the page; the questions are in
// templates/_words_show.html, by the story's name and the number of the step.

const EDIT = "edit"; // the step changes the first question, in place of asking a further one

const STORIES = {
  remembers: { steps: ["ask", "ask", "ask"], max_tokens: 80 },
  calculator: { steps: ["ask", "ask"], max_tokens: 160, calculates: true },
  long: { steps: ["ask", "ask"], max_tokens: 450 },
  change: { steps: ["ask", "ask", EDIT], max_tokens: 120 },
};

/** `saved`: {name, step, look, conversation} of a story that was begun, or null. `step` is the one that was asked last,
    from 1; `look` the figures of its answer, once it has ended. */
export function makeStory(saved) {
  let now = saved && STORIES[saved.name] ? saved : null;
  let hasCalculated = false;

  return {
    get now() { return now; },
    get steps() { return now ? STORIES[now.name].steps.length : 0; },
    /** The settings of its answers: always the likeliest token, so that it goes the same way each time, and with the
        cache, which is what all of them are about. */
    settings: (name) => ({ temperature: 0, use_cache: true, max_tokens: STORIES[name].max_tokens }),
    /** What comes next: {name, step, isEdit}, or null at the end. */
    get next() {
      if (!now || now.step >= this.steps) return null;
      return { name: now.name, step: now.step + 1, isEdit: STORIES[now.name].steps[now.step] === EDIT };
    },
    /** Whether the last answer should have used the calculator and did not. */
    get missedCalculator() { return Boolean(now?.look && STORIES[now.name].calculates && !now.hasCalculated); },

    /** The server has taken the question of a step. */
    asked(name, step) {
      hasCalculated = false;
      now = { name, step, look: null, conversation: now?.name === name && step > 1 ? now.conversation : null };
    },
    called() { hasCalculated = true; },
    answered(figures) { if (now && !now.look) now = { ...now, look: figures, hasCalculated }; },
    /** It belongs to one chat. */
    belongsTo(conversation) { if (now && !now.conversation) now = { ...now, conversation }; },
    end() { now = null; },
  };
}
