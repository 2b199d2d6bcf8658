// The two figures of the overview.

import { amount, draw, lasting, make, number } from "./common.js";

const HEIGHT = 150;

function figure(label) {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("class", "figure");
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", label);
  return svg;
}

/** A round number that is at least as high as all bars. */
function ceiling(value) {
  if (!(value > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return power * [1, 2, 2.5, 5, 10].find((each) => each * power >= value * 0.999);
}

const clock = (seconds, width) => {
  const date = new Date(seconds * 1000);
  const short = width < 86400 ? { hour: "2-digit", minute: "2-digit" } : { day: "numeric", month: "short" };
  return date.toLocaleString("en", { ...short, hour12: false });
};

/** What was spent over time, as bars. */
export function spentChart(width, bars, unit) {
  const high = ceiling(Math.max(0, ...bars.spent));
  const label = `Spent over time, ${bars.spent.length} bars of ${lasting(bars.width)}; the highest is ${amount(Math.max(0, ...bars.spent), unit)}`;
  const svg = figure(label);
  svg.setAttribute("viewBox", `0 0 ${width} ${HEIGHT}`);
  svg.setAttribute("width", width);
  svg.setAttribute("height", HEIGHT);
  const [left, bottom, top] = [46, HEIGHT - 22, 8];
  const up = (value) => bottom - ((bottom - top) * value) / high;
  for (const part of [0, 0.5, 1]) {
    draw(svg, "line", { class: "grid", x1: left, x2: width, y1: up(high * part), y2: up(high * part) });
    draw(svg, "text", { class: "tick", x: left - 6, y: up(high * part) + 4, "text-anchor": "end" }, number(high * part));
  }
  const slot = (width - left) / Math.max(bars.spent.length, 12);
  bars.spent.forEach((value, at) => {
    const x = left + slot * at;
    const bar = draw(svg, "rect", { class: "fill hue-0", x: x + slot * 0.12, width: slot * 0.76, y: up(value), height: Math.max(value > 0 ? 1 : 0, bottom - up(value)), rx: Math.min(2, slot / 4) });
    draw(bar, "title", {}, `${clock(bars.start + at * bars.width, bars.width)}: ${amount(value, unit)}`);
  });
  const every = Math.max(1, Math.ceil(70 / slot));
  for (let at = 0; at < bars.spent.length && left + slot * at < width - 40; at += every) {
    draw(svg, "text", { class: "tick", x: left + slot * (at + 0.1), y: HEIGHT - 5 }, clock(bars.start + at * bars.width, bars.width));
  }
  return svg;
}

/** The cost of solved searches beside the baselines. */
export function baselineChart(width, baselines, unit) {
  const rows = [
    ["hindsight", baselines.hindsight, 9],
    ["grv", baselines.cost, 0],
    ["verify-all", baselines.most, 2],
  ];
  const height = 34 * rows.length + 10;
  const svg = figure(rows.map(([name, value]) => `${name} ${amount(value, unit)}`).join(", "));
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  svg.setAttribute("width", width);
  svg.setAttribute("height", height);
  const [left, right] = [78, 74];
  const most = Math.max(...rows.map(([, value]) => value), 1e-12);
  rows.forEach(([name, value, hue], at) => {
    const y = 8 + 34 * at;
    const long = Math.max(2, ((width - left - right) * value) / most);
    draw(svg, "text", { x: left - 8, y: y + 15, "text-anchor": "end", class: name === "grv" ? "panel" : "" }, name);
    draw(svg, "rect", { class: `fill hue-${hue}${name === "grv" ? "" : " other"}`, x: left, y, width: long, height: 22, rx: 3 });
    draw(svg, "text", { x: left + long + 7, y: y + 15, class: name === "grv" ? "panel" : "tick" }, amount(value, unit));
  });
  return svg;
}

/** A card with a figure that fits its width. */
export function chartCard(title, caption, paint) {
  const holder = make("div", { class: "chart" });
  const card = make("section", { class: "card" }, make("h2", {}, title), make("p", { class: "caption" }, caption), holder);
  const fit = () => {
    const width = holder.clientWidth;
    if (width) holder.replaceChildren(paint(width));
  };
  return { card, fit };
}
