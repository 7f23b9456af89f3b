// The fields of the what-if page: for each number a slider and a box to type in, which follow each other.

import { count } from "./format.js";

const range = (from, to, step) => Array.from({ length: Math.floor((to - from) / step) + 1 }, (_, i) => from + i * step);

/** 1, 2, 3, 4, 6, 8, 12, 16 …: powers of two, and the one between. */
function doublings(most) {
  const stops = [1];
  for (let power = 2; power <= most; power *= 2) stops.push(power, ...(power > 1 && power * 1.5 <= most ? [power * 1.5] : []));
  return stops;
}

/** What a slider can be moved to. A box takes any number between the limits. */
function stopsOf(name, [least, most], shape) {
  if (name === "kv") return range(1, shape.heads, 1).filter((n) => shape.heads % n === 0);
  if (name === "heads") return [...range(least, 64, 1), ...range(72, most, 8)];
  if (name === "head") return [1, 2, 4, 8, ...range(16, most, 16)];
  if (name === "context") return doublings(most);
  if (name === "people") return [1, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 50, 75, 100, 150, 200, 300, 500, 1000, 2000, 5000, most];
  return range(least, most, 1);
}

const nearest = (stops, value) => stops.reduce((best, stop, index) => (
  Math.abs(stop - value) < Math.abs(stops[best] - value) ? index : best), 0);

/** `changed` shows what the fields say now, and gives the shape that it made of them. */
export function mountFields(form, known, { changed }) {
  const boxes = Object.fromEntries(Object.keys(known.limits).map((name) => [name, form.elements[name]]));
  const sliders = Object.fromEntries([...form.querySelectorAll("[data-slider]")].map((each) => [each.dataset.slider, each]));
  const chips = [...form.querySelectorAll("[data-preset]")];
  const stops = {};

  function write(shape) {
    for (const [name, box] of Object.entries(boxes)) box.value = shape[name];
    form.elements.bits.value = shape.bits;
  }

  form.addEventListener("input", (event) => {
    const name = event.target.dataset.slider;
    if (name) boxes[name].value = stops[name][event.target.valueAsNumber];
    changed();
  });
  form.addEventListener("change", (event) => {
    if (event.target.type === "checkbox") changed();
    else write(changed()); // what was typed becomes what is shown; the note about it stays
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    write(changed());
  });
  for (const chip of chips) {
    chip.addEventListener("click", (event) => {
      if (event.metaKey || event.ctrlKey || event.shiftKey) return; // a link that may be opened elsewhere
      event.preventDefault();
      write({ ...known.presets.find((preset) => preset.key === chip.dataset.preset).shape });
      changed();
    });
  }

  return {
    /** What stands in the fields, as a link would carry it. */
    raw: () => ({
      ...Object.fromEntries(Object.entries(boxes).map(([name, box]) => [name, box.value])),
      bits: form.elements.bits.value || undefined,
    }),
    get withWeights() { return form.elements.weights.checked; },
    /** Whether there are any to be counted. */
    set knowsWeights(is) { form.elements.weights.disabled = !is; },

    /** Moves the sliders to a shape, and marks the model that it is. */
    show(shape, preset) {
      for (const [name, slider] of Object.entries(sliders)) {
        stops[name] = stopsOf(name, known.limits[name], shape);
        slider.max = stops[name].length - 1;
        slider.disabled = stops[name].length === 1;
        const at = nearest(stops[name], shape[name]);
        if (slider.valueAsNumber !== at) slider.value = at;
        slider.setAttribute("aria-valuetext", count(shape[name]));
      }
      for (const chip of chips) {
        if (chip.dataset.preset === preset) chip.setAttribute("aria-current", "true");
        else chip.removeAttribute("aria-current");
      }
    },
  };
}
