// A drawing: a legend above panels with axes, in one SVG of the width of its container.

const pen = document.createElement("canvas").getContext("2d");

function textWidth(text, size = 12) {
  pen.font = `${size}px system-ui, sans-serif`;
  return pen.measureText(text).width;
}

/** A text shortened to the available width. */
function fitted(text, room) {
  if (textWidth(text) <= room) return text;
  let length = text.length;
  while (length > 1 && textWidth(`${text.slice(0, length)}…`) > room) length -= 1;
  return `${text.slice(0, length)}…`;
}

/** The layers of a drawing that are not filtered out, with their rows. */
function layersOf(spec, table, rows) {
  return spec.layers
    .filter((layer) => !isHidden(layer.series) && !isHidden(layer.tone))
    .map((layer) => {
      if (!layer.where) return { layer, rows };
      const [name, value] = layer.where;
      return { layer, rows: rows.filter((row) => cell(table, row, name) === value) };
    });
}

/** All values that an axis must include. */
function valuesAlong(direction, spec, table, rows) {
  const values = [];
  for (const { layer, rows: own } of layersOf(spec, table, rows)) {
    if (layer.mark === "iso" || layer.table) continue;
    const ends = [layer[direction], layer[`${direction}2`]];
    if (layer.mark === "shade") ends.splice(0, 2, direction === "x" ? layer.x : undefined);
    for (const end of ends) {
      if (typeof end === "number") values.push(end);
      else if (end === "costs") values.push(ratioOf(chosen.costs));
      else if (end) for (const row of own) values.push(number(table, row, end));
    }
  }
  return values.filter((value) => value !== null && Number.isFinite(value));
}

/** Values, but none that would make an axis more than three times as long as what is drawn: a wide band. */
function withinReach(values, drawn, axis) {
  const isLog = axis.scale === "log";
  const [bend, back] = isLog ? [Math.log, Math.exp] : [(value) => value, (value) => value];
  const bent = drawn.filter((value) => !isLog || value > 0).map(bend);
  const [low, high] = [Math.min(...bent), Math.max(...bent)];
  const reach = high - low || 1;
  const [least, most] = [back(low - reach), back(high + reach)];
  return values.filter((value) => !isLog || value > 0).map((value) => Math.min(most, Math.max(least, value)));
}

/** The range of an axis over all panels; null if there is nothing to draw. */
function spanOf(direction, spec, table, rows) {
  const axis = spec[direction];
  if (axis.scale === "names") {
    const names = [...new Set(rows.map((row) => cell(table, row, axis.column)))];
    return names.length ? names : null;
  }
  const own = spec.layers.filter((layer) => layer.mark !== "rule" && layer.mark !== "iso");
  const drawn = valuesAlong(direction, { ...spec, layers: own.filter(({ mark }) => mark !== "band") }, table, rows);
  if (!drawn.length) return null;
  const values = withinReach(valuesAlong(direction, spec, table, rows), drawn, axis);
  const ends = extent(values, axis, column(table, axis.column).kind);
  if (!ends) return null;
  const [low, high] = ends;
  const hasLabels = spec.layers.some((layer) => layer.mark === "bars") && spec.y.scale === "names";
  const room = hasLabels && direction === "x" ? (high - low) * 0.16 : 0; // for the labels behind bars
  return [low, high + room, wholesOf(drawn, axis)];
}

/** The entries of a legend, each with a sign and a name. */
function legendOf(spec, table, rows) {
  const entries = new Map();
  for (const { layer, rows: own } of layersOf(spec, table, rows)) {
    const isRepeated = spec.y.column === layer.by && spec.y.scale === "names";
    if (layer.by && !isRepeated) {
      for (const row of own) {
        const name = cell(table, row, layer.by);
        const kinds = entries.get(name)?.kinds ?? new Set();
        entries.set(name, { style: data.styles[name] ?? data.styles.first, kinds: kinds.add(layer.mark) });
      }
    } else if (layer.series) {
      const kinds = entries.get(layer.series)?.kinds ?? new Set();
      const style = data.styles[layer.tone || layer.series] ?? data.styles.first;
      entries.set(layer.series, { style, kinds: kinds.add(layer.mark) });
    }
  }
  return [...entries];
}

