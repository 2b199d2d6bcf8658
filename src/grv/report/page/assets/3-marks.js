// The marks that represent rows. Each function draws one layer into one panel.
//
// A panel has: table, rows, spec, x and y (scales), art (where to draw), spots (what a reader can
// point at), lanes (the number of marks that share a named place).

const RAMP = 7;

function styleOf(panel, layer, row) {
  const name = layer.by ? cell(panel.table, row, layer.by) : layer.tone || layer.series || "first";
  return data.styles[name] ?? data.styles.first;
}

const dashOf = (style) => data.dashes[style.dash];

/** The position of a mark; in the middle of the bin if the row is a bin. */
function spotOf(panel, layer, row) {
  const { table, x, y } = panel;
  const middle = (first, second) => {
    const from = number(table, row, first);
    const to = second ? number(table, row, second) : from;
    return from === null || to === null ? null : (from + to) / 2;
  };
  const across = x.place(middle(layer.x, layer.mark === "interval" && y.names ? "" : layer.x2));
  const up = y.names
    ? laned(panel, layer, y.place(cell(table, row, layer.y)))
    : y.place(middle(layer.y, ""));
  return across === null || up === null ? null : [across, up];
}

function laned(panel, layer, middle) {
  if (middle === null) return null;
  const step = (panel.y.size * 0.7) / panel.lanes;
  return middle + ((layer.lane || 0) - (panel.lanes - 1) / 2) * step;
}

/** The rows of a layer in groups of one style; the first group comes last, so it is on top. */
function grouped(panel, layer, rows) {
  if (!layer.by) return [rows];
  const groups = new Map();
  for (const row of rows) {
    const name = cell(panel.table, row, layer.by);
    groups.set(name, [...(groups.get(name) ?? []), row]);
  }
  return [...groups.values()].reverse();
}

/** A line through spots. */
function path(spots) {
  return spots.map(([x, y], at) => `${at ? "L" : "M"}${x.toFixed(1)},${y.toFixed(1)}`).join("");
}

const SHAPES = {
  circle: (x, y, r) => `M${x - r},${y}a${r},${r} 0 1,0 ${2 * r},0a${r},${r} 0 1,0 ${-2 * r},0Z`,
  square: (x, y, r) => `M${x - r},${y - r}h${2 * r}v${2 * r}h${-2 * r}Z`,
  diamond: (x, y, r) => `M${x},${y - 1.3 * r}l${1.3 * r},${1.3 * r}l${-1.3 * r},${1.3 * r}l${-1.3 * r},${-1.3 * r}Z`,
  triangle: (x, y, r) => `M${x},${y - r * 1.2}l${r * 1.2},${r * 2.2}h${-r * 2.4}Z`,
  cross: (x, y, r) => `M${x - r},${y - r}l${2 * r},${2 * r}M${x + r},${y - r}l${-2 * r},${2 * r}`,
};

function shape(parent, style, x, y, size, hue = `hue-${style.hue}`) {
  const name = data.shapes[style.shape];
  const kind = name === "cross" ? "stroke cross" : "fill dot";
  const outline = SHAPES[name](Number(x.toFixed(1)), Number(y.toFixed(1)), size);
  return draw(parent, "path", { d: outline, class: `${kind} ${hue}` });
}

