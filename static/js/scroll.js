// Following the newest line, until the reader scrolls up; then staying where they are.

const NEAR_PX = 24;

export function mountScroll(scroller, button) {
  let following = true;
  let lastTop = 0;

  const below = () => scroller.scrollHeight - scroller.clientHeight - scroller.scrollTop;

  function show() {
    button.hidden = following || below() < NEAR_PX;
  }

  function follow() {
    following = true;
    if (scroller.querySelector(".welcome")) return; // the empty page has no newest line
    scroller.scrollTop = scroller.scrollHeight;
    lastTop = scroller.scrollTop;
    show();
  }

  function leave() {
    if (scroller.scrollHeight > scroller.clientHeight) following = false;
    show();
  }

  scroller.addEventListener("scroll", () => {
    const top = scroller.scrollTop;
    if (top < lastTop - 1 && below() > NEAR_PX) following = false;
    else if (top > lastTop && below() <= NEAR_PX) following = true;
    lastTop = top;
    show();
  }, { passive: true });
  // before the scroll itself: the next line must not pull back a reader who has just begun
  scroller.addEventListener("wheel", (event) => { if (event.deltaY < 0) leave(); }, { passive: true });
  scroller.addEventListener("touchmove", () => { if (below() > NEAR_PX) leave(); }, { passive: true });
  button.addEventListener("click", () => {
    follow();
    scroller.focus({ preventScroll: true });
  });
  new ResizeObserver(() => { if (following) follow(); }).observe(scroller);

  return {
    follow,
    /** After the conversation has grown. */
    grown() {
      if (following) follow();
      else show();
    },
  };
}
