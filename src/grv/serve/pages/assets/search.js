// One search: its steps with their reasons, and its candidates side by side.

import { amount, ask, counted, follow, keys, lasting, make, mountBar, number, pill, place, ready, say, setting, when } from "./common.js";
import { brief, diff, isDiff, log } from "./diff.js";

const id = decodeURIComponent(location.pathname.split("/")[2] ?? "");
const SHOWN_AT_FIRST = 30; // candidates in the list, and steps
let data = null;
let listed = SHOWN_AT_FIRST;
let steps = SHOWN_AT_FIRST;
const whole = new Map(); // whole texts that the reader asked for, by candidate

const WORDS = {
  started: () => "Started",
  continued: () => "Continued with other settings",
  generated: (step) => `Generated ${counted(step.ids.length, "candidate")}`,
  rescored: (step) => `Gave ${counted(step.ids.length, "candidate")} a second score`,
  verified: (step) => `Verified ${counted(step.ids.length, "candidate")}${step.shared ? `, ${step.shared.length} of them for nothing: the verdict was known` : ""}`,
  "attempt failed": (step) => `An attempt to ${step.call} failed`,
  parked: (step) => `Candidate ${step.ids.join(", ")} waits for a person`,
  reviewed: (step) => `${step.reviewer} reviewed candidate ${step.ids[0]}`,
  charged: () => "Charged",
  ended: (step) => `Ended: ${step.outcome}`,
  failed: () => "Could not continue",
};

const verdictOf = (each) => each.verdicts.at(-1) ?? null;

function stateOf(each) {
  const verdict = verdictOf(each);
  if (verdict) return verdict.verdict;
  if (each.waiting) return "waiting for review";
  return each.refuted ? "refuted" : each.dropped ? "dropped as broken" : "not verified";
}

/** A text with its lines. Lines that the other text lacks are marked. */
function lines(text, other = null) {
  const shown = make("pre", { class: setting(text), tabindex: 0 });
  const known = other === null ? null : new Set(other.split("\n").map((line) => line.trim()));
  text.split("\n").forEach((line, at) => {
    if (at) shown.append("\n");
    const isNew = known && line.trim() && !known.has(line.trim());
    shown.append(isNew ? make("mark", {}, line) : line);
  });
  return shown;
}

const link = (candidate) => {
  const to = make("a", { href: `#candidate-${candidate}` }, `${candidate}`);
  to.addEventListener("click", (event) => {
    event.preventDefault();
    compare({ left: candidate });
    place("beside").scrollIntoView({ block: "start" });
  });
  return to;
};

function timeline() {
  const start = data.steps[0]?.at ?? data.started;
  const list = make("ol", { class: "timeline" });
  const hidden = Math.max(0, data.steps.length - steps);
  const ends = steps >> 1; // the first and the last steps are shown
  const shown = hidden ? [...data.steps.slice(0, ends), null, ...data.steps.slice(ends - steps)] : data.steps;
  for (const step of shown) {
    if (step === null) {
      const more = make("button", { type: "button" }, `Show ${number(hidden)} more ${hidden === 1 ? "step" : "steps"}`);
      more.addEventListener("click", () => { steps = Infinity; show(); });
      list.append(make("li", { class: "gap" }, more));
      continue;
    }
    const few = step.ids.slice(0, 12);
    const ids = few.flatMap((each, at) => {
      const verdict = step.verdicts?.[each];
      return [at ? ", " : "", link(each), verdict ? ` ${verdict}` : ""];
    });
    if (step.ids.length > few.length) ids.push(` and ${step.ids.length - few.length} more`);
    const kind = step.step === "ended" ? step.outcome : step.step;
    const good = Object.values(step.verdicts ?? {}).includes("passed");
    list.append(make("li", { class: `${kind.replace(/\W+/g, "-")} ${good ? "passed" : ""}` },
      make("div", { class: "line" }, make("strong", {}, WORDS[step.step]?.(step) ?? step.step), make("span", { class: "spent", title: "spent so far" }, step.spent ? amount(step.spent, unit()) : "")),
      step.why ? make("p", { class: "why" }, step.why) : null,
      make("p", { class: "caption" }, ...(ids.length && !["parked", "reviewed"].includes(step.step) ? ["candidate ", ...ids, " · "] : []), `after ${lasting(step.at - start)}`)));
  }
  return list;
}

