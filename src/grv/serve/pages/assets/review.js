// Review: one candidate at a time, with keys for each verdict. Scores and other verdicts are not sent.

import { ask, badge, counted, follow, keys, lasting, make, mountBar, number, pill, place, ready, say, setting, signIn } from "./common.js";
import { diff, isDiff } from "./diff.js";

const HERE = 6000; // milliseconds between two signs of life; the server waits longer
const SAYINGS = [["pass", "p", "Pass"], ["fail", "f", "Fail"], ["cannot tell", "c", "Cannot tell"]];
let session = null;
let current = null; // the item, its lease, and how long it was looked at
let busy = false;

const send = (path, body, more = {}) => ask(`/api/review/${path}`, {
  method: "POST",
  headers: { "content-type": "application/json", "x-grv-token": session.token },
  body: JSON.stringify(body),
  ...more,
});

/** Seconds that the page was visible with this item. */
function looked() {
  const since = current.visible === null ? 0 : performance.now() - current.visible;
  return (current.before + since) / 1000;
}

document.addEventListener("visibilitychange", () => {
  if (!current) return;
  if (document.hidden && current.visible !== null) {
    current.before += performance.now() - current.visible;
    current.visible = null;
  } else if (!document.hidden && current.visible === null) current.visible = performance.now();
});

/** Tries again while the server restarts: a verdict is written once, however often it is sent. */
async function insist(does) {
  for (let tries = 0; ; tries += 1) {
    try {
      return await does();
    } catch (error) {
      if (error.status || tries === 40) throw error;
      say("The server does not answer. Your verdict is kept here and sent again.");
      await new Promise((done) => { setTimeout(done, 750); });
    }
  }
}

async function next() {
  const found = await insist(() => send("next", {}));
  show(found);
}

function show(found) {
  const hidden = document.hidden;
  current = found.item ? { ...found, before: 0, visible: hidden ? null : performance.now() } : null;
  history.replaceState(null, "", current ? `/review#${current.item.id}` : "/review");
  place("item").dataset.item = current?.item.id ?? "";
  badge(found.waiting);
  paint(found.waiting);
}

/** Sends a verdict. If the lease was lost, as in a restart of the server, it takes the item again. */
async function give(body) {
  try {
    await insist(() => send("verdict", body));
  } catch (error) {
    if (error.code !== "lease") throw error;
    const { lease } = await insist(() => send("open", { item: body.item }));
    await insist(() => send("verdict", { ...body, lease }));
  }
}

/** Does one thing at a time: two leases at once would keep an item from others. */
async function alone(does) {
  if (busy) return;
  busy = true;
  try {
    await does();
  } catch (error) {
    say(error.message);
  }
  busy = false;
}

const said = (saying) => alone(async () => {
  if (!current) return;
  const { item, lease } = current;
  const body = { item: item.id, lease, verdict: saying, note: place("note").value, seconds: looked() };
  document.querySelectorAll(".sayings button").forEach((each) => { each.disabled = true; });
  try {
    await give(body);
    say("");
  } catch (error) {
    say(error.message);
  }
  await next();
});

const skip = () => alone(async () => {
  if (!current) return;
  const { item, lease } = current;
  await insist(() => send("leave", { item: item.id, lease, skip: true }));
  await next();
});

async function open(id) {
  if (current) await send("leave", { item: current.item.id, lease: current.lease });
  try {
    const found = await send("open", { item: id });
    say("");
    show(found);
  } catch (error) {
    say(error.message);
    current = null;
    await next();
  }
}

