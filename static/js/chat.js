// The chat page: mounts every part, and carries events from the server to them and wishes from them to the server.

import { mountAnsweringAgain } from "./answering_again.js";
import { arrive } from "./arrival.js";
import { mountAsking } from "./asking.js";
import { mountChannel } from "./channel.js";
import { mountComposer } from "./composer.js";
import { mountCounter } from "./counter.js";
import { mountConfirm, mountDialog } from "./dialogs.js";
import { fill, pageJson } from "./dom.js";
import { mountDrawer } from "./drawer.js";
import { mountForgetting } from "./forgetting.js";
import { gather } from "./frames.js";
import { freshPage } from "./fresh.js";
import { onEscape } from "./keys.js";
import { mountImport } from "./import.js";
import { mountNotice } from "./notice.js";
import { mountPanel } from "./panel.js";
import { mountPresenter } from "./presenter.js";
import { awaitModel } from "./readiness.js";
import { mountScroll } from "./scroll.js";
import { mountSettings } from "./settings.js";
import { mountShortcuts } from "./shortcuts.js";
import { mountSidebar } from "./sidebar.js";
import { dropLeft, endOfLeft, keepLeft, takeLeft } from "./slow_left.js";
import { mountSlowMotion } from "./slow_motion.js";
import { mountStatus } from "./status.js";
import { mountStopping } from "./stopping.js";
import { mountStories } from "./stories.js";
import { mountThemeSwitch } from "./theme_switch.js";
import { mountTour } from "./tour.js";
import { mountStrip } from "./strip.js";
import { isBeingWritten, mountTranscript } from "./transcript.js";
import { tab } from "./storage.js";
import { say } from "./words.js";

const element = (id) => document.getElementById(id);
const { root, socket } = document.body.dataset;
const page = pageJson("page-data");
const left = takeLeft(page.conversation?.id, page.seq); // by slow motion on the page before this one

const notice = mountNotice(element("notice"));
const panel = mountPanel(element("panel"), element("panel-line"), () => settings.current.use_cache, page.beside);
const confirm = mountConfirm(element("confirm-dialog"));
const status = mountStatus(element("state"), element("announcer"), {
  state: page.state,
  showWait: (text, fraction) => transcript.wait(text, fraction),
});
const scroll = mountScroll(element("transcript"), element("to-newest"));

const frames = gather(apply, () => {
  transcript.paint();
  panel.paint();
  strip.paint();
  status.paint();
  composer.busy = asking.isBusy();
  stories.paint();
  tour.paint();
});

const slow = mountSlowMotion({
  bar: element("slow"),
  switches: document.querySelectorAll("[data-switch=slow]"),
  writing: [...document.querySelectorAll("#messages [data-state=writing]")].map((message) => message.dataset.id),
  pass: frames.push,
  behind: (is) => { status.behind = is; },
});

const channel = mountChannel({
  path: socket,
  conversation: page.conversation?.id ?? null,
  seq: left?.seq ?? page.seq,
  receive: slow.take,
  changed: (isOpen) => status.connected(isOpen),
});

const transcript = mountTranscript(element("messages"), element("welcome"), scroll, {
  regenerate: (...wish) => answering.regenerate(...wish),
  repeat: (...wish) => answering.repeat(...wish),
  continue: (message) => answering.continue(message),
  pick: (message) => answering.pick(message),
  stop: (message) => stopping.one(message.id),
  edit: (...wish) => asking.edit(...wish),
  rescue: (text) => asking.rescue(text),
});

const counter = mountCounter({
  root,
  place: element("quiet"),
  conversation: () => channel.conversation,
  settings: () => settings.current,
  counted: (numbers) => composer.counted(numbers),
});

const composer = mountComposer({
  form: element("composer-form"),
  area: element("composer"),
  send: element("send"),
  stop: element("stop"),
  notice,
  limitBytes: page.limits.text_bytes,
  counter,
  draftKey: () => channel.conversation ?? "new",
  onSend: (text) => asking.send(text, { type: "send" }),
  onStop: () => stopping.stop(),
});

const settings = mountSettings({
  button: element("open-settings"),
  dialog: element("settings-dialog"),
  cacheSwitch: element("use-cache"),
  cacheNote: element("cache-off"),
  onCacheSwitch: (isOn) => { status.withoutCache = !isOn; },
  onChange: counter.refresh,
});

const asking = mountAsking({
  channel, composer, status, notice, confirm, settings, transcript, slow, refused: () => stopping.forget(), // nothing to stop
});

const strip = mountStrip({
  section: element("strip"),
  dialog: element("trace"),
  messages: element("messages"),
  root,
  conversation: () => channel.conversation,
  cache: page.cache,
});

const sidebar = mountSidebar({
  element: element("sidebar"),
  chatDialog: mountDialog(element("chat-dialog")),
  confirm,
  notice,
  root,
  current: () => channel.conversation,
  rename: (id, title) => channel.ask({ type: "rename", conversation: id, title }),
  remove: (id) => forgetting.remove(id),
});

/** As the person set it, but one answer, whatever was asked for; and with what is `wanted`. */
function forOne(wanted) {
  const { n, ...own } = settings.current;
  return { ...own, ...wanted };
}

