// Gathers what comes in and applies it once a frame, in order, in slices short enough not to be felt.

const SLICE_MS = 8;
const HIDDEN_MS = 250; // a hidden tab gets no frames, and must not fall behind for that

/** `apply(item)` for each pushed item, then `paint()`, once a frame. */
export function gather(apply, paint) {
  let items = [];
  let frame = 0;
  let timer = 0;

  function run() {
    cancelAnimationFrame(frame);
    clearTimeout(timer);
    frame = timer = 0;
    const end = performance.now() + SLICE_MS;
    let next = 0;
    while (next < items.length && performance.now() < end) apply(items[next++]);
    items = items.slice(next);
    paint();
    if (items.length) schedule();
  }

  function schedule() {
    if (frame || timer) return;
    if (document.hidden) timer = setTimeout(run, HIDDEN_MS);
    else frame = requestAnimationFrame(run);
  }

  document.addEventListener("visibilitychange", () => { if (items.length) run(); });
  return {
    push(item) {
      items.push(item);
      schedule();
    },
  };
}