const unit = () => (data.settings.measured ? "dollars" : "");

/** What a verifier said: the reason, and the evidence such as the failing test. Logs are folded. */
function finding(verdict, name) {
  const parts = [make("p", { class: "said" }, pill(verdict.verdict), " ", verdict.reason, verdict.reviewer ? make("span", { class: "caption" }, ` by ${verdict.reviewer}`) : null)];
  if (verdict.note) parts.push(make("p", { class: "why" }, verdict.note));
  const evidence = Object.entries(verdict.evidence ?? {}).filter(([, value]) => value !== "" && value !== null);
  if (evidence.length) {
    const list = make("dl", { class: "evidence" });
    for (const [field, value] of evidence) {
      const short = typeof value === "string" ? value : JSON.stringify(value);
      const text = short.length < 80 || typeof value === "string" ? short : JSON.stringify(value, null, 1);
      list.append(make("dt", {}, field.replaceAll("_", " ")), make("dd", {}, log(text, `${name} ${field}`)));
    }
    parts.push(make("h4", {}, verdict.verdict === "failed" ? "The failing test" : "Evidence"), list);
  }
  return parts;
}

/** What an attempt cost, and how long the attempt and its verification took; null if nobody says. */
function priceOf(each) {
  const verified = each.verdicts.filter((verdict) => !verdict.shared).map((verdict) => verdict.seconds ?? 0);
  return { dollars: each.usage.dollars ?? null, seconds: each.usage.seconds || null, verified: verified.at(-1) || null };
}

const dollars = (value) => (value === null ? "" : amount(value, "dollars"));

/** The price of an attempt in words. */
function priced(each) {
  const { dollars: paid, seconds, verified } = priceOf(each);
  const words = [dollars(paid), seconds ? lasting(seconds) : "", verified ? `verified in ${lasting(verified)}` : ""].filter(Boolean);
  return words.length ? make("p", { class: "caption price" }, `${each.generator ? `${each.generator}: ` : ""}${words.join(", ")}`) : null;
}