const MARKS = {
  line(panel, layer, rows) {
    for (const group of grouped(panel, layer, rows)) {
      const spots = group.map((row) => spotOf(panel, layer, row)).filter(Boolean);
      spots.sort((one, other) => one[0] - other[0]);
      const style = styleOf(panel, layer, group[0]);
      stroked(panel, style, path(spots));
      group.forEach((row) => remember(panel, layer, row));
    }
  },

  step(panel, layer, rows) {
    for (const group of grouped(panel, layer, rows)) {
      const spots = [];
      for (const row of group) {
        const left = panel.x.place(number(panel.table, row, layer.x));
        const up = panel.y.place(number(panel.table, row, layer.y));
        if (left === null || up === null) continue;
        if (spots.length) spots.push([left, spots.at(-1)[1]]);
        spots.push([left, up]);
        if (layer.x2) spots.push([panel.x.place(number(panel.table, row, layer.x2)), up]);
        remember(panel, layer, row);
      }
      if (spots.length && !layer.x2) spots.push([panel.x.end, spots.at(-1)[1]]);
      stroked(panel, styleOf(panel, layer, group[0]), path(spots));
    }
  },

  points(panel, layer, rows) {
    const values = layer.hue ? rows.map((row) => number(panel.table, row, layer.hue)) : [];
    const least = Math.log(Math.min(...values));
    const most = Math.log(Math.max(...values));
    const isCloud = rows.length > 150;
    const size = isCloud ? 2.2 : rows.length > 40 && !layer.by ? 3.4 : 4.2;
    for (let at = rows.length - 1; at >= 0; at -= 1) { // the first row is on top
      const row = rows[at];
      const spot = spotOf(panel, layer, row);
      if (!spot) continue;
      const style = styleOf(panel, layer, row);
      const share = most > least ? (Math.log(values[at]) - least) / (most - least) : 0;
      const hue = layer.hue ? `ramp-${Math.round(share * (RAMP - 1))}` : `hue-${style.hue}`;
      shape(panel.art, style, ...spot, size, isCloud ? `${hue} cloud` : hue);
      remember(panel, layer, row);
    }
  },

  bars(panel, layer, rows) {
    for (const row of rows) {
      const style = styleOf(panel, layer, row);
      if (panel.y.names) sidewaysBar(panel, layer, row, style);
      else standingBar(panel, layer, row, style);
    }
  },

  interval(panel, layer, rows) {
    const { table, x, y } = panel;
    for (const row of rows) {
      const classes = `stroke hue-${styleOf(panel, layer, row).hue} whisker`;
      if (y.names) {
        const up = laned(panel, layer, y.place(cell(table, row, layer.y)));
        const ends = [x.place(number(table, row, layer.x)), x.place(number(table, row, layer.x2))];
        if (up === null || ends.every((end) => end === null)) continue;
        const [from, to] = [ends[0] ?? x.start, ends[1] ?? x.end]; // an open end reaches the edge
        draw(panel.art, "path", { d: path([[from, up], [to, up]]), class: classes });
      } else {
        const across = (spotOf(panel, { ...layer, mark: "points" }, row) ?? [null])[0];
        const ends = [y.place(number(table, row, layer.y)), y.place(number(table, row, layer.y2))];
        if (across === null || ends.includes(null)) continue;
        const outline = path([[across, ends[0]], [across, ends[1]]]);
        draw(panel.art, "path", { d: outline, class: classes });
      }
    }
  },

  band(panel, layer, rows) {
    const { table, x, y } = panel;
    for (const group of grouped(panel, layer, rows)) {
      const inside = (up) => (up === null ? null : Math.min(y.start, Math.max(y.end, up)));
      const spot = (row, name) => [
        x.place(number(table, row, layer.x)),
        inside(y.place(number(table, row, name))),
      ];
      const edge = (name) => group.map((row) => spot(row, name)).filter((at) => !at.includes(null));
      const [low, high] = [edge(layer.y), edge(layer.y2)];
      if (low.length < 2) continue;
      const outline = `${path([...low, ...high.reverse()])}Z`;
      const hue = `hue-${styleOf(panel, layer, group[0]).hue}`;
      draw(panel.art, "path", { d: outline, class: `fill band ${hue}` });
    }
  },

  shade(panel, layer, rows) {
    const { table, x, y } = panel;
    for (const row of rows) {
      const strength = number(table, row, layer.y);
      if (!strength) continue;
      const to = number(table, row, layer.x);
      const left = Math.max(x.start, x.place(to - number(table, row, layer.x2)));
      const box = { x: left, y: y.end, width: x.place(to) - left, height: y.start - y.end };
      const hue = `hue-${styleOf(panel, layer, row).hue}`;
      draw(panel.art, "rect", { ...box, class: `fill ${hue}`, opacity: 0.28 * strength });
    }
  },

  rule(panel, layer, rows) {
    const { x, y } = panel;
    const { table, rows: own } = layer.table ? elsewhere(panel, layer) : { table: panel.table, rows };
    const constant = typeof (layer.x ?? layer.y) === "number";
    const used = constant ? [[]] : layer.x === "costs" ? own.slice(0, 1) : [...own].reverse();
    const seen = new Set();
    for (const row of used) {
      const value = number(table, row, layer.x ?? layer.y);
      const place = layer.x === undefined ? y.place(value) : x.place(value);
      const name = layer.by ? cell(table, row, layer.by) : "";
      if (place === null || seen.has(`${value} ${name}`)) continue;
      seen.add(`${value} ${name}`);
      const [first, last] = layer.x === undefined ? [y.end, y.start] : [x.start, x.end];
      if (place < first || place > last) continue;
      const across = [[x.start, place], [x.end, place]];
      const upright = [[place, y.start], [place, y.end]];
      const ends = layer.x === undefined ? across : upright;
      stroked(panel, styleOf({ ...panel, table }, layer, row), path(ends), "rule");
    }
  },

  iso(panel) {
    const [generate, verify, failure = verify] = pricesOf(chosen.costs);
    const { x, y } = panel;
    if (!(generate > 0 && failure > 0)) return;
    const pass = verify - failure; // one of the verifications passes
    const least = generate * x.low + failure * y.low + pass;
    const most = generate * x.high + failure * y.high + pass;
    for (const cost of logTicks(least, most, 7)) {
      const spots = [];
      for (let at = 0; at <= 60; at += 1) {
        const made = x.low * (x.high / x.low) ** (at / 60);
        const checked = (cost - pass - generate * made) / failure;
        if (checked >= y.low && checked <= y.high) spots.push([x.place(made), y.place(checked)]);
      }
      if (spots.length < 2) continue;
      draw(panel.art, "path", { d: path(spots), class: "iso" });
      const [left, top] = spots[0];
      const under = top < y.end + 14 ? 12 : -3;
      draw(panel.art, "text", { x: left + 3, y: top + under, class: "note" }, onAxis(cost));
    }
  },
};

