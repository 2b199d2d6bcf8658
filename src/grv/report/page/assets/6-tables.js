// Tables that the reader can sort and copy.

/** The visible rows in the order that the reader chose. */
function sorted(table, order) {
  const rows = visible(table);
  if (!order.name) return rows;
  const at = table.at.get(order.name);
  const compared = (a, b) => (typeof a === "number" ? a - b : a.localeCompare(b, "en", { numeric: true }));
  return [...rows].sort((one, other) => {
    const [a, b] = [one[at] ?? null, other[at] ?? null];
    if (a === null || b === null) return (a === null) - (b === null); // empty cells come last
    return order.falling ? compared(b, a) : compared(a, b);
  });
}

/** The columns to show; not `log` if there is only one log. */
const told = (table) => table.columns.filter((about) => about.name !== "log" || data.logs.length > 1);

/** The line of group headings, if any column has a group. */
function groupLine(table) {
  if (!table.columns.some((about) => about.group)) return [];
  const line = make("tr");
  let last = null;
  for (const about of told(table)) {
    if (last && about.group && last.textContent === about.group) last.colSpan += 1;
    else {
      last = make(about.group ? "th" : "td", about.group ? { scope: "colgroup" } : {}, about.group);
      line.append(last);
    }
  }
  return [line];
}

function headLine(table, order, again) {
  const line = make("tr");
  for (const about of told(table)) {
    const head = make("th", { scope: "col", class: about.kind, title: about.meaning });
    const button = make("button", { type: "button" }, labelled(about));
    const isSorted = order.name === about.name;
    head.setAttribute("aria-sort", isSorted ? (order.falling ? "descending" : "ascending") : "none");
    button.addEventListener("click", () => {
      order.falling = isSorted ? !order.falling : about.kind !== "text";
      order.name = about.name;
      again(about.name);
    });
    head.append(button);
    line.append(head);
  }
  return line;
}

/** A table of one row, upright: a line for each column. */
function upright(table, row) {
  const lines = told(table).map((about) => {
    const name = make("th", { scope: "row", class: "text", title: about.meaning }, asLabel(about));
    return make("tr", {}, name, make("td", { class: about.kind }, shown(about, cell(table, row, about.name))));
  });
  return make("table", { class: "upright" }, make("caption", { class: "unseen" }, table.title), make("tbody", {}, ...lines));
}

/** Fills a holder with a table; the order of rows survives the next filling. */
function fillTable(holder, table) {
  if (table.rows.length === 1 && visible(table).length) {
    holder.order ??= { name: "", falling: false };
    holder.replaceChildren(upright(table, table.rows[0]));
    return;
  }
  holder.order ??= { name: "", falling: false };
  const again = (name) => {
    fillTable(holder, table);
    holder.querySelectorAll("thead button")[told(table).indexOf(column(table, name))].focus();
  };
  const rows = sorted(table, holder.order);
  const body = make("tbody");
  for (const row of rows) {
    const line = make("tr");
    for (const about of told(table)) {
      const isHead = about.name === (table.at.has("policy") ? "policy" : "problem");
      const attributes = isHead ? { scope: "row", class: about.kind } : { class: about.kind };
      const value = cell(table, row, about.name);
      if (["policy", "costs"].includes(about.name)) attributes.title = data.meanings[value] ?? "";
      line.append(make(isHead ? "th" : "td", attributes, shown(about, value)));
    }
    body.append(line);
  }
  const head = make("thead", {}, ...groupLine(table), headLine(table, holder.order, again));
  const caption = make("caption", { class: "unseen" }, table.title);
  const whole = make("table", {}, caption, head, body);
  const none = make("p", { class: "empty" }, "The filters above exclude all rows.");
  holder.replaceChildren(rows.length ? whole : none);
}

const asLabel = (about) => (about.group ? `${about.group} ${labelled(about)}` : labelled(about));

/** The table for spreadsheets: tabs, all digits. */
function tabbed(table, order) {
  const clean = (value) => String(value ?? "").replace(/[\t\r\n]+/g, " ");
  const lines = [table.columns.map(asLabel), ...sorted(table, order)];
  return lines.map((line) => table.columns.map((_, at) => clean(line[at])).join("\t")).join("\n");
}

/** The table as Markdown, as shown. */
function marked(table, order) {
  const clean = (text) => text.replace(/[|\\]/g, "\\$&").replace(/[\r\n]+/g, " ");
  const line = (cells) => `| ${cells.map(clean).join(" | ")} |`;
  const rule = told(table).map((about) => (about.kind === "text" ? "---" : "---:"));
  const cells = (row) => told(table).map((about) => shown(about, cell(table, row, about.name)));
  const rows = sorted(table, order).map((row) => line(cells(row)));
  return [line(told(table).map(asLabel)), `|${rule.join("|")}|`, ...rows].join("\n");
}

/** Copies to the clipboard, also if the browser has no clipboard for local files. */
async function copy(text, button) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const area = make("textarea", { class: "unseen" });
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
    button.focus();
  }
  const before = button.textContent;
  button.textContent = "Copied";
  spoken.textContent = "Copied";
  setTimeout(() => { button.textContent = before; }, 1200);
}
