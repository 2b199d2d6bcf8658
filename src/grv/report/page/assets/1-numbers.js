// The numbers of the report, the reader's filters, and the formatting of values.

const data = JSON.parse(document.getElementById("data").textContent);
const tables = new Map(data.tables.map((table) => [table.name, table]));
for (const table of data.tables) {
  table.at = new Map(table.columns.map((column, at) => [column.name, at]));
}

const chosen = {
  costs: data.costs[0] ?? "",
  logs: new Set(data.logs),
  policies: new Set(data.policies),
};

const cell = (table, row, name) => row[table.at.get(name)] ?? null;
const column = (table, name) => table.columns[table.at.get(name)];

/** The costs of a price list "G,V" or "G,V,F", with or without a prefix "name:". */
const pricesOf = (costs) => costs.split(":").at(-1).split(",").map(Number);

/** The cost ratio of a price list; null for measured costs. */
function ratioOf(costs) {
  const [generate, verify] = pricesOf(costs);
  return Number.isFinite(verify / generate) ? verify / generate : null;
}

/** A number of a row: the value of a column, a constant, or the ratio of the price list. */
function number(table, row, name) {
  if (typeof name === "number") return name;
  if (name === "costs") return ratioOf(cell(table, row, name) ?? chosen.costs);
  const value = cell(table, row, name);
  return typeof value === "number" ? value : null;
}

const isHidden = (name) => data.policies.includes(name) && !chosen.policies.has(name);

/** The rows of a table that pass the filters. */
function visible(table) {
  return table.rows.filter((row) => {
    const log = cell(table, row, "log");
    const costs = cell(table, row, "costs");
    if (log !== null && data.logs.includes(log) && !chosen.logs.has(log)) return false;
    if (costs !== null && data.costs.includes(costs) && costs !== chosen.costs) return false;
    return !["policy", "series"].some((name) => isHidden(cell(table, row, name)));
  });
}

/** A formatted cell. */
function shown(about, value) {
  if (value === null || value === undefined) return "";
  if (typeof value === "string") return value;
  if (about.kind === "percent") return `${(100 * value).toFixed(about.digits)} %`;
  const size = Math.abs(value);
  if (about.kind === "cost" && size > 0 && size < 1) return String(Number(value.toPrecision(3)));
  const isSmall = about.kind === "cost" && size > 0 && size < 10;
  return value.toFixed(isSmall ? Math.max(about.digits, 2) : about.digits);
}

/** A formatted value for the label of a mark: large numbers without decimals. */
function brief(about, value) {
  const isLarge = about.kind !== "percent" && Math.abs(value) >= 1000;
  return isLarge ? Math.round(value).toLocaleString("en") : shown(about, value);
}

const labelled = (about) => (about.unit ? `${about.label} (${about.unit})` : about.label);

/** A short number for an axis. */
function onAxis(value, kind) {
  if (kind === "percent") return `${Number((100 * value).toPrecision(3))} %`;
  const size = Math.abs(value);
  if (size >= 1e6) return `${Number((value / 1e6).toPrecision(3))}M`;
  if (size >= 1e4) return `${Number((value / 1e3).toPrecision(3))}k`;
  return String(Number(value.toPrecision(3)));
}

/** A new element with attributes and children; text is never parsed as markup. */
function make(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

/** A new SVG element, appended to its parent. */
function draw(parent, name, attributes = {}, text = "") {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) {
    const rounded = typeof value === "number" ? Math.round(value * 100) / 100 : value;
    if (value !== "") element.setAttribute(key, rounded);
  }
  if (text) element.textContent = text;
  parent.append(element);
  return element;
}