function stroked(panel, style, outline, kind = "line") {
  if (!outline) return;
  const look = { class: `stroke hue-${style.hue} ${kind}`, "stroke-dasharray": dashOf(style) };
  draw(panel.art, "path", { d: outline, ...look });
}

function sidewaysBar(panel, layer, row, style) {
  const middle = laned(panel, layer, panel.y.place(cell(panel.table, row, layer.y)));
  const value = number(panel.table, row, layer.x);
  const end = panel.x.place(value);
  if (middle === null || end === null) return;
  const height = Math.min(18, (panel.y.size * 0.7) / panel.lanes);
  const box = { x: panel.x.start, y: middle - height / 2, width: Math.max(1, end - panel.x.start), height };
  draw(panel.art, "rect", { ...box, class: `fill hue-${style.hue}` });
  const solved = cell(panel.table, row, "solved");
  const partly = solved !== null && solved < 0.9995 ? `, solves ${(100 * solved).toFixed(0)} %` : "";
  const label = brief(column(panel.table, layer.x), value) + partly;
  const left = Math.min(end + 5, panel.x.end + 18 - textWidth(label));
  draw(panel.art, "text", { x: left, y: middle + 4, class: "value" }, label);
  remember(panel, layer, row, [Math.min(end, panel.x.end), middle]);
}

function standingBar(panel, layer, row, style) {
  const { table, x, y } = panel;
  const [from, to] = [x.place(number(table, row, layer.x)), x.place(number(table, row, layer.x2))];
  const top = y.place(number(table, row, layer.y));
  if (from === null || to === null || top === null) return;
  const box = { x: from + 0.5, y: top, width: Math.max(0.5, to - from - 1), height: y.start - top };
  const isOver = layer.by || panel.spec.layers.some((each) => each.mark === "rule");
  draw(panel.art, "rect", { ...box, class: `fill bin hue-${style.hue}${isOver ? " over" : ""}` });
  remember(panel, layer, row, [(from + to) / 2, top]);
}

/** The rows of another table that belong to a panel. */
function elsewhere(panel, layer) {
  const table = tables.get(layer.table);
  const rows = table ? visible(table) : [];
  const own = rows.filter((row) => !panel.log || cell(table, row, "log") === panel.log);
  return { table, rows: own };
}

/** Lets the reader point at a row. */
function remember(panel, layer, row, spot = spotOf(panel, layer, row)) {
  if (!spot) return;
  const [x, y] = spot;
  if (panel.known.get(row) === `${x} ${y}`) return;
  panel.known.set(row, `${x} ${y}`);
  panel.spots.push({ x, y, row, table: panel.table, series: layer.series });
}