const stories = mountStories({
  welcome: element("welcome"),
  bar: element("story"),
  isBusy: asking.isBusy,
  conversation: () => channel.conversation,
  begun: () => tour.close(), // one guide at a time
  send(text, { isEdit, settings: wanted }, settled) {
    const frame = isEdit ? { type: "edit", message: transcript.firstId } : { type: "send" };
    asking.send(text, frame, settled, forOne(wanted));
  },
});

const tour = mountTour({
  card: element("tour"),
  openers: document.querySelectorAll("[data-tour-start]"),
  page: {
    name: "chat",
    hasCalculator: page.calculator,
    last: transcript.lastId,
    answered: left ? null : page.answered, // slow motion has not shown it yet
    ask: (text) => asking.send(text, { type: "send" }, null, forOne({ temperature: 0 })), // what it shows is not left to chance
    edit: (text) => transcript.editFirst(text),
    usesCache: () => settings.current.use_cache,
    forget: () => forgetting.forgetAll(),
    focus: () => composer.focus(),
  },
});

document.querySelectorAll("[data-tour-start]").forEach((opener) => opener.addEventListener("click", stories.end));

const stopping = mountStopping({ channel, transcript, slow, notice, takeBack: asking.takeBack });
const answering = mountAnsweringAgain({ channel, settings, notice, confirm, isBusy: asking.isBusy, focus: () => composer.focus() });
const forgetting = mountForgetting({ root, dialog: element("forget-dialog"), channel, slow, tour, notice, transcript, composer });

// --- from the server

function apply(event) {
  asking.receive(event);
  if (event.type === "error") return refused(event);
  if (event.type === "listed") return sidebar.receive(event);
  if (event.type === "conversation") return renamed(event);
  if (event.type === "message" && isBeingWritten(event)) status.replyBegan();
  transcript.receive(event);
  panel.receive(event);
  strip.receive(event);
  status.receive(event);
  stories.receive(event);
  tour.receive(event);
  if (event.code === "picked") status.announce(event.text);
  if (event.type === "cache") sidebar.tokens(event.cache.conversation?.tokens);
  if (event.type === "done") ended(event);
  if (hasEndedUnheard(event)) stopping.forget();
  if (["done", "message", "snapshot"].includes(event.type) || event.code === "evicted") counter.refresh();
  stopping.goOn();
}

/** Whether an event shows, after the line was broken, that what was to be stopped has ended meanwhile. */
function hasEndedUnheard(event) {
  const isTold = event.type === "snapshot" || (event.type === "message" && event.repeat && event.role === "assistant");
  return isTold && !asking.isBusy();
}

/** Goes on in slow motion where the page before this one was left. */
function resume() {
  transcript.rewind(left.shown[0].reply_to);
  panel.retell();
  strip.retell();
  slow.resume(left);
}

function refused(event) {
  notice.show(event.text || say("notice.too_long_to_send"));
}

function renamed(event) {
  sidebar.receive(event);
  if (event.deleted) dropLeft(event.conversation);
  if (event.foreign) {
    sidebar.refresh();
    return;
  }
  if (event.deleted) return forgetting.leave(event.conversation);
  tab.set("chat_path", event.url ?? location.pathname); // where another page leads back to
  if (event.url && location.pathname !== event.url) history.replaceState(null, "", event.url);
  document.title = `${event.title} · ${say("app")}`;
  fill(element("chat"), "chat_title", event.title);
}

function ended(event) {
  status.replyEnded(event);
  if (transcript.writingIds.length) return; // others are written beside it
  stopping.forget();
  sidebar.refresh();
}

async function modelCame() {
  if (status.state === "loading") status.set("idle");
  const query = channel.conversation ? `?conversation=${encodeURIComponent(channel.conversation)}` : "";
  const answer = await fetch(`${root}api/cache${query}`);
  if (answer.ok) panel.show(await answer.json());
  const now = await freshPage(root);
  if (!now) return;
  settings.takeDefaults(now);
  element("welcome")?.querySelector("[data-slot=about]").replaceWith(now.querySelector("#welcome [data-slot=about]"));
}

const presenter = mountPresenter(document.querySelectorAll("[data-switch=presenter]"), transcript.paint);
mountShortcuts({
  dialog: element("shortcuts-dialog"),
  button: element("open-shortcuts"),
  setting: element("single-keys"),
  keys: { p: presenter.toggle, s: slow.toggle },
});
onEscape(asking.isBusy, stopping.stop);
mountThemeSwitch(element("theme"));
mountDrawer(element("sidebar"), "(width < 74rem)");
mountDrawer(element("panel"), "(width < 54rem)");
mountDialog(element("forget-dialog"));
mountImport({ button: element("open-import"), input: element("import-file"), notice, root });
element("open-forget").addEventListener("click", forgetting.forgetAll);
document.addEventListener("visibilitychange", () => { if (!document.hidden) sidebar.refresh(); });
if (!page.ready) awaitModel(root, { ready: modelCame, failed: (text) => status.set("failed", text) });
arrive(channel.conversation, notice, status);
panel.show(page.cache);
if (left) resume();
endOfLeft();
keepLeft(() => slow.unfinished && { conversation: channel.conversation, seq: channel.seq, ...slow.unfinished });
status.paint();
composer.busy = asking.isBusy();
if (slow.isOn && (left || asking.isBusy())) slow.focus();
