// The page as the server would make it now: the source of what a script cannot know by itself.

/** The start page as a document, or null where it cannot be had. */
export async function freshPage(root) {
  try {
    const language = document.documentElement.lang.split("-")[0]; // an address may have named it
    const answer = await fetch(`${root}?language=${language}`, { credentials: "same-origin", headers: { Accept: "text/html" } });
    if (answer.ok) return new DOMParser().parseFromString(await answer.text(), "text/html");
  } catch { /* no connection */ }
  return null;
}
