// The what-if page: mounts its fields and shows what they cost, in the places that the server filled first.

import { copyFrom } from "./copy.js";
import { fill, pageJson, setText, slot } from "./dom.js";
import { bytes, count, number } from "./format.js";
import { closerDrawing, cost, drawing, readShape } from "./memory_arithmetic.js";
import { mountFields } from "./memory_fields.js";
import { drawCloser, drawHeads, drawSquare } from "./memory_drawing.js";
import { mountThemeSwitch } from "./theme_switch.js";
import { say, together } from "./words.js";

const LINK_AFTER_MS = 250; // browsers allow only so many changes of the address
const TOLD_AFTER_MS = 600; // not each step of a slider that is moved on

const known = pageJson("page-data");
const page = document.getElementById("what");
let linkTimer = 0;
let toldTimer = 0;

const fields = mountFields(document.getElementById("what-form"), known, { changed });

function changed() {
  const shape = show(fields.raw());
  clearTimeout(linkTimer);
  linkTimer = setTimeout(() => history.replaceState(null, "", linkTo(shape)), LINK_AFTER_MS);
  clearTimeout(toldTimer);
  toldTimer = setTimeout(tell, TOLD_AFTER_MS);
  return shape;
}

/** What it comes to now, for those who hear the page. */
function tell() {
  setText(document.getElementById("announcer"), together(slot(page, "bytes").textContent, slot(page, "line").textContent));
}

/** Shows what `raw`, the texts of fields or of a link, costs -> the shape that was made of it. */
function show(raw) {
  const { shape, notes } = readShape(raw, known.default, known);
  const numbers = cost(shape, known, fields.withWeights);
  showAnswer(numbers);
  showWeights(numbers);
  showMachines(numbers);
  showCloser(numbers);
  showSharing(numbers);
  showNotes(notes);
  fields.show(shape, numbers.preset);
  return shape;
}

function showAnswer({ shape, ...numbers }) {
  const people = shape.people === 1 ? "what.line" : "what.line_many";
  put("bytes", bytes(Number(numbers.bytes)), numbers.bytes);
  put("line", say(people, { context: count(shape.context), people: count(shape.people) }));
  put("each", say("what.each", { token: bytes(Number(numbers.bytes_per_token)), each: bytes(Number(numbers.bytes_each)) }),
    numbers.bytes_per_token);
  for (const name of ["layers", "kv", "head", "context", "people"]) put(`factor-${name}`, count(shape[name]));
  put("factor-bits", shape.bits === 4 ? "½" : count(shape.bits / 8));
  put("exact", count(numbers.bytes));
}

/** The switch for the weights, and the sentence about what is counted. */
function showWeights(numbers) {
  const owner = known.presets.find((preset) => preset.key === numbers.weights_of);
  const key = !owner ? "weights.none" : owner.parameters === null ? "weights.here" : "weights.of";
  const weights = bytes(Number(numbers.weight_bytes ?? 0));
  put("weights", say(key, { name: owner?.name, bytes: weights }), numbers.weight_bytes ?? 0);
  fields.knowsWeights = Boolean(owner);
  put("counted", say(!owner ? "counted.unknown" : numbers.held_bytes ? "counted.both" : "counted.alone", {
    name: owner?.name, weights, cache: bytes(Number(numbers.bytes)), needed: bytes(Number(numbers.needed_bytes)),
  }));
}

function showMachines(numbers) {
  const [needed, ...squares] = drawing(numbers);
  drawSquare(page.querySelector('[data-machine="needed"] .square'), needed, true);
  put("needed", bytes(Number(numbers.needed_bytes)));
  for (const [index, machine] of numbers.machines.entries()) {
    const element = page.querySelector(`[data-machine="${machine.key}"]`);
    element.dataset.fits = machine.fits;
    element.dataset.value = machine.permille;
    element.dataset.people = machine.people;
    drawSquare(element.querySelector(".square"), squares[index], machine.fits);
    const key = !machine.fits ? "machine.too_small" : numbers.held_bytes ? "machine.fits" : "machine.fits_alone";
    fill(element, "verdict", say(key, { share: share(machine.permille), times: times(machine.permille) }));
    fill(element, "people", say(`room.${machine.room}`, { people: count(machine.people) }));
    const row = page.querySelector(`[data-row="${machine.key}"]`);
    fill(row, "cell-needed", bytes(Number(numbers.needed_bytes)));
    fill(row, "cell-share", share(machine.permille));
    fill(row, "cell-people", count(machine.people));
  }
}