function drawSign(art, { style, kinds }, x, y) {
  const has = (...names) => names.some((name) => kinds.has(name));
  if (has("bars", "shade")) {
    const soft = kinds.has("shade") ? { opacity: 0.35 } : {};
    draw(art, "rect", { x: x + 4, y: y - 5, width: 12, height: 10, class: `fill hue-${style.hue}`, ...soft });
  }
  if (has("line", "step", "rule")) {
    const look = { class: `stroke line hue-${style.hue}`, "stroke-dasharray": dashOf(style) };
    draw(art, "path", { d: `M${x},${y}h20`, ...look });
  }
  if (has("points")) shape(art, style, x + 10, y, 4);
}

/** Draws the legend above the panels, and returns its height. */
function drawLegend(art, spec, table, rows, width) {
  let [x, y] = [0, 10];
  for (const [name, entry] of legendOf(spec, table, rows)) {
    const label = fitted(name, width - 40);
    const needed = 26 + textWidth(label) + 16;
    if (x && x + needed > width) [x, y] = [0, y + 20];
    drawSign(art, entry, x, y);
    draw(art, "text", { x: x + 26, y: y + 4, class: "label" }, label);
    x += needed;
  }
  const hue = spec.layers.find((layer) => layer.hue)?.hue;
  if (hue) x = drawRamp(art, table, rows, hue, y);
  return x ? y + 18 : 4;
}

function drawRamp(art, table, rows, hue, y) {
  const values = rows.map((row) => number(table, row, hue)).filter((value) => value !== null);
  const about = column(table, hue);
  const low = `${labelled(about)} ${onAxis(Math.min(...values), about.kind)}`;
  let x = textWidth(low) + 6;
  draw(art, "text", { x: 0, y: y + 4, class: "label" }, low);
  for (let at = 0; at < RAMP; at += 1, x += 14) {
    draw(art, "rect", { x, y: y - 5, width: 14, height: 10, class: `fill ramp-${at}` });
  }
  draw(art, "text", { x: x + 6, y: y + 4, class: "label" }, onAxis(Math.max(...values), about.kind));
  return x;
}

/** Lines, ticks and labels of both axes. */
function drawAxes(panel, spec) {
  const { art, table, x, y } = panel;
  const about = column(table, spec.x.column);
  for (const tick of x.ticks) {
    const place = x.place(tick);
    draw(art, "path", { d: `M${place},${y.start}V${y.end}`, class: "grid" });
    const centred = { x: place, y: y.start + 16, class: "tick", "text-anchor": "middle" };
    draw(art, "text", centred, onAxis(tick, about.kind));
  }
  const other = column(table, spec.y.column);
  for (const tick of y.ticks) {
    const place = y.place(tick);
    const label = y.names ? fitted(tick, panel.room) : onAxis(tick, other.kind);
    if (!y.names) draw(art, "path", { d: `M${x.start},${place}H${x.end}`, class: "grid" });
    draw(art, "text", { x: x.start - 7, y: place + 4, class: "tick", "text-anchor": "end" }, label);
  }
  draw(art, "path", { d: `M${x.start},${y.end}V${y.start}H${x.end}`, class: "axis" });
  const middle = (x.start + x.end) / 2;
  const name = fitted(spec.x.label || labelled(about), x.end - x.start + 60);
  draw(art, "text", { x: middle, y: y.start + 34, class: "label", "text-anchor": "middle" }, name);
  if (y.names) return;
  const up = fitted(spec.y.label || labelled(other), y.start - y.end + 40);
  const turned = { transform: `translate(${panel.left + 11},${(y.start + y.end) / 2}) rotate(-90)` };
  draw(art, "text", { ...turned, class: "label", "text-anchor": "middle" }, up);
}

