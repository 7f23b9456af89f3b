// Numbers as the pages write them, in the page's language; templates/_numbers.html writes the same.

import { say } from "./words.js";

const formats = [0, 1, 2].map((digits) => new Intl.NumberFormat(document.documentElement.lang, {
  minimumFractionDigits: digits, maximumFractionDigits: digits,
}));

/** With 0, 1 or 2 digits behind the point. */
export const number = (value, digits = 0) => formats[digits].format(value);
export const count = (n) => number(n ?? 0);

/** Three digits that count, in thousands: 7188480 is "7.19 MB". */
export function bytes(n) {
  let value = n ?? 0;
  if (value < 1000) return `${number(Math.trunc(value))} B`;
  value /= 1000;
  let unit = "kB";
  for (const next of ["MB", "GB", "TB"]) {
    if (value < 999.5) break;
    value /= 1000;
    unit = next;
  }
  return `${number(value, value < 9.995 ? 2 : value < 99.95 ? 1 : 0)} ${unit}`;
}

export function seconds(s) {
  return say("unit.seconds", { seconds: s < 0.01 ? `< ${number(0.01, 2)}` : number(s, s < 10 ? 2 : s < 100 ? 1 : 0) });
}
export const rate = (r) => number(r, r >= 10 ? 0 : 1);
