// The page's sentences. They are written once, in templates/_words.html.

import { pageJson } from "./dom.js";

const words = pageJson("page-words");

/** The sentence `key` with its `{slots}` filled; an unknown key is empty. */
export function say(key, values = {}) {
  return (words[key] ?? "").replace(/\{(\w+)\}/g, (_, name) => String(values[name] ?? ""));
}

export const knows = (key) => key in words;

/** Sentences one after the other; empty ones are left out. A Chinese full stop brings its own space. */
export function together(...sentences) {
  return sentences.filter(Boolean).reduce((said, next) => `${said}${/[。！？]$/.test(said) ? "" : " "}${next}`, "").trim();
}
