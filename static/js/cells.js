// The cells of the strip: one cheap element a token, made and changed a bounded number a frame. Knows where each cell
// stands, and nothing of what is in it but its origin.

const CELLS_A_FRAME = 1200;
const SMALL_FROM = 500; // more cells than this are drawn smaller

export function mountCells(box) {
  const cells = [];
  let next = Infinity; // the first that is not painted yet
  let marked = null;   // [from, to)
  let pointed = null;

  function fill(cell, token, isCached) {
    if (cell.dataset.origin !== token.origin) cell.dataset.origin = token.origin;
    const hook = isCached ? "token" : "token-waiting";
    if (cell.dataset.testid === hook) return;
    cell.dataset.testid = hook;
    cell.className = isCached ? "cell" : "cell is-waiting";
  }

  function newCell(position) {
    const cell = document.createElement("i");
    cell.dataset.position = position;
    return cell;
  }

  /** Brings the cells from `from` on in line with the first `count` tokens. True when there is more to do. */
  function paint(list, count, cached, from) {
    next = Math.min(next, from);
    if (next === Infinity) return false;
    const isAtEnd = box.scrollHeight - box.clientHeight - box.scrollTop < 2 || !cells.length;
    while (cells.length > count) cells.pop().remove();
    const end = Math.min(count, next + CELLS_A_FRAME);
    const fresh = document.createDocumentFragment();
    for (let at = next; at < end; at += 1) {
      if (at === cells.length) {
        cells.push(newCell(at));
        fresh.append(cells[at]);
      }
      fill(cells[at], list[at], at < cached);
    }
    box.append(fresh);
    next = end < count ? end : Infinity;
    box.toggleAttribute("data-small", count > SMALL_FROM);
    if (isAtEnd && pointed === null && !marked) box.scrollTop = box.scrollHeight;
    return next < Infinity;
  }

  /** Room for so many cells, before anything is known of them. */
  function reserve(count) {
    while (cells.length < count) {
      cells.push(newCell(cells.length));
      cells.at(-1).className = "cell";
    }
    box.toggleAttribute("data-small", count > SMALL_FROM);
    box.replaceChildren(...cells);
    box.scrollTop = box.scrollHeight;
  }

  /** How the cells stand: columns, where the first one is, and the distance from one to the next. */
  function geometry() {
    const style = getComputedStyle(box);
    const tracks = style.gridTemplateColumns.split(" ");
    return {
      columns: tracks.length,
      left: parseFloat(style.paddingLeft),
      top: parseFloat(style.paddingTop),
      width: parseFloat(tracks[0]) + parseFloat(style.columnGap),
      height: (cells[0]?.getBoundingClientRect().height ?? 1) + parseFloat(style.rowGap), // not always whole pixels
    };
  }

  function setClass(name, [from, to], is) {
    for (let at = from; at < Math.min(to, cells.length); at += 1) cells[at].classList.toggle(name, is);
  }

  function intoView(at) {
    const { columns, top: above, height } = geometry();
    const top = Math.floor(at / columns) * height;
    const bottom = above + top + height + above;
    if (top < box.scrollTop) box.scrollTop = top;
    else if (bottom > box.scrollTop + box.clientHeight) box.scrollTop = bottom - box.clientHeight;
  }

  return {
    paint,
    reserve,
    get count() { return cells.length; },
    get columns() { return geometry().columns; },

    /** The cell under a point of the screen; null beside them. */
    at(x, y) {
      const { columns, left, top, width, height } = geometry();
      const place = box.getBoundingClientRect();
      const column = Math.floor((x - place.left - box.clientLeft - left) / width);
      const line = Math.floor((y - place.top - box.clientTop - top + box.scrollTop) / height);
      const at = line * columns + column;
      return column >= 0 && column < columns && line >= 0 && at < cells.length ? at : null;
    },

    point(at, isToBeSeen) {
      cells[pointed]?.classList.remove("is-pointed-at");
      pointed = at;
      cells[at]?.classList.add("is-pointed-at");
      if (at !== null && isToBeSeen) intoView(at);
    },

    /** Marks the cells in [from, to), or none. */
    mark(range) {
      if (marked) setClass("is-marked", marked, false);
      marked = range;
      box.toggleAttribute("data-marking", Boolean(range));
      if (!range) return;
      setClass("is-marked", range, true);
      intoView(range[0]);
    },
  };
}
