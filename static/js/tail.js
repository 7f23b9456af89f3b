// The text that is being written: one text node that grows. A code fence is shown as the code block that it
// will be, its first line as a label, so that nothing jumps when the finished block replaces it.

const FENCE = /^(```|~~~)/;

export function mountTail(element) {
  const node = document.createTextNode("");
  let pending = "";
  let label = null;   // in a code fence: the element with its first line
  let fence = "";     // that line, until it is complete
  let isInFence = false;

  function reset() {
    element.replaceChildren(node);
    node.data = "";
    delete element.dataset.kind;
    label = null;
    fence = "";
    isInFence = false;
  }

  function startFence() {
    element.dataset.kind = "code";
    label = document.createElement("span");
    label.className = "tail__fence";
    element.prepend(label);
    isInFence = true;
  }

  function paint() {
    if (!pending) return;
    let text = pending;
    pending = "";
    if (!node.data && !label) text = text.replace(/^\n+/, "");
    if (!label && !node.data.includes("\n") && FENCE.test(node.data + text)) {
      text = node.data + text;
      node.data = "";
      startFence();
    }
    if (isInFence) {
      fence += text;
      const end = fence.indexOf("\n");
      label.textContent = (end < 0 ? fence : fence.slice(0, end)).replace(FENCE, "").replace(/^[`~]+/, "").trim();
      if (end < 0) return;
      text = fence.slice(end + 1);
      isInFence = false;
    }
    node.appendData(text);
  }

  const written = element.textContent; // what the server had when the page was made
  reset();
  pending = written;
  paint();

  return {
    append(text) { pending += text; },
    /** Begins anew with `text`: what stands before it is a finished block now. */
    replace(text) {
      reset();
      pending = text;
      paint();
    },
    paint,
    /** Forgets what is nothing but space between blocks. */
    dropBlank() {
      paint();
      if (!label && !node.data.trim()) reset();
    },
    get isEmpty() { return !pending && !node.data && !label; },
  };
}
