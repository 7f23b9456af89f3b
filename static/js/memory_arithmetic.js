// The arithmetic of the what-if page: what a key-value cache takes, for any shape of model. app/web/what_if.py
// does the same, and a test holds the two together. Bytes are BigInts, so that both agree to the last one.

const WHOLE = /^-?[0-9]{1,15}$/;
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
  const owner = presets.find((preset) => hasWeightsOf(shape, preset)) ?? null;
  const weights = owner && weightBytes(owner, shape.bits);
  const held = withWeights && weights ? weights : 0n;
  const needed = used + held;
  return {
    shape,
    preset: presets.find((preset) => isShapeOf(shape, preset))?.key ?? null,
    bytes_per_token: cacheBytes({ ...shape, context: 1, people: 1 }),
    bytes_each: each,
    bytes: used,
    unshared_bytes: cacheBytes({ ...shape, kv: shape.heads }),
    times: shape.heads / shape.kv,
    weights_of: owner?.key ?? null,
    weight_bytes: weights,
    needed_bytes: needed,
    machines: Object.entries(machines).map(([key, bytes]) => {
      const size = BigInt(bytes);
      const free = size > held ? size - held : 0n;
      return { key, bytes: size, permille: (needed * 1000n) / size, fits: needed <= size, people: free / each };
    }),
  };
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

// --- the drawing: squares whose areas are to one scale

const LARGEST_SIDE = 10; // of the largest machine, in units of the drawing
const WIDEST = 14;       // and of what is needed, before everything is drawn smaller

/** The sides of squares with these areas (bytes), the first of which is what is needed. */
export function sides(neededBytes, machineBytes) {
  const unit = LARGEST_SIDE / Math.sqrt(Math.max(...machineBytes));
  const wanted = Math.sqrt(neededBytes) * unit;
  const shrunk = wanted > WIDEST ? WIDEST / wanted : 1;
  return [wanted, ...machineBytes.map((bytes) => Math.sqrt(bytes) * unit)].map((side) => side * shrunk);
}
