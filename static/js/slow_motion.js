// Slow motion: the switch, the bar over the text box that says what is held back, and the keys that let it go.

import { setText, slot } from "./dom.js";
import { count } from "./format.js";
import { isPressed, isTypedInto } from "./shortcuts.js";
import { holdBack } from "./slow_steps.js";
import { tab } from "./storage.js";
import { say } from "./words.js";

/** `pass(event)`: where events go. `switches`: checkboxes and buttons that put it on and off. `writing`: ids of the
    replies that are being written now. `behind(is)` is told whether what is shown is behind what has happened. */
export function mountSlowMotion({ bar, switches, writing, pass, behind }) {
  const next = bar.querySelector("[data-action=next]");
  const hold = holdBack(pass, show, writing);

  function show() {
    const kind = hold.nextKind;
    behind(kind !== null);
    if (!hold.on) return;
    next.setAttribute("aria-disabled", String(kind === null));
    setText(slot(next, "next"), say(kind === "reading" ? "slow.next_reading" : "slow.next"));
    setText(slot(next, "held"), hold.heldTokens ? say("slow.held", { count: count(hold.heldTokens) }) : "");
    setText(slot(bar, "ahead"), ahead());
  }

  /** How far the model is already, in words. */
  function ahead() {
    const tokens = hold.heldTokens;
    if (hold.nextKind === null) return say(hold.isWriting ? "slow.waiting" : "slow.ready");
    if (!tokens) return say("slow.read");
    return say(`slow.${hold.isWriting ? "ahead" : "finished"}${tokens === 1 ? "_one" : ""}`, { count: count(tokens) });
  }

  function step() {
    const shown = hold.next();
    if (shown) setText(slot(bar, "shown"), told(shown));
  }

  function set(is, isRemembered = true) {
    bar.hidden = !is;
    for (const each of switches) {
      if (each.type === "checkbox") each.checked = is;
      else each.setAttribute("aria-pressed", String(is));
    }
    if (isRemembered) tab.set("slow_motion", is || null);
    setText(slot(bar, "shown"), "");
    hold.on = is;
    show();
  }

  for (const each of switches) {
    each.addEventListener(each.type === "checkbox" ? "change" : "click", () => set(!hold.on));
  }
  next.addEventListener("click", step);
  bar.querySelector("[data-action=off]").addEventListener("click", () => set(false));

  // Held down, Space goes on and on; a button would take it once, and only when it is let go.
  const isOurs = (event) => event.key === " " && hold.on && !document.querySelector("dialog[open]")
    && (event.target === next || (hold.nextKind !== null && !isTypedInto(event.target) && !isPressed(event.target)));
  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || !isOurs(event)) return;
    event.preventDefault();
    step();
  });
  document.addEventListener("keyup", (event) => { if (isOurs(event)) event.preventDefault(); });

  set(tab.get("slow_motion") === true, false);

  return {
    take: hold.take,
    resume: hold.resume,
    drop: hold.drop,
    get unfinished() { return hold.unfinished; },
    toggle: () => set(!hold.on),
    /** Shows all of what is held and comes: somebody wants it to end. */
    flowToEnd: hold.flowToEnd,
    holdAgain: hold.holdAgain,
    get isOn() { return hold.on; },
    focus: () => next.focus({ preventScroll: true }),
  };
}

/** What a step showed, in words. */
function told(event) {
  if (event.type === "reading") {
    return say("slow.was_read", { reused: count(event.reused), read: count(event.total - event.reused) });
  }
  const { text, origin, position } = event.tokens[0];
  const shown = text.replaceAll("\n", "⏎").replaceAll(" ", "·");
  return say(`slow.was_${origin}`, { text: shown, position: count(position) });
}
