// What all pages share: elements, numbers, requests, live updates. Texts are never parsed as markup.

/** A new element with attributes and children. */
export function make(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value !== null && value !== false) element.setAttribute(key, value === true ? "" : value);
  }
  element.append(...children.flat().filter((each) => each !== null && each !== undefined));
  return element;
}

/** A new SVG element, appended to its parent. */
export function draw(parent, name, attributes = {}, text = "") {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  if (text) element.textContent = text;
  parent.append(element);
  return element;
}

export const place = (id) => document.getElementById(id);

/** A number for people: few digits, thousands apart. */
export function number(value) {
  if (typeof value !== "number") return value === null || value === undefined ? "" : String(value);
  const size = Math.abs(value);
  if (size >= 1e7) return `${Number((value / 1e6).toPrecision(3)).toLocaleString("en")} M`;
  if (size >= 100 || Number.isInteger(value)) return Math.round(value).toLocaleString("en");
  return Number(value.toPrecision(3)).toLocaleString("en", { maximumSignificantDigits: 3 });
}

/** An amount in the unit of the ledger. */
export const amount = (value, unit) => (unit === "dollars" ? `$${number(value)}` : number(value));

export const percent = (part) => `${Number((100 * part).toPrecision(part < 0.995 ? 2 : 3))} %`.replace("-", "−");

export const counted = (n, one, many = `${one}s`) => `${number(n)} ${n === 1 ? one : many}`;

/** A duration in words. */
export function lasting(seconds) {
  if (!Number.isFinite(seconds)) return "";
  if (seconds < 1) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 90) return `${Number(seconds.toPrecision(2))} s`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min`;
  if (seconds < 172800) return `${Number((seconds / 3600).toPrecision(2))} h`;
  return `${Math.round(seconds / 86400)} days`;
}

/** A time as an element: how long ago, with the date as its title. */
export function when(seconds) {
  const date = new Date(seconds * 1000);
  if (Number.isNaN(date.getTime())) return make("span", {}, "?");
  const ago = Date.now() / 1000 - seconds;
  const near = ago < 10 ? "now" : `${lasting(ago)} ago`;
  const text = ago < 86400 ? near : date.toLocaleDateString("en", { day: "numeric", month: "short", year: "numeric" });
  return make("time", { datetime: date.toISOString(), title: date.toLocaleString() }, text);
}

/** A status or verdict as a label with a colour. The word is always there. */
export const pill = (word) => make("span", { class: `pill ${String(word).replace(/\W+/g, "-")}` }, word);

/** Asks the API. If a key is missing, the page to sign in opens. */
export async function ask(path, options = {}) {
  const response = await fetch(path, { cache: "no-store", ...options });
  if (response.status === 204) return null;
  const content = await response.json().catch(() => null);
  if (response.ok) return content;
  const error = new Error(content?.error?.message ?? `status ${response.status}`);
  Object.assign(error, { status: response.status, code: content?.error?.code });
  if (error.code === "sign_in") return signIn();
  throw error;
}

/** Opens the page to sign in, and returns here afterwards. */
export function signIn() {
  location.replace(`/sign-in?to=${encodeURIComponent(location.pathname + location.search)}`);
  return new Promise(() => {}); // this page is being left
}

export function say(text, isError = true) {
  const old = place("message");
  old.replaceChildren(text ? make("p", { class: isError ? "warnings" : "note", role: "status" }, text) : "");
}

/** Calls `changed` when the ledger has new entries, at most about once a second. */
export function follow(changed) {
  const light = place("live");
  const names = new Set();
  let [timer, first, failed] = [0, true, false];
  const state = (word, title) => {
    light.className = `live ${word}`;
    light.textContent = word === "on" ? "live" : "reconnecting";
    light.title = title;
  };
  const later = (searches, at) => {
    searches.forEach((each) => names.add(each));
    if (timer) return;
    timer = setTimeout(async () => {
      const told = new Set(names);
      names.clear();
      try {
        await changed(told, at);
        if (failed) say("");
        failed = false;
      } catch (error) {
        failed = true;
        say(`Cannot be read: ${error.message}`);
      }
      timer = 0;
      if (names.size) later([], at);
    }, document.hidden ? 3000 : 700);
  };
  const source = new EventSource("/api/events");
  source.addEventListener("change", (event) => {
    const told = JSON.parse(event.data);
    state("on", "Changes appear at once");
    if (!first || told.searches.length) later(told.searches.length ? told.searches : ["*"], told.position);
    first = false;
  });
  source.addEventListener("error", () => {
    state("off", "The server does not answer; this page tries again");
  });
  addEventListener("pagehide", () => source.close());
  return source;
}

/** Keys with a meaning; not while the reader types. */
export function keys(meanings) {
  addEventListener("keydown", (event) => {
    const typing = event.target.closest?.("input, textarea, select");
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (typing && event.key !== "Escape") return;
    if (event.key === "Escape" && typing) return event.target.blur();
    const does = meanings[event.key];
    if (!does) return;
    event.preventDefault();
    does();
  });
}

function mountTheme() {
  const button = place("theme");
  const root = document.documentElement;
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches);
  const name = () => { button.textContent = isDark() ? "Light" : "Dark"; };
  const kept = localStorage.getItem("grv-theme");
  if (kept === "dark" || kept === "light") root.dataset.theme = kept;
  button.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    localStorage.setItem("grv-theme", root.dataset.theme);
    name();
  });
  name();
}

/** The bar at the top: where we are, and who is signed in. Returns the session. */
export async function mountBar(page) {
  mountTheme();
  for (const link of document.querySelectorAll("[data-page]")) {
    if (link.dataset.page === page) link.setAttribute("aria-current", "page");
  }
  const session = await ask("/api/session");
  document.querySelector("[data-page=review]").hidden = !session.reviewing;
  if (["overview", "search"].includes(page) && !session.sees) return signIn();
  if (session.name) {
    const leave = make("button", { type: "button", class: "quiet" }, "Sign out");
    leave.addEventListener("click", async () => {
      await ask("/api/session", { method: "DELETE" });
      location.assign("/sign-in");
    });
    place("who").replaceChildren(make("span", {}, session.name), leave);
  }
  return session;
}

export function badge(waiting) {
  const shown = document.querySelector("[data-page=review] .badge");
  shown.hidden = !waiting;
  shown.textContent = number(waiting);
}

/** How a text is set: prose, unless it has indented lines or signs of code. */
export const setting = (text) => (/^[ \t]+\S|```|[{};]\s*$|^def |^#include/m.test(text) ? "text" : "text prose");

/** The page shows its data, or says why not. */
export function ready() {
  document.querySelectorAll(".reading").forEach((each) => each.remove());
  document.documentElement.classList.add("ready");
}
