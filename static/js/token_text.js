// A token's text for the eye, with white space made visible, and a whole row of tokens as the text that it is.

const SIGNS = { " ": "·", "\n": "⏎", "\r": "␍", "\t": "→", "\u00a0": "⍽", "\u200b": "∅" };
const SPACE = /([ \n\r\t\u00a0\u200b]+)/;
const CONTROL = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f]/g;

const spelled = (sign) => `\\x${sign.charCodeAt(0).toString(16).padStart(2, "0")}`;

/** Pieces [{text, isSign}]: signs stand for white space. */
export function pieces(text) {
  return text.split(SPACE).filter(Boolean).map((piece) => (SPACE.test(piece)
    ? { text: Array.from(piece, (sign) => SIGNS[sign]).join(""), isSign: true }
    : { text: piece.replace(CONTROL, spelled), isSign: false }));
}

/** The same as one text. */
export const visible = (text) => pieces(text).map((piece) => piece.text).join("");

/** Fills `element` with a token's text. */
export function showText(element, text) {
  element.replaceChildren(...pieces(text).map((piece) => {
    if (!piece.isSign) return piece.text;
    const sign = document.createElement("span");
    sign.className = "token-sign";
    sign.textContent = piece.text;
    return sign;
  }));
}

/** All tokens as the text that they make, pieces of characters put together. */
export function textOf(tokens) {
  const decoder = new TextDecoder();
  let text = "";
  for (const token of tokens) {
    if (token.hex) {
      const bytes = Uint8Array.from(token.hex.match(/../g), (byte) => parseInt(byte, 16));
      text += decoder.decode(bytes, { stream: true });
    } else text += decoder.decode() + token.text; // what is cut off before it is half a character
  }
  return text + decoder.decode();
}

/** All tokens as numbers. */
export const numbersOf = (tokens) => `[${tokens.map((token) => token.id).filter((id) => id !== null).join(", ")}]`;
