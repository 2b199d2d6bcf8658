// The overview: numbers, figures, and the list of searches with filters.

import { baselineChart, chartCard, spentChart } from "./charts.js";
import { amount, ask, badge, counted, follow, keys, lasting, make, mountBar, number, percent, pill, place, ready, say, when } from "./common.js";

const SHOWN = [["all", "All"], ["unfinished", "Unfinished"], ["solved", "Solved"], ["judged", "Judged"], ["unsolved", "Unsolved"], ["failed", "Failed"]];
const SORTED = [["newest", "newest first"], ["ended", "last ended first"], ["cost", "most expensive first"]];
let current = null; // the overview
let fits = [];

const wanted = () => new URLSearchParams(location.search);

/** Changes the address, which is a permanent link to what is shown. */
function choose(changes) {
  const now = wanted();
  for (const [name, value] of Object.entries(changes)) {
    if (value === null) now.delete(name);
    else now.set(name, value);
  }
  if (!("page" in changes)) now.delete("page");
  const text = now.toString();
  history.pushState(null, "", text ? `/?${text}` : "/");
  return showList();
}

const tile = (name, value, ...notes) =>
  make("div", { class: "tile" }, make("h2", {}, name), make("p", { class: "figure-of" }, value), make("p", { class: "caption" }, notes.filter(Boolean).join("; ")));

function tiles(data) {
  const { outcomes, verdicts, baselines, unit } = data;
  const solved = outcomes.solved ?? 0;
  const decided = verdicts.passed + verdicts.failed;
  const ended = data.searches - (outcomes.unfinished ?? 0);
  const isShort = data.bars.seconds < 600; // too short for an amount per hour
  const rate = isShort ? 0 : data.bars.per_hour;
  const pace = isShort ? `in ${lasting(data.bars.seconds)}` : `${amount(rate, unit)} per hour${data.running ? "" : " at the end"}`;
  const left = data.left === null ? "no limit" : amount(data.left, unit);
  const enough = data.left !== null && rate > 0 && data.running ? `lasts ${lasting((3600 * data.left) / rate)} at this rate` : "";
  return [
    tile("Running", number(data.running), data.waiting ? `${counted(data.waiting, "candidate")} wait for review` : "", data.in_turn ? `${number(data.in_turn)} wait for their turn` : "", data.stopped ? `${number(data.stopped)} stopped` : "", data.running || data.waiting || data.in_turn || data.stopped ? "" : data.searches ? "everything has ended" : "no search yet"),
    tile("Solved", number(solved), ended ? `${percent(solved / ended)} of ${counted(ended, "ended search", "ended searches")}` : "none has ended"),
    tile("Spent", amount(data.spent, unit), data.spent ? pace : "", unit && unit !== "dollars" ? unit : ""),
    tile("Left", left, data.left === null ? "no total budget is known" : `of ${amount(data.total, unit)}`, enough),
    tile("Pass rate", decided ? percent(verdicts.passed / decided) : "–", `${counted(decided, "verdict")}${verdicts.newest ? ", the newest" : ""}`, [verdicts.broken ? `${number(verdicts.broken)} broken` : "", verdicts.shared ? `${number(verdicts.shared)} shared` : ""].filter(Boolean).join(", ")),
    savedTile(baselines),
  ];
}

/** What was saved, compared with verify-all: a range, if verdicts are missing. */
function savedTile(baselines) {
  if (!baselines || !(baselines.least > 0)) return tile("Saved", "–", "no solved search to compare");
  const ends = [baselines.least, baselines.most].map((cost) => 1 - baselines.cost / cost);
  const isMore = ends[1] < 0;
  const [low, high] = ends.map((share) => percent(isMore ? -share : share));
  const [first, last] = isMore ? [high, low] : [low, high];
  const range = `${first.replace(" %", "")}\u00a0to\u00a0${last.replace(" ", "\u00a0")}`; // on one line
  const note = `of what verify-all costs, ${counted(baselines.searches, "solved search", "solved searches")}`;
  return tile(isMore ? "More than verify-all" : "Saved", low === high ? low : range, note);
}

