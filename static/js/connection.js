// One WebSocket that comes back by itself: backoff, a heartbeat, and word of when it is there.
// Knows frames of JSON and nothing of what they mean.

const FIRST_WAIT_MS = 400;
const LONGEST_WAIT_MS = 8000;
const PING_EVERY_MS = 20000;
const SILENCE_MS = 50000; // longer than two pings unanswered: the connection is dead and does not know it

export function connect(path, { opened, closed, received }) {
  const url = new URL(path, location.href);
  url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
  let socket = null;
  let tries = 0;
  let retry = 0;
  let heard = 0;

  function open() {
    clearTimeout(retry);
    retry = 0;
    const own = new WebSocket(url);
    socket = own;
    own.addEventListener("open", () => {
      heard = performance.now();
      opened();
    });
    own.addEventListener("message", (event) => {
      heard = performance.now();
      tries = 0;
      let frame = null;
      try { frame = JSON.parse(event.data); } catch { return; }
      received(frame);
    });
    own.addEventListener("close", (event) => {
      if (socket === own) lost(event.code);
    });
  }

  function lost(code) {
    socket = null;
    closed(code);
    const wait = Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** tries++);
    retry = setTimeout(open, wait * (0.75 + Math.random() / 2));
  }

  function abandon() {
    const dead = socket;
    socket = null;
    dead?.close();
    lost(0);
  }

  function wake() {
    if (retry) open();
    else if (socket?.readyState > WebSocket.OPEN) abandon();
  }

  setInterval(() => {
    if (socket?.readyState !== WebSocket.OPEN) return;
    if (performance.now() - heard > SILENCE_MS) abandon();
    else socket.send(JSON.stringify({ type: "ping" }));
  }, PING_EVERY_MS);
  addEventListener("online", wake);
  addEventListener("offline", () => { if (socket) abandon(); });
  addEventListener("pageshow", (event) => { if (event.persisted) wake(); });
  document.addEventListener("visibilitychange", () => { if (!document.hidden) wake(); });
  open();

  return {
    /** Whether the frame went out. */
    send(frame) {
      if (socket?.readyState !== WebSocket.OPEN) return false;
      socket.send(JSON.stringify(frame));
      return true;
    },
  };
}