function paint(waiting) {
  const holder = place("item");
  if (!current) {
    const left = waiting ? `${counted(waiting, "candidate")} left: you skipped them, or other reviewers have them.` : "New candidates appear here by themselves.";
    holder.replaceChildren(make("section", { class: "card done" }, make("h1", {}, "Nothing to review"), make("p", { class: "caption" }, left)), make("div", { id: "recent" }));
    recent();
    return;
  }
  const { item } = current;
  const rubric = item.rubric.length ? make("ul", { class: "rubric" }, item.rubric.map((each) => make("li", {}, each))) : null;
  const buttons = SAYINGS.map(([saying, key, name]) => {
    const button = make("button", { type: "button", class: `say ${saying.replace(" ", "-")}`, "data-say": saying }, name, make("kbd", {}, key));
    button.addEventListener("click", () => said(saying));
    return button;
  });
  const later = make("button", { type: "button", class: "say" }, "Skip", make("kbd", {}, "s"));
  later.addEventListener("click", skip);
  const note = make("textarea", { id: "note", rows: 2, maxlength: 10000, placeholder: "A note for the record, if it helps  ( n )", "aria-label": "Note" });
  holder.replaceChildren(
    make("div", { class: "asked" }, make("p", { class: "caption" }, `${item.problem} · about ${number(item.minutes)} min · ${number(Math.max(0, waiting - 1))} more ${waiting === 2 ? "waits" : "wait"}${current.correct ? " · correction" : ""}`), make("h1", {}, item.question), rubric),
    make("div", { class: "beside review" },
      make("section", { class: "card pane", "aria-label": "Problem" }, make("h2", {}, "Problem"), make("pre", { class: setting(item.prompt), tabindex: 0 }, item.prompt)),
      make("section", { class: "card pane", "aria-label": "Candidate" }, make("h2", {}, "Candidate"), item.answer_value ? make("p", { class: "caption" }, `States the answer: ${item.answer_value}`) : null, isDiff(item.text) ? diff(item.text, item.id) : make("pre", { class: setting(item.text), tabindex: 0 }, item.text))),
    make("div", { class: "sayings" }, note, make("div", { class: "buttons" }, buttons, later), make("p", { class: "caption" }, "Time on this page is measured: ", make("span", { id: "clock" }))),
    make("div", { id: "recent" }));
  recent();
}

async function recent() {
  const state = await ask("/api/review");
  const list = state.recent.map((each) => {
    const again = make("button", { type: "button", class: "quiet" }, "Correct");
    again.addEventListener("click", () => alone(() => open(each.item)));
    return make("li", {}, pill(each.verdict), " ", make("span", { title: each.item }, each.problem || each.item), ` candidate ${each.item.split(":").at(-1)} `, each.note ? make("span", { class: "caption" }, each.note) : null, " ", again);
  });
  place("recent")?.replaceChildren(...(list.length ? [make("details", { class: "recent" }, make("summary", {}, `Your last ${counted(list.length, "verdict")}`), make("ul", {}, list))] : []));
  if (!current) badge(state.waiting);
  return state;
}

/** Looks for new items, if there is none. */
const look = () => alone(async () => {
  if (!current && (await ask("/api/review")).waiting) await next();
});

/** Says that the page is open. */
async function here() {
  if (busy || !current) return;
  const { item, lease } = current;
  const still = await send("here", { item: item.id, lease }).catch(() => ({ held: true }));
  if (still.held || current?.item.id !== item.id) return;
  await alone(async () => {
    const note = place("note").value; // after a restart of the server, or a long sleep
    await open(item.id);
    if (current?.item.id === item.id) place("note").value = note;
  });
}

addEventListener("pagehide", () => {
  if (current) send("leave", { item: current.item.id, lease: current.lease }, { keepalive: true }).catch(() => {});
  current = null;
});
addEventListener("pageshow", (event) => { if (event.persisted) location.reload(); });
keys({
  ...Object.fromEntries(SAYINGS.map(([saying, key]) => [key, () => said(saying)])),
  s: skip,
  n: () => place("note")?.focus(),
});
setInterval(() => (current ? here() : look()), HERE);
setInterval(() => { if (current && place("clock")) place("clock").textContent = lasting(looked()); }, 1000);
try {
  session = await mountBar("review");
  if (!session.reviews) await signIn();
  const asked = /^#(.+:\d+)$/.exec(location.hash);
  if (asked) await open(decodeURIComponent(asked[1]));
  else await next();
  follow(look);
} catch (error) {
  say(error.message);
}
ready();
