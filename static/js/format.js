// Numbers as the pages write them; templates/_numbers.html writes the same.

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });

export const count = (n) => whole.format(n ?? 0);

/** Three digits that count, in thousands: 7188480 is "7.19 MB". */
export function bytes(n) {
  let value = n ?? 0;
  if (value < 1000) return `${Math.trunc(value)} B`;
  value /= 1000;
  let unit = "kB";
  for (const next of ["MB", "GB", "TB"]) {
    if (value < 999.5) break;
    value /= 1000;
    unit = next;
  }
  const digits = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
  return `${value.toFixed(digits)} ${unit}`;
}

export const seconds = (s) => s < 0.01 ? "< 0.01 s" : `${s.toFixed(s < 10 ? 2 : s < 100 ? 1 : 0)} s`;
export const rate = (r) => (r >= 10 ? whole.format(r) : r.toFixed(1));
