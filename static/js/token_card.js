// What there is to say of one token: in a card for the eye, and in one sentence for a screen reader.

import { fill, setText, slot } from "./dom.js";
import { count, number } from "./format.js";
import { showText, visible } from "./token_text.js";
import { say } from "./words.js";

/** How a share of 1 is written: 0.834 is "83.4 %". */
export function percent(share) {
  const hundredths = 100 * share;
  if (hundredths > 0 && hundredths < 0.1) return say("chance.tiny", { share: number(0.1, 1) });
  return say("chance.percent", { share: number(hundredths, hundredths < 99.95 && hundredths > 0 ? 1 : 0) });
}

/** Where it came from, in words. `state`: as the token list has it. */
export function originOf(token, state) {
  if (state !== "cached") return say(state === "last" && token.origin === "written" ? "origin.waiting" : "origin.forgotten");
  if (token.message === null && token.turn === null) return say("origin.replaced");
  return say(`origin.${[token.origin, token.source].filter(Boolean).join("_")}`);
}

const spelled = (hex) => hex.match(/../g).join(" ").toUpperCase();

function factsOf(token, state, bytesPerToken) {
  return [
    token.mark && say("token.mark"),
    token.hex && say("token.piece", { bytes: spelled(token.hex) }),
    token.turn && say("token.turn", { turn: count(token.turn) }),
    state === "cached" && say("token.bytes", { bytes: count(bytesPerToken) }),
    token.id !== null && say("token.id", { id: token.id }),
  ].filter(Boolean);
}

const nameOf = (token) => (token.id === null ? say("token.unnamed") : say("token.quoted", { text: visible(token.text) }));

/** The token and its runners-up, the likeliest first. */
const candidatesOf = (token) => [{ ...token, isIt: true }, ...token.runners_up].sort((a, b) => b.chance - a.chance);

/** All of it in one sentence. */
export function sentenceOf(token, state, bytesPerToken) {
  const said = [
    nameOf(token),
    say("token.position", { position: count(token.position) }),
    originOf(token, state),
    ...factsOf(token, state, bytesPerToken),
  ].join(", ");
  if (token.chance === undefined) return said;
  const others = token.runners_up.map((other) => say("chance.other_said", {
    text: visible(other.text), share: percent(other.chance),
  }));
  return `${said}. ${say("chance.said", { share: percent(token.chance), others: others.join(", ") })}`;
}

function newRow({ text, chance, isIt }) {
  const row = document.createElement("tr");
  row.className = "chances__row";
  row.toggleAttribute("data-taken", Boolean(isIt));
  const name = document.createElement("th");
  name.scope = "row";
  const shown = document.createElement("span");
  shown.className = "chances__text";
  showText(shown, text);
  name.append(shown);
  const drawn = document.createElement("td");
  const bar = document.createElement("span");
  bar.className = "chances__bar";
  bar.style.setProperty("--share", chance);
  drawn.append(bar);
  const share = document.createElement("td");
  share.className = "chances__share";
  share.textContent = percent(chance);
  row.append(name, drawn, share);
  return row;
}

export function mountCard(card) {
  let shown = null;

  return {
    card,
    /** `token`: null hides the card. */
    show(token, state, bytesPerToken) {
      card.hidden = token === null;
      if (token === null) {
        shown = null;
        return;
      }
      card.dataset.origin = token.origin;
      card.dataset.position = token.position;
      fill(card, "position", say("token.position", { position: count(token.position) }));
      fill(card, "origin", originOf(token, state));
      fill(card, "facts", factsOf(token, state, bytesPerToken).join(" · "));
      if (shown === token) return;
      shown = token;
      if (token.id === null) setText(slot(card, "text"), say("token.unnamed"));
      else showText(slot(card, "text"), token.text);
      const chances = slot(card, "chances");
      chances.hidden = token.chance === undefined;
      if (chances.hidden) return;
      const candidates = candidatesOf(token);
      slot(card, "rows").replaceChildren(...candidates.map(newRow));
      setText(slot(card, "drawn"), say(candidates[0].isIt ? "chance.first" : "chance.other"));
    },
  };
}
