// A part of the page that is beside the chat where there is room, and behind a button where there is not.

const FOCUSABLE = "a[href], button:not([disabled]), input, summary, textarea, [tabindex='0']";

/** `narrow`: the media query under which `element` is a drawer. */
export function mountDrawer(element, narrow) {
  const media = matchMedia(narrow);
  const opener = document.querySelector(`[data-open="${element.id}"]`);
  const shade = document.createElement("div");
  shade.className = "shade";
  const behind = document.querySelector(".chat");

  function set(open) {
    element.classList.toggle("is-open", open);
    opener.setAttribute("aria-expanded", String(open));
    behind.inert = open;
    if (open) {
      document.body.append(shade);
      element.querySelector(`[data-close="${element.id}"]`).focus();
    } else shade.remove();
  }

  function close() {
    if (!element.classList.contains("is-open")) return;
    set(false);
    opener.focus();
  }

  opener.addEventListener("click", () => set(true));
  element.querySelector(`[data-close="${element.id}"]`).addEventListener("click", close);
  shade.addEventListener("click", close);
  // what happens in the chat is to be seen there; closed before it happens, since the chat is inert until then
  element.addEventListener("click", (event) => { if (event.target.closest("[data-leave]")) close(); }, { capture: true });
  media.addEventListener("change", () => set(false));
  element.addEventListener("keydown", (event) => {
    if (!element.classList.contains("is-open")) return;
    if (event.key === "Escape") close();
    else if (event.key === "Tab") keepInside(event);
  });

  function keepInside(event) {
    const stops = [...element.querySelectorAll(FOCUSABLE)].filter((stop) => stop.checkVisibility());
    const edge = event.shiftKey ? stops.at(0) : stops.at(-1);
    if (document.activeElement !== edge) return;
    event.preventDefault();
    (event.shiftKey ? stops.at(-1) : stops.at(0)).focus();
  }
}
