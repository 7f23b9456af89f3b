// The memory of all chats, of the weights and of the whole program: numbers, and bars to one scale.

import { fill, setText, slot } from "./dom.js";
import { bytes, count } from "./format.js";
import { say } from "./words.js";

export function mountMachine(element) {
  function bar(name, part, size, scale) {
    slot(element, `bar_${name}`).querySelector(`.amount__${part}`)
      .setAttribute("width", scale ? `${(100 * size) / scale}%` : "0%");
  }

  return {
    show(pool, model, process) {
      const { bytes_used: used = 0, bytes_reserved: reserved = 0 } = pool;
      const { resident_bytes: resident = 0, device_bytes: device = 0 } = process;
      const weights = model.weight_bytes ?? 0;
      fill(element, "model", model.adapter ? say("panel.adapted", { name: model.name, adapter: model.adapter }) : model.name ?? "");
      const scale = Math.max(resident, device, weights, reserved);
      fill(element, "weights", bytes(weights));
      fill(element, "pool_used", bytes(used));
      fill(element, "pool_reserved", bytes(reserved));
      fill(element, "resident", bytes(resident));
      fill(element, "device", bytes(device));
      slot(element, "device_row").hidden = !device;
      bar("weights", "whole", weights, scale);
      bar("cache", "reserved", reserved, scale);
      bar("cache", "used", used, scale);
      bar("resident", "whole", resident, scale);
      bar("device", "whole", device, scale);
      setText(slot(element, "rows"), say("panel.rows", { used: count(pool.rows_used), rows: count(pool.rows) }));
      fill(element, "pool_tokens", count(pool.tokens));
      fill(element, "evictions", count(pool.evictions));
    },
  };
}
