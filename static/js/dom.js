// The page's elements: finding the places to fill, and cloning the server's templates.

/** The first element under (or at) `root` that is to be filled with `name`. */
export function slot(root, name) {
  return root.matches?.(`[data-slot="${name}"]`) ? root : root.querySelector(`[data-slot="${name}"]`);
}

/** Sets an element's text, and leaves it alone when that is its text already. */
export function setText(element, text) {
  if (element && element.textContent !== text) element.textContent = text;
}

/** Fills every place called `name` under `root`. */
export function fill(root, name, text) {
  for (const element of root.querySelectorAll(`[data-slot="${name}"]`)) setText(element, text);
}

/** A fresh copy of the one element in <template id="template-NAME">. */
export function clone(name) {
  return document.getElementById(`template-${name}`).content.firstElementChild.cloneNode(true);
}

/** The JSON that the server put into the page under `id`. */
export function pageJson(id) {
  return JSON.parse(document.getElementById(id).textContent);
}
