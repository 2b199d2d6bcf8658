// Shows the numbers under the mouse, the finger or the arrow keys.

const tip = make("div", { id: "tip", hidden: "" });
const spoken = make("div", { id: "spoken", class: "unseen", "aria-live": "polite" });
const REACH = 40; // pixels

/** The cells of a row to show, with labels. */
function sayings({ table, row, series }) {
  const skipped = new Set(["log", "costs"].filter((name) => name !== "log" || data.logs.length < 2));
  const told = table.columns
    .map((about, at) => [labelled(about), shown(about, row[at] ?? null), about])
    .filter(([, value, about]) => value !== "" && !skipped.has(about.name));
  return { head: series || "", told: told.slice(0, 12) };
}

function showTip(spot, box) {
  const { head, told } = sayings(spot);
  const list = make("dl");
  for (const [name, value] of told) list.append(make("dt", {}, name), make("dd", {}, value));
  tip.replaceChildren(...(head ? [make("strong", {}, head)] : []), list);
  tip.hidden = false;
  const { width, height } = tip.getBoundingClientRect();
  const [x, y] = [box.left + spot.x, box.top + spot.y];
  const left = x + 14 + width < innerWidth ? x + 14 : Math.max(4, x - 14 - width);
  const top = Math.max(4, Math.min(y - height / 2, innerHeight - height - 4));
  tip.style.left = `${scrollX + Math.min(left, Math.max(4, innerWidth - width - 4))}px`;
  tip.style.top = `${scrollY + top}px`;
  return told.map(([name, value]) => `${name} ${value}`).join(", ");
}

function hideTip(svg) {
  tip.hidden = true;
  svg?.querySelector(".here")?.remove();
}

/** Marks a spot and shows its numbers; announces them to screen readers if `aloud`. */
function goTo(svg, spot, aloud) {
  hideTip(svg);
  draw(svg, "circle", { cx: spot.x, cy: spot.y, r: 8, class: "here" });
  const words = showTip(spot, svg.getBoundingClientRect());
  if (aloud) spoken.textContent = words;
}

function nearest(spots, x, y) {
  let [best, least] = [null, REACH];
  for (const spot of spots) {
    const distance = Math.hypot(spot.x - x, spot.y - y);
    if (distance < least) [best, least] = [spot, distance];
  }
  return best;
}

/** Handles pointer and keys of a chart; `spotsOf` returns its current spots. */
function listen(svg, spotsOf) {
  let at = -1;
  svg.addEventListener("pointermove", (event) => {
    const box = svg.getBoundingClientRect();
    const spot = nearest(spotsOf(), event.clientX - box.left, event.clientY - box.top);
    if (spot) goTo(svg, spot, false);
    else hideTip(svg);
  });
  svg.addEventListener("pointerleave", () => hideTip(svg));
  svg.addEventListener("blur", () => {
    at = -1;
    hideTip(svg);
  });
  svg.addEventListener("keydown", (event) => {
    const spots = [...spotsOf()].sort((a, b) => a.x - b.x || a.y - b.y);
    const last = spots.length - 1;
    const [next, before] = [at + 1, at - 1];
    const moves = { ArrowRight: next, ArrowDown: next, ArrowLeft: before, ArrowUp: before, Home: 0, End: last };
    if (event.key === "Escape") hideTip(svg);
    if (!(event.key in moves) || last < 0) return;
    event.preventDefault();
    at = Math.max(0, Math.min(last, moves[event.key]));
    goTo(svg, spots[at], true);
  });
}
