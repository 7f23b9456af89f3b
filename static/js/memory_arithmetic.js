// The arithmetic of the what-if page: what a key-value cache takes, for any shape of model. app/web/what_if.py
// does the same, and a test holds the two together. Bytes are BigInts, so that both agree to the last one.

const WHOLE = /^-?[0-9]{1,15}$/;
const LARGE_ENOUGH = 10n; // what is less than this part of a machine is shown enlarged, too
const NUMBERS = ["layers", "heads", "kv", "head", "context", "people"];

const clamp = (value, [least, most]) => Math.min(Math.max(value, least), most);

/** The shape that fields or a link ask for, and what had to be changed. `known` is what the server put into the page. */
export function readShape(raw, initial, { limits, bits }) {
  const shape = {};
  const notes = [];
  for (const name of NUMBERS) {
    const text = raw[name];
    const own = clamp(initial[name], limits[name]);
    const isWhole = text !== undefined && WHOLE.test(text);
    shape[name] = isWhole ? clamp(Number(text), limits[name]) : own;
    if (text === undefined || (isWhole && Number(text) === shape[name])) continue;
    const [least, most] = limits[name];
    notes.push({ code: isWhole ? "range" : "number", field: name, least, most, used: shape[name] });
  }
  const isKnown = raw.bits !== undefined && bits.map(String).includes(raw.bits);
  shape.bits = isKnown ? Number(raw.bits) : bits.includes(initial.bits) ? initial.bits : 16;
  if (raw.bits !== undefined && !isKnown) notes.push({ code: "bits", field: "bits", used: shape.bits });
  let kv = Math.min(shape.kv, shape.heads);
  while (shape.heads % kv) kv -= 1;
  if (kv !== shape.kv) notes.push({ code: "divide", field: "kv", heads: shape.heads, used: kv });
  shape.kv = kv;
  return { shape, notes };
}

/** 2 (a key and a value) × layers × KV heads × head size × bytes a number × tokens × people. */
export function cacheBytes({ layers, kv, head, context, people, bits }) {
  return [layers, kv, head, context, people, bits].reduce((product, n) => product * BigInt(n), 2n) / 8n;
}

/** All numbers of the page for a shape. */
export function cost(shape, { presets, machines }, withWeights) {
  const used = cacheBytes(shape);
  const each = cacheBytes({ ...shape, people: 1 });
  const owner = presets.find((preset) => hasWeightsOf(shape, preset) && weightBytes(preset, 8) > 0n) ?? null;
  const weights = owner && weightBytes(owner, shape.bits);
  const held = withWeights && weights ? weights : 0n;
  const needed = used + held;
  const onMachines = Object.entries(machines).map(([key, bytes]) => onMachine(key, BigInt(bytes), needed, held, each));
  const token = cacheBytes({ ...shape, context: 1, people: 1 });
  return {
    shape,
    preset: presets.find((preset) => isShapeOf(shape, preset))?.key ?? null,
    bytes_per_token: token,
    bytes_each: each,
    bytes: used,
    unshared_bytes: cacheBytes({ ...shape, kv: shape.heads }),
    times: shape.heads / shape.kv,
    weights_of: owner?.key ?? null,
    weight_bytes: weights,
    needed_bytes: needed,
    held_bytes: held,
    machines: onMachines,
    closer: closerLook(onMachines, { used, held, each, token }),
  };
}

/** The smallest machine that it fits into, where it is so little of it that it has to be enlarged to be seen: by a round
 *  `factor`, `across` bytes of it from `start` on. `tokens` and `conversations` would fill what the weights leave. */
function closerLook(machines, { used, held, each, token }) {
  const machine = machines.filter(({ fits }) => fits).sort((one, other) => Number(one.bytes - other.bytes))[0];
  if (!machine || used * LARGE_ENOUGH > machine.bytes) return null;
  const size = machine.bytes;
  let factor = 1n;
  while (used * nextRound(factor) <= size) factor = nextRound(factor);
  const across = size / factor;
  const start = held < size - across ? held : size - across;
  return { key: machine.key, bytes: size, factor, across, start, tokens: (size - held) / token, conversations: (size - held) / each };
}

/** 1, 2, 5, 10, 20, 50, … */
const nextRound = (factor) => (String(factor).startsWith("2") ? (factor * 5n) / 2n : factor * 2n);

function onMachine(key, size, needed, held, each) {
  const people = (size > held ? size - held : 0n) / each;
  const room = held > size ? "none" : people === 0n ? "nobody" : people === 1n ? "one" : "people";
  return { key, bytes: size, permille: (needed * 1000n) / size, fits: needed <= size, people, room };
}

export function weightBytes(preset, bits) {
  return preset.parameters === null ? BigInt(preset.weight_bytes) : (BigInt(preset.parameters) * BigInt(bits)) / 8n;
}

const isShapeOf = (shape, preset) => hasWeightsOf(shape, preset)
  && shape.kv === preset.shape.kv && shape.context === preset.shape.context;

/** Whether it is this model, perhaps with other KV heads: those change its weights by little. */
const hasWeightsOf = (shape, { shape: own }) => (
  shape.layers === own.layers && shape.heads === own.heads && shape.head === own.head
);

/** The sides of squares with these areas, to one scale: the first is what is needed, the others are machines, the
 *  largest of which has the side 10; all of them are drawn smaller where the first would be wider than 14. */
export function sides(areas) {
  const unit = 10 / Math.sqrt(Math.max(...areas.slice(1)));
  const all = areas.map((area) => Math.sqrt(area) * unit);
  const shrunk = all[0] > 14 ? 14 / all[0] : 1;
  return all.map((side) => side * shrunk);
}

/** The squares: what is needed, then the machines. `weights` and `cache` fill so many per cent of one from below. */
export function drawing(numbers) {
  const areas = [numbers.needed_bytes, ...numbers.machines.map((machine) => machine.bytes)].map(Number);
  const wide = sides(areas);
  return areas.map((area, index) => {
    const weights = Math.min((100 * Number(numbers.held_bytes)) / area, 100);
    const cache = Math.max((100 * Number(numbers.bytes)) / area, 0.8); // never too thin to be seen
    return { side: Math.max(wide[index], 0.3), weights, cache: Math.min(cache, 100 - weights) };
  });
}

/** The closer look, in per cent of the width: on the whole machine `held` and `used`, and what is enlarged, `start` to
 *  `end`; enlarged, `weights` and `cache`. */
export function closerDrawing({ closer, bytes, held_bytes: held }) {
  if (!closer) return null;
  const part = (some, whole) => (100 * Number(some)) / Number(whole);
  const { bytes: size, start } = closer;
  const across = Number(size) / Number(closer.factor);
  return {
    held: part(held, size),
    used: part(bytes, size),
    start: part(start, size),
    end: Math.min(part(Number(start) + across, size), 100),
    weights: part(held - start, across),
    cache: part(bytes, across),
  };
}
