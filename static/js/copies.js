// What several answers to one question cost the memory: the part of the numbers called `copies`.

import { fill } from "./dom.js";
import { bytes, count } from "./format.js";
import { say } from "./words.js";

export function mountCopies(element) {
  return {
    /** `numbers`: undefined where there are no copies. */
    show(numbers, bytesPerToken) {
      element.hidden = !numbers;
      element.dataset.value = numbers?.copied_bytes ?? 0;
      if (!numbers) return;
      const { rows, prompt_tokens: prompt } = numbers;
      fill(element, "copied_tokens", count(numbers.copied_tokens));
      fill(element, "copied_bytes", bytes(numbers.copied_bytes));
      fill(element, "prompt_tokens", count(prompt));
      fill(element, "copied_times", rows === 1 ? say("copies.once") : say("copies.times", { rows }));
      fill(element, "tokens_held", count(numbers.tokens));
      fill(element, "bytes_held", bytes(numbers.bytes_used));
      fill(element, "copies_formula", say("copies.formula", {
        rows, prompt: count(prompt), each: count(bytesPerToken), bytes: count(numbers.copied_bytes),
      }));
    },
  };
}
