// The tour on a page without a chat. On that of the race, its end is seen by the figure that it comes out with.

import { mountTour } from "./tour.js";

const card = document.getElementById("tour");
const speedup = document.querySelector("[data-testid=race-speedup]");
const narrator = document.getElementById("narrator");
let isNew = false; // what comes out next was measured just now, and has not been told
const tour = mountTour({
  card,
  openers: document.querySelectorAll("[data-tour-start]"),
  page: { name: card.dataset.page },
});

function look() {
  if (narrator.dataset.state === "measuring") isNew = true;
  const times = Number(speedup.dataset.value);
  if (!isNew || !(times > 0)) return;
  isNew = false;
  tour.did("race", { times: times.toFixed(times < 10 ? 1 : 0) });
}

if (speedup) {
  const observer = new MutationObserver(look);
  observer.observe(speedup, { attributes: true, attributeFilter: ["data-value"] });
  observer.observe(narrator, { attributes: true, attributeFilter: ["data-state"] });
}
