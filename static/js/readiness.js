// While the model is being loaded and nothing is asked of it yet: asks the server now and then whether it is there.

const EVERY_MS = 1000;

export function mountReadiness({ root, isLoading, status, panel, conversation }) {
  async function look() {
    if (!isLoading()) return;
    try {
      const answer = await fetch(`${root}readyz`);
      if (answer.ok) {
        const query = conversation() ? `?conversation=${encodeURIComponent(conversation())}` : "";
        panel.show(await (await fetch(`${root}api/cache${query}`)).json());
        if (isLoading()) status.set("idle");
        return;
      }
      const said = await answer.json().catch(() => ({}));
      if (said.state === "failed") {
        status.set("failed", said.text);
        return;
      }
    } catch { /* the server is not there: the socket says so */ }
    setTimeout(look, EVERY_MS);
  }
  look();
}
