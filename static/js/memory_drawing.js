// The what-if page's drawings: squares to scale, and the heads of one layer. The same shapes as templates/memory.html.

/** A square whose area is memory, filled from below with weights and then with what is remembered. */
export function drawSquare(svg, { side, weights, cache }, fits) {
  for (const name of ["width", "height"]) svg.setAttribute(name, `${side.toFixed(3)}em`);
  place(svg.querySelector(".square__weights"), 100 - weights, weights);
  place(svg.querySelector(".square__cache"), 100 - weights - cache, cache);
  svg.querySelector(".square__over").setAttribute("visibility", fits ? "hidden" : "visible");
}

function place(rect, y, height) {
  rect.setAttribute("y", y.toFixed(3));
  rect.setAttribute("height", height.toFixed(3));
}

/** A machine as a bar, and under it a part of it enlarged, as `closerDrawing` has them. */
export function drawCloser(element, { held, used, start, end, weights, cache }) {
  const [whole, enlarged] = element.querySelectorAll(".closer__bar");
  along(whole, held, used);
  along(enlarged, weights, cache);
  element.querySelector(".closer__lens polygon").setAttribute("points", `${start.toFixed(3)},0 ${end.toFixed(3)},0 100,10 0,10`);
}

/** A bar that is filled from the left with weights and then with what is remembered. */
function along(bar, weights, cache) {
  const [first, second] = [".closer__weights", ".closer__cache"].map((name) => bar.querySelector(name));
  first.setAttribute("width", `${weights.toFixed(3)}%`);
  second.setAttribute("x", `${weights.toFixed(3)}%`);
  second.setAttribute("width", `${cache.toFixed(3)}%`);
}

/** Query heads in groups of `times`, each group over the KV head that it looks into. */
export function drawHeads(element, kv, times) {
  const isDrawn = element.childElementCount === kv && element.querySelector(".heads__queries").childElementCount === times;
  if (isDrawn) return;
  element.replaceChildren(...Array.from({ length: kv }, () => {
    const group = made("span", "heads__group");
    const queries = made("span", "heads__queries");
    queries.append(...Array.from({ length: times }, () => made("i", "heads__query")));
    group.append(queries, made("i", "heads__kv"));
    return group;
  }));
}

function made(tag, name) {
  const element = document.createElement(tag);
  element.className = name;
  return element;
}