/** A function that finds the first line of a text which not all candidates have. */
function firstDistinct() {
  const counts = new Map();
  for (const each of data.candidates) {
    for (const line of new Set(each.text.text.split("\n"))) counts.set(line, (counts.get(line) ?? 0) + 1);
  }
  return (text) => {
    if (isDiff(text)) return brief(text).slice(0, 200);
    const there = text.split("\n").filter((line) => line.trim() && !/^\s*(```|~~~)/.test(line)); // not the fence of a block
    return (there.find((line) => counts.get(line) < data.candidates.length) ?? there[0] ?? "").trim().slice(0, 200);
  };
}

function candidateList() {
  const distinct = firstDistinct();
  const scores = data.candidates.map((each) => each.score).filter(Number.isFinite);
  const [low, high] = [Math.min(...scores), Math.max(...scores)];
  const ranked = [...data.candidates].sort((a, b) => (b.score ?? -Infinity) - (a.score ?? -Infinity) || a.candidate - b.candidate);
  const prices = new Map(data.candidates.map((each) => [each.candidate, priceOf(each)]));
  const known = (name) => [...prices.values()].some((price) => price[name]);
  const [paid, long] = [known("dollars"), [...prices.values()].some((price) => (price.seconds ?? 0) + (price.verified ?? 0) >= 1)];
  const body = make("tbody");
  for (const each of ranked.slice(0, listed)) {
    const price = prices.get(each.candidate);
    const meter = make("meter", { min: 0, max: 1, "aria-hidden": "true" });
    meter.value = high > low ? (each.score - low) / (high - low) : 1;
    const show = make("button", { type: "button", class: "quiet" }, `${each.candidate}`);
    show.addEventListener("click", () => compare({ left: each.candidate }));
    const isAnswer = each.candidate === data.answer;
    body.append(make("tr", { id: `candidate-${each.candidate}`, class: isAnswer ? "answer" : "" },
      make("th", { scope: "row" }, show),
      make("td", { class: "score" }, Number.isFinite(each.score) ? [meter, number(each.score)] : make("span", { class: "caption", title: each.score_reason ?? "" }, "none")),
      make("td", { class: "text" }, pill(stateOf(each)), isAnswer ? make("span", { class: "caption" }, each.answer_value ? ` the answer: ${each.answer_value}` : " the answer") : null),
      paid ? make("td", { class: "price" }, dollars(price.dollars)) : null,
      long ? make("td", { class: "price", title: price.verified ? `verified in ${lasting(price.verified)}` : "" }, price.seconds ? lasting(price.seconds) : "") : null,
      make("td", { class: "text first" }, distinct(each.text.text))));
  }
  const titles = ["", "score", "verdict", ...(paid ? ["cost"] : []), ...(long ? ["time"] : []), "text"];
  const head = titles.map((name) => make("th", { scope: "col", class: ["verdict", "text"].includes(name) ? "text" : "" }, name));
  const parts = [make("div", { class: "rows", tabindex: 0, role: "region", "aria-label": "Candidates" }, make("table", {}, make("thead", {}, make("tr", {}, head)), body))];
  if (ranked.length > listed) {
    const more = make("button", { type: "button" }, `Show ${number(Math.min(200, ranked.length - listed))} more`);
    more.addEventListener("click", () => { listed += 200; show(); });
    parts.push(more);
  }
  if (data.left_out) parts.push(make("p", { class: "caption" }, `The ${number(data.left_out)} others of ${counted(data.generated, "candidate")}: grv runs show`));
  return parts;
}

/** The two candidates to compare: those in the address, or the answer and the best one that failed. */
function chosen() {
  const asked = new URLSearchParams(location.search);
  const there = new Set(data.candidates.map((each) => each.candidate));
  const named = (name) => (asked.has(name) && there.has(Number(asked.get(name))) ? Number(asked.get(name)) : null);
  const best = (fits) => data.candidates.filter(fits).sort((a, b) => (b.score ?? -Infinity) - (a.score ?? -Infinity))[0]?.candidate ?? null;
  const left = named("left") ?? data.answer ?? best(() => true);
  const failed = best((each) => each.candidate !== left && verdictOf(each)?.verdict === "failed");
  return [left, named("right") ?? failed ?? best((each) => each.candidate !== left)];
}

function compare(changes) {
  const [left, right] = chosen();
  const now = { left, right, ...changes };
  if (now.left === now.right) now.right = changes.left === undefined ? left : right === changes.left ? left : right;
  const asked = new URLSearchParams(Object.entries(now).filter(([, value]) => value !== null));
  history.replaceState(null, "", `${location.pathname}?${asked}`);
  showBeside();
}

function pane(side, candidate, other) {
  const each = data.candidates.find((one) => one.candidate === candidate);
  const pick = make("select", { "aria-label": `Candidate on the ${side}` }, data.candidates.map((one) => make("option", { value: one.candidate }, `candidate ${one.candidate}: ${stateOf(one)}${Number.isFinite(one.score) ? `, ${number(one.score)}` : ""}`)));
  pick.value = candidate;
  pick.addEventListener("change", () => compare({ [side]: Number(pick.value) }));
  const text = whole.get(candidate) ?? each.text.text;
  const rest = each.text.length - text.length;
  const more = make("button", { type: "button" }, `Show all ${number(each.text.length)} characters`);
  more.addEventListener("click", async () => {
    whole.set(candidate, (await ask(`/api/searches/${encodeURIComponent(id)}/${candidate}`)).text);
    showBeside();
  });
  const verdicts = each.verdicts.map((verdict, at) => make("div", { class: "finding" }, finding(verdict, `${candidate} ${at}`)));
  return make("section", { class: "card pane", "aria-label": `Candidate ${candidate}` }, pick,
    verdicts.length ? verdicts : make("p", { class: "said" }, pill(stateOf(each)), (each.refuted || each.dropped) && each.score_reason ? ` ${each.score_reason}` : ""),
    priced(each), isDiff(text) ? diff(text, `${candidate}`) : lines(text, other), rest > 0 ? more : null);
}

function showBeside() {
  const [left, right] = chosen();
  if (left === null) return place("beside").replaceChildren(make("p", { class: "empty" }, "No candidate has arrived yet."));
  const textOf = (candidate) => (candidate === null ? null : whole.get(candidate) ?? data.candidates.find((each) => each.candidate === candidate).text.text);
  const panes = [pane("left", left, textOf(right))];
  if (right !== null) panes.push(pane("right", right, textOf(left)));
  place("beside").replaceChildren(...panes);
}

function facts() {
  const took = (data.ended ?? Date.now() / 1000) - data.started;
  const dollars = data.dollars === null ? "unknown" : amount(data.dollars, "dollars");
  const pairs = [["cost", amount(data.total ?? data.paid, unit())], ["dollars", unit() === "dollars" ? "" : dollars], ["generated", number(data.generated)], ["verified", number(data.verified)], ["shared", data.shared ? number(data.shared) : ""], ["took", data.status === "stopped" ? "" : lasting(took)], ["account", data.account]];
  const lost = Object.entries(data.lost).map(([call, n]) => `${n} ${call}`).join(", ");
  if (lost) pairs.push(["possibly paid, lost", lost]);
  if (data.cancelled) pairs.push(["paid but unneeded", `${data.cancelled} verify`]);
  return make("dl", { class: "facts" }, pairs.filter(([, value]) => value).flatMap(([name, value]) => [make("div", {}, make("dt", {}, name), make("dd", {}, value))]));
}

function problem() {
  const check = data.check === null ? "" : typeof data.check === "string" ? data.check : JSON.stringify(data.check, null, 2);
  const settings = Object.entries(data.settings).filter(([, value]) => value !== null && value !== "" && !(Array.isArray(value) && !value.length));
  return make("section", { class: "card" }, make("h2", {}, "Problem"), lines(data.prompt.text || "(no prompt is recorded)"),
    check ? make("details", {}, make("summary", {}, "How an answer is verified"), make("pre", { class: "text" }, check)) : null,
    make("details", {}, make("summary", {}, "Settings"), make("dl", { class: "evidence" }, settings.flatMap(([name, value]) => [make("dt", {}, name.replaceAll("_", " ")), make("dd", {}, typeof value === "object" ? JSON.stringify(value) : String(value))]))));
}

function notes() {
  const found = [];
  if (data.damage) found.push(`This search is damaged: ${data.damage}. What is shown ends there; grv runs repair saves the rest of the ledger.`);
  if (data.corrected) found.push("A verdict was corrected after the search had ended. Run the same command again: the search then continues from it.");
  return found.map((text) => make("p", { class: "warnings" }, text));
}

function show() {
  document.title = `grv: ${data.problem || id}`;
  const open = new Set([...document.querySelectorAll("#search details[open] > summary")].map((each) => each.textContent));
  place("search").replaceChildren(
    make("p", { class: "back" }, make("a", { href: document.referrer.startsWith(`${location.origin}/`) ? document.referrer : "/" }, "All searches")),
    make("div", { class: "title" }, make("h1", {}, data.problem || id), pill(data.status)),
    make("p", { class: "caption" }, `search ${id}, started `, when(data.started)),
    ...notes(), facts(),
    make("div", { class: "columns" },
      make("div", { class: "column" }, problem(), make("section", { class: "card" }, make("h2", {}, "Steps"), timeline())),
      make("div", { class: "column" }, make("section", { class: "card" }, make("h2", {}, "Candidates, best score first"), candidateList()))),
    make("h2", { class: "beside-title" }, "Side by side"),
    make("div", { id: "beside", class: "beside" }));
  showBeside();
  for (const each of document.querySelectorAll("#search details > summary")) {
    if (open.has(each.textContent)) each.parentElement.open = true;
  }
}

async function refresh(changed) {
  if (data && changed && !changed.has(id) && !changed.has("*")) return;
  const before = data?.paid === undefined ? "" : JSON.stringify(data);
  data = await ask(`/api/searches/${encodeURIComponent(id)}`);
  if (JSON.stringify(data) !== before) show();
}

function step(by) {
  const order = [...document.querySelectorAll("#search tbody th button")].map((each) => Number(each.textContent));
  const at = order.indexOf(chosen()[0]);
  const to = order[Math.max(0, Math.min(order.length - 1, at + by))];
  if (to !== undefined) compare({ left: to });
}

keys({ j: () => step(1), k: () => step(-1), u: () => document.querySelector(".back a").click() });
try {
  await mountBar("search");
  await refresh(null);
  follow(refresh);
} catch (error) {
  say(error.message);
}
ready();
