// What is raced: the question, the length of the answer, the seed; three ready ones; and how long measuring takes.

import { isBlank } from "./blank.js";
import { count, number } from "./format.js";
import { growWithText } from "./grow.js";
import { meansSend } from "./keys.js";
import { estimate, positionsOf } from "./race_figures.js";
import { say } from "./words.js";

const AFTER_MS = 300;

/** `tells(text, isEdited)`: what measuring this would take. `started(wish)`: the form was sent. */
export function mountRaceForm({ form, root, limits, pace, tells, started }) {
  const prompt = form.querySelector("#race-prompt");
  const length = form.querySelector("#race-length");
  const choice = form.querySelector("#race-choice");
  const seed = form.querySelector("#race-seed");
  const presets = [...form.querySelectorAll("[data-preset]")];
  let timer = 0;
  let asking = null;

  const whole = (input, fallback) => Number.isInteger(input.valueAsNumber) ? input.valueAsNumber : fallback;
  const tokens = () => Math.min(limits.tokens, Math.max(1, whole(length, 100)));

  /** With the chat's own marks around the text; null where it cannot be told. */
  async function promptTokens(signal) {
    try {
      const answer = await fetch(`${root}api/count`, {
        method: "POST",
        credentials: "same-origin",
        headers: { "Content-Type": "application/json" },
        body: JSON.stringify({ conversation: null, text: prompt.value }),
        signal,
      });
      return answer.ok ? (await answer.json()).whole : null;
    } catch { return null; }
  }

  async function update(isEdited) {
    asking = new AbortController();
    const { signal } = asking;
    const many = await promptTokens(signal);
    if (signal.aborted || many === null) return;
    const figures = { few: count(positionsOf(many, tokens(), true)), many: count(positionsOf(many, tokens(), false)) };
    const takes = estimate(pace(), many, tokens());
    if (takes === null) tells(say("race.positions", figures), isEdited);
    else tells(say("race.estimate", { ...figures, seconds: about(takes) }), isEdited);
  }

  function refresh(isEdited = false) {
    clearTimeout(timer);
    asking?.abort();
    if (isBlank(prompt.value)) tells(say("race.empty"), isEdited);
    else timer = setTimeout(update, AFTER_MS, isEdited);
  }

  function mark(event) {
    for (const preset of presets) {
      const isThis = prompt.value === preset.dataset.text && length.value === preset.dataset.tokens;
      preset.setAttribute("aria-pressed", String(isThis));
    }
    seed.disabled = Number(choice.value) === 0;
    refresh(event !== undefined);
  }

  for (const preset of presets) {
    preset.addEventListener("click", () => {
      prompt.value = preset.dataset.text;
      length.value = preset.dataset.tokens;
      prompt.dispatchEvent(new Event("input", { bubbles: true }));
    });
  }
  form.addEventListener("input", mark);
  prompt.addEventListener("keydown", (event) => {
    if (!meansSend(event)) return;
    event.preventDefault();
    form.requestSubmit();
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    if (isBlank(prompt.value)) {
      tells(say("race.empty"), true);
      prompt.focus();
      return;
    }
    clearTimeout(timer); // what it takes is told by the measuring itself
    asking?.abort();
    started({ text: prompt.value, max_tokens: tokens(), seed: Math.max(0, whole(seed, 42)), temperature: Number(choice.value) });
  });
  growWithText(prompt);
  mark();

  return { refresh: () => refresh() };
}

/** A guess is told in round figures. */
export function about(s) {
  const step = s < 10 ? 1 : s < 60 ? 5 : 10;
  return say("unit.seconds", { seconds: number(Math.max(1, Math.round(s / step) * step)) });
}
