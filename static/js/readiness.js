// A page that was opened before the model was there: asks the server now and then, until it is or has failed.

const EVERY_MS = 1000;

/** `ready()` and `failed(text)` are called once, one of them. */
export function awaitModel(root, { ready, failed }) {
  async function look() {
    try {
      const answer = await fetch(`${root}readyz`);
      if (answer.ok) return ready();
      const said = await answer.json();
      if (said.state === "failed") return failed(said.text);
    } catch { /* the server is not there: the socket says so */ }
    setTimeout(look, EVERY_MS);
  }
  look();
}