function showCharts(data) {
  const made = [];
  if (data.bars.spent.length) {
    made.push(chartCard("Spent over time", `Per ${lasting(data.bars.width)}, by when searches ended.`, (width) => spentChart(width, data.bars, data.unit)));
  }
  if (data.baselines) {
    const { searches, unknown } = data.baselines;
    const caption = `The newest ${counted(searches, "solved search", "solved searches")}, on the same candidates${unknown ? `; for verify-all, ${counted(unknown, "candidate")} without a verdict count as failed` : ""}.`;
    made.push(chartCard("Cost of solved searches", caption, (width) => baselineChart(width, data.baselines, data.unit)));
  }
  place("charts").replaceChildren(...made.map((each) => each.card));
  fits = made.map((each) => each.fit);
  fits.forEach((fit) => fit());
}

const MEANINGS = [
  ["running", "A process that is alive has claimed the search. One that waits for its turn has given way to others: while a run on this ledger is alive, so do all that have no claim. A stopped one continues when the same command runs again. Of more than 5,000 unfinished searches, the newest are looked at."],
  ["spent", "What was possibly paid: also reserved for calls in flight, and paid for calls whose result was lost. A search counts at the time it ended; an unfinished one counts now."],
  ["per hour", "What searches spent that go on, or that ended in the last hour. After the end of a run, its last hour counts. It is shown after ten minutes."],
  ["pass rate", "Passed verdicts among those that passed or failed, over the newest 20,000 entries of the ledger. The searches chose what to verify, so this is not the pass rate of the model."],
  ["verify-all", "Generates one candidate after another and verifies each, up to the first known pass. Refuted candidates are not verified, and a key that has failed is not verified again. The chart counts candidates without a verdict as failed. It is what grv compare says about the exported log with --keys and --order-scheme logged."],
  ["hindsight", "Generates the same candidates up to the first known pass, and verifies only that one. If an unverified earlier candidate would have passed, hindsight would have cost less than shown. No method can plan this."],
  ["saved", "One minus the cost of the newest 500 solved searches over what verify-all costs on them. If candidates have no verdict, it is a range: from all of them pass to all of them fail. Unsolved searches are left out: their candidates have no known pass. So are searches with several generators."],
];

function showOverview(data) {
  current = data;
  place("tiles").removeAttribute("aria-busy");
  place("tiles").replaceChildren(...tiles(data));
  showCharts(data);
  badge(data.waiting);
  showCounts();
}

function showCounts() {
  if (!current) return;
  const { outcomes } = current;
  const counts = { all: current.searches, unfinished: outcomes.unfinished ?? 0, solved: outcomes.solved ?? 0, judged: outcomes.judged ?? 0, failed: outcomes.failed ?? 0 };
  counts.unsolved = counts.all - counts.unfinished - counts.solved - counts.judged - counts.failed;
  for (const [name] of SHOWN) {
    const shown = document.querySelector(`[data-count=${name}]`);
    if (shown) shown.textContent = number(counts[name]);
  }
  const accounts = place("account");
  const names = current.accounts.map((each) => each.name);
  if (accounts && accounts.options.length !== names.length + 1) {
    accounts.replaceChildren(make("option", { value: "*" }, "all accounts"), ...names.map((name) => make("option", { value: name }, name || "(no account)")));
    accounts.value = wanted().get("account") ?? "*";
    accounts.hidden = names.length < 2;
  }
}

function showFilters() {
  const now = wanted();
  const group = make("fieldset", {}, make("legend", { class: "unseen" }, "Outcome"));
  for (const [value, name] of SHOWN) {
    const input = make("input", { type: "radio", name: "show", value });
    input.checked = (now.get("show") ?? "all") === value;
    input.addEventListener("change", () => choose({ show: value === "all" ? null : value }));
    group.append(make("label", {}, input, make("span", {}, `${name} `, make("b", { "data-count": value }))));
  }
  const text = make("input", { id: "q", type: "search", placeholder: "Problem or search  ( / )", "aria-label": "Find searches by problem or id", maxlength: 200 });
  text.value = now.get("q") ?? "";
  const deep = make("input", { type: "checkbox", id: "texts" });
  deep.checked = now.get("texts") === "1";
  let timer = 0;
  text.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(() => choose({ q: text.value.trim() || null }), 250);
  });
  deep.addEventListener("change", () => choose({ texts: deep.checked ? "1" : null }));
  const order = make("select", { "aria-label": "Order" }, SORTED.map(([value, name]) => make("option", { value }, name)));
  order.value = now.get("sort") ?? "newest";
  order.addEventListener("change", () => choose({ sort: order.value === "newest" ? null : order.value }));
  const account = make("select", { id: "account", "aria-label": "Account", hidden: true });
  account.addEventListener("change", () => choose({ account: account.value === "*" ? null : account.value }));
  place("filters").replaceChildren(group, text, make("label", { class: "check", title: "Looks through prompts and candidates of the newest 1,000 searches" }, deep, " in texts too"), account, order);
  place("filters").addEventListener("submit", (event) => event.preventDefault());
  showCounts();
}