/** The smallest machine and a part of it enlarged, where what it takes could not be seen otherwise. */
function showCloser(numbers) {
  const { closer } = numbers;
  const figure = page.querySelector(".closer");
  figure.hidden = !closer;
  if (closer) drawCloser(figure, closerDrawing(numbers));
  const tell = (name, key, words) => put(name, closer ? say(key, words(closer)) : "");
  tell("closer-whole", "closer.whole", ({ key }) => ({ machine: say(`machine.${key}`) }));
  tell("closer-factor", "closer.factor", ({ factor, across }) => ({ factor: count(factor), across: bytes(Number(across)) }));
  tell("closer-fill", numbers.held_bytes ? "closer.fill_rest" : "closer.fill",
    ({ tokens, conversations }) => ({ tokens: count(tokens), conversations: count(conversations) }));
}

function showSharing({ shape, ...numbers }) {
  put("times", `${count(numbers.times)}×`, numbers.times);
  const saves = slot(page, "saves");
  saves.firstChild.data = `${say(numbers.times > 1 ? "sharing.saves" : "sharing.none", { times: count(numbers.times) })} `;
  put("shared", say(shape.kv === 1 ? "sharing.shared_one" : "sharing.shared", { kv: count(shape.kv), heads: count(shape.heads) }));
  put("shared_bytes", bytes(Number(numbers.bytes)));
  put("unshared", say("sharing.unshared", { heads: count(shape.heads) }));
  put("unshared_bytes", bytes(Number(numbers.unshared_bytes)), numbers.unshared_bytes);
  slot(page, "bar-shared").setAttribute("width", `${100 / numbers.times}%`);
  drawHeads(slot(page, "heads"), shape.kv, numbers.times);
}

function showNotes(notes) {
  const texts = notes.map(({ code, field, ...figures }) => {
    const counted = Object.fromEntries(Object.entries(figures).map(([name, n]) => [name, count(n)]));
    return say(`note.${code}`, { field: say(`field.${field}`), ...counted });
  });
  const list = slot(page, "notes");
  if ([...list.children].map((item) => item.textContent).join("\n") === texts.join("\n")) return; // said already
  list.replaceChildren(...texts.map((text) => {
    const item = document.createElement("li");
    item.textContent = text;
    return item;
  }));
}

/** Text, and for hooks its raw number. */
function put(name, text, value) {
  const element = slot(page, name);
  setText(element, text);
  if (value === undefined) return;
  element.dataset.value = value;
  if (element.matches("data")) element.value = value;
}

// as the macros of the same names in templates/memory.html
const share = (permille) => (permille < 1 ? say("share.tiny", { share: number(0.1, 1) })
  : say("share.percent", { share: number(Number(permille) / 10, permille < 100 ? 1 : 0) })).replaceAll(" ", "\u00a0");
const times = (permille) => number(Number(permille) / 1000, permille < 1995 ? 2 : permille < 9950 ? 1 : 0);

/** What the link asks for; of a name that stands in it twice the first, as on the server. */
function fromLink() {
  const query = new URLSearchParams(location.search);
  return Object.fromEntries([...query.keys()].map((name) => [name, query.get(name)]));
}

/** The address that shows this shape; what else stands in it, such as a language, stays. */
function linkTo(shape) {
  const query = new URLSearchParams(location.search);
  for (const [name, value] of Object.entries(shape)) query.set(name, value);
  if (fields.withWeights) query.delete("weights");
  else query.set("weights", "0");
  return `${location.pathname}?${query}`;
}

// --- pointing at a factor says what it is

const whys = slot(page, "whys");
function explain(name) {
  for (const why of whys.children) why.classList.toggle("is-shown", why.dataset.why === name);
}
for (const button of page.querySelectorAll("[data-factor]")) {
  for (const type of ["pointerenter", "focus", "click"]) button.addEventListener(type, () => explain(button.dataset.factor));
}
page.querySelector(".product").addEventListener("pointerleave", () => {
  explain(document.activeElement?.dataset.factor ?? "hint");
});
page.querySelector(".product").addEventListener("focusout", (event) => {
  if (!event.relatedTarget?.dataset?.factor) explain("hint");
});
explain("hint");

document.getElementById("copy-link").addEventListener("click", (event) => {
  const { shape } = readShape(fields.raw(), known.default, known);
  copyFrom(event.currentTarget, location.origin + linkTo(shape));
});
mountThemeSwitch(document.getElementById("theme"));
show(fromLink());
