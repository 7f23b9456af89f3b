// A text box as tall as its text, where the browser cannot do that by itself (`field-sizing` in the stylesheet).

const LONGEST_MEASURED = 20000; // characters; longer text is taller than the box may be

export function growWithText(area) {
  if (CSS.supports("field-sizing", "content")) return;
  const fit = () => {
    area.style.height = "auto";
    area.style.height = area.value.length > LONGEST_MEASURED ? "100dvh" : `${area.scrollHeight}px`;
  };
  area.addEventListener("input", fit);
  fit();
}
