// What the memory of this chat costs: the factors that grow. What a factor is stands in templates/_cost.html, and is
// shown by css/cost.css.

import { fill } from "./dom.js";
import { bytes, count } from "./format.js";
import { say } from "./words.js";

/** How much of the memory one more token looks up: a layer with a window looks back no further than that. */
export function bytesRead(model, tokens, bytesUsed) {
  if (!model.windows) return bytesUsed;
  const seen = model.windows.reduce((sum, window) => sum + (window ? Math.min(tokens, window) : tokens), 0);
  return Math.floor((seen * model.bytes_per_token) / model.n_layer);
}

/** Which layers look back less far than over everything, in a sentence; empty where none does. */
export function windowsOf(model) {
  const short = (model.windows ?? []).filter(Boolean);
  if (!short.length) return "";
  return say("panel.windows", {
    short: count(short.length), layers: count(model.n_layer), window: count(Math.min(...short)),
  });
}

export function mountCost(element) {
  const factor = (name, text) => {
    for (const place of element.querySelectorAll(`button[data-factor="${name}"]`)) {
      if (place.textContent !== text) place.textContent = text;
    }
  };

  return {
    show(model, tokens, bytesUsed) {
      element.hidden = !model.n_layer;
      if (!model.n_layer) return;
      factor("layers", say("cost.layers", { layers: count(model.n_layer) }));
      factor("heads", say("cost.heads", { heads: count(model.n_kv_head) }));
      factor("dim", say("cost.dim", { dim: count(model.head_dim) }));
      factor("element", say("cost.element", { element: count(model.bytes_per_element) }));
      factor("tokens", say("cost.tokens", { tokens: count(tokens) }));
      factor("bytes", say("cost.bytes", { bytes: count(bytesUsed) }));
      fill(element, "bytes_of_chat", bytes(bytesUsed));
      fill(element, "type", model.cache_dtype);
      const sharing = Math.round(model.n_head / model.n_kv_head);
      for (const line of element.querySelectorAll("[data-sharing]")) {
        line.hidden = (line.dataset.sharing === "yes") !== sharing > 1;
      }
      fill(element, "query_heads", count(model.n_head));
      fill(element, "kv_heads", count(model.n_kv_head));
      fill(element, "sharing", count(sharing));
      fill(element, "unshared", bytes(bytesUsed * sharing));
    },
  };
}