/** Draws one panel, and returns its spots. */
function drawPanel(art, spec, table, rows, spans, box, log) {
  const lanes = 1 + Math.max(...spec.layers.map((layer) => layer.lane || 0));
  const kind = column(table, spec.y.column).kind;
  const isNamed = spec.y.scale === "names";
  const height = box.height - 42;
  const labels = isNamed ? spans.y : numeric(spans.y, spec.y, height, 0, height / 38).ticks;
  const widest = Math.max(...labels.map((tick) => textWidth(isNamed ? tick : onAxis(tick, kind))));
  const room = Math.min(widest, box.width * (isNamed ? 0.36 : 0.3));
  const [left, right] = [box.x + room + 12 + (isNamed ? 0 : 18), box.x + box.width - 20];
  const [top, bottom] = [box.y + (log ? 22 : 6), box.y + height];
  const panel = { art, table, rows, spec, lanes, room, left: box.x, log, spots: [], known: new Map() };
  panel.x = numeric(spans.x, spec.x, left, right, Math.max(2, (right - left) / 72));
  const many = Math.max(2, (bottom - top) / 38);
  panel.y = isNamed ? named(spans.y, top, bottom) : numeric(spans.y, spec.y, bottom, top, many);
  if (isNamed) [panel.y.start, panel.y.end] = [bottom, top];
  for (const [scale, axis] of [[panel.x, spec.x], [panel.y, spec.y]]) {
    const about = column(table, axis.column);
    if (about.kind === "number" && !about.digits) scale.ticks = scale.ticks.filter(Number.isInteger);
    if (about.kind === "percent") scale.ticks = scale.ticks.filter((tick) => tick <= 1);
  }
  if (log) draw(art, "text", { x: left, y: box.y + 12, class: "panel" }, fitted(log, right - left));
  drawAxes(panel, spec);
  for (const { layer, rows: own } of layersOf(spec, table, rows)) {
    if (own.length || typeof (layer.x ?? layer.y) === "number") MARKS[layer.mark](panel, layer, own);
  }
  return panel.spots;
}

function panelHeight(spec, spans, width) {
  const isShared = spec.layers.some((layer) => layer.lane);
  const least = spans.y.length * (isShared ? 34 : 26);
  if (spec.y.scale === "names") return 60 + Math.max(least, Math.min(spans.y.length * 42, 230));
  return Math.min(340, Math.max(250, width * 0.62));
}

/** Redraws a table. Returns its spots, or null if there is nothing to draw. */
function drawChart(svg, spec, table) {
  svg.replaceChildren();
  const rows = visible(table);
  const spans = { x: spanOf("x", spec, table, rows), y: spanOf("y", spec, table, rows) };
  if (!rows.length || !spans.x || !spans.y) return null;
  const width = Math.max(240, svg.parentElement.clientWidth);
  const isApart = table.at.has("log") && !spec.layers.some((layer) => layer.by === "log");
  const logs = [...new Set(rows.map((row) => (isApart ? cell(table, row, "log") : null)))];
  const across = Math.max(1, Math.min(logs.length, Math.floor(width / 300)));
  const wide = width / across;
  const high = panelHeight(spec, spans, wide) + (logs.length > 1 ? 20 : 0);
  const above = drawLegend(svg, spec, table, rows, width);
  const spots = logs.flatMap((log, at) => {
    const [x, y] = [(at % across) * wide, above + Math.floor(at / across) * high];
    const box = { x, y, width: wide, height: high };
    const own = isApart ? rows.filter((row) => cell(table, row, "log") === log) : rows;
    const ends = spec.x.own ? { ...spans, x: spanOf("x", spec, table, own) } : spans;
    return drawPanel(svg, spec, table, own, ends, box, logs.length > 1 ? log : "");
  });
  const height = above + Math.ceil(logs.length / across) * high;
  for (const [key, value] of Object.entries({ width, height, viewBox: `0 0 ${width} ${height}` })) {
    svg.setAttribute(key, value);
  }
  return spots;
}