function row(each, unit) {
  const took = (each.ended ?? Date.now() / 1000) - each.started;
  const link = make("a", { href: `/searches/${encodeURIComponent(each.id)}` }, each.problem || each.id);
  const cells = [
    make("td", { class: "text status" }, pill(each.status)),
    make("th", { class: "text problem", scope: "row" }, link, each.account ? make("span", { class: "account" }, each.account) : null),
    make("td", { "data-name": "started" }, when(each.started)),
    make("td", { "data-name": "took" }, each.status === "stopped" ? "" : lasting(took)),
    make("td", { "data-name": "generated" }, number(each.generated)),
    make("td", { "data-name": "verified" }, number(each.verified)),
    make("td", { "data-name": "cost" }, amount(each.total ?? each.paid, unit)),
  ];
  const line = make("tr", { "data-id": each.id }, cells);
  line.addEventListener("click", (event) => {
    if (!event.target.closest("a") && !getSelection().toString()) link.click();
  });
  return line;
}

async function showList() {
  const now = wanted();
  const found = await ask(`/api/searches?${now}`);
  const at = document.activeElement?.closest?.("tr")?.dataset.id;
  const head = ["status", "problem", "started", "took", "generated", "verified", "cost"];
  const names = head.map((name, i) => make("th", { scope: "col", class: i < 2 ? "text" : "" }, name));
  const body = make("tbody", {}, found.searches.map((each) => row(each, current?.unit)));
  const none = found.count ? "" : (now.size ? "No search fits the filters." : "The ledger has no searches yet. They appear here as soon as a run starts.");
  place("rows").replaceChildren(none ? make("p", { class: "empty" }, none) : make("table", {}, make("caption", { class: "unseen" }, "Searches"), make("thead", {}, make("tr", {}, names)), body));
  if (at) body.querySelector(`[data-id="${CSS.escape(at)}"] a`)?.focus();
  showPager(found);
}

function showPager(found) {
  const { page, size, count } = found;
  const step = (to, name, on) => {
    const button = make("button", { type: "button", disabled: !on }, name);
    button.addEventListener("click", () => choose({ page: to || null }));
    return button;
  };
  const range = count ? `${number(page * size + 1)}–${number(Math.min(count, (page + 1) * size))} of ${number(count)}` : "";
  const note = found.texts ? `; texts of the newest ${number(found.texts)} searches` : "";
  place("pager").replaceChildren(...(count ? [step(page - 1, "Previous", page > 0), make("span", { class: "caption" }, range + note), step(page + 1, "Next", (page + 1) * size < count)] : []));
}

function move(by) {
  const links = [...document.querySelectorAll("#rows th a")];
  const at = links.indexOf(document.activeElement);
  links[Math.max(0, Math.min(links.length - 1, at + by))]?.focus();
}

const turn = (by) => place("pager").querySelectorAll("button")[by > 0 ? 1 : 0]?.click();

async function showAll() {
  showOverview(await ask("/api/overview"));
  await showList();
}

place("meanings").append(...MEANINGS.flatMap(([name, text]) => [make("dt", {}, name), make("dd", {}, text)]));
keys({ "/": () => place("q").focus(), j: () => move(1), k: () => move(-1), n: () => turn(1), p: () => turn(-1) });
addEventListener("popstate", () => { showFilters(); showList(); });
addEventListener("resize", () => fits.forEach((fit) => fit()));
try {
  await mountBar("overview");
  showFilters();
  await showAll();
  follow(showAll);
} catch (error) {
  say(error.message);
}
ready();
