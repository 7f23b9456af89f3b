// The tour on a page without a chat. On that of the race, its end is seen by the figure that it comes out with.

import { mountTour } from "./tour.js";

const card = document.getElementById("tour");
const speedup = document.querySelector("[data-testid=race-speedup]");
const tour = mountTour({
  card,
  openers: document.querySelectorAll("[data-tour-start]"),
  page: { name: card.dataset.page },
});

function look() {
  const times = Number(speedup.dataset.value);
  if (times > 0) tour.did("race", { times: times.toFixed(times < 10 ? 1 : 0) });
}

if (speedup) {
  new MutationObserver(look).observe(speedup, { attributes: true, attributeFilter: ["data-value"] });
}
