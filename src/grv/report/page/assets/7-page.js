// Mounts figures, tables, filters and the theme switch; saves figures.

const redraws = [];
const redrawAll = () => redraws.forEach((redraw) => redraw());

/** An SVG file with colours and fonts in every element. */
function standalone(svg, title, alt) {
  const copied = svg.cloneNode(true);
  copied.querySelector(".here")?.remove();
  const names = ["fill", "stroke", "stroke-width", "fill-opacity", "font-size", "font-weight", "font-family"];
  const pairs = [...svg.querySelectorAll("*")].filter((each) => !each.matches(".here"));
  [...copied.querySelectorAll("*")].forEach((element, at) => {
    const look = getComputedStyle(pairs[at]);
    for (const name of names) element.setAttribute(name, look.getPropertyValue(name));
    element.removeAttribute("class");
  });
  for (const name of ["class", "tabindex", "aria-label", "aria-describedby"]) copied.removeAttribute(name);
  copied.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  const ground = draw(copied, "rect", { width: "100%", height: "100%" });
  ground.setAttribute("fill", getComputedStyle(document.body).backgroundColor);
  copied.prepend(draw(copied, "title", {}, title), draw(copied, "desc", {}, alt), ground);
  return new XMLSerializer().serializeToString(copied);
}

function save(name, text) {
  const address = URL.createObjectURL(new Blob([text], { type: "image/svg+xml" }));
  const link = make("a", { href: address, download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}

function action(label, does) {
  const button = make("button", { type: "button" }, label);
  button.addEventListener("click", () => does(button));
  return button;
}

/** A group of radio buttons or checkboxes. */
function choices(legend, type, names, isOn, changed) {
  const group = make("fieldset", {}, make("legend", {}, legend));
  names.forEach((name) => {
    const input = make("input", { type, name: legend, value: name });
    input.checked = isOn(name);
    input.addEventListener("change", () => changed(name, input.checked));
    group.append(make("label", { title: data.meanings[name] ?? "" }, input, make("span", {}, name)));
  });
  return group;
}

/** The chart of a figure, with a switch if it has several views. */
function mountChart(section, table, drawings) {
  const holder = section.querySelector(".chart");
  const canShow = (each, direction) => spanOf(direction, each, table, table.rows) !== null;
  const views = drawings.filter((each) => canShow(each, "x") && canShow(each, "y"));
  let [spec, spots] = [views[0] ?? drawings[0], []];
  const attributes = { class: "figure", role: "img", tabindex: "0", "aria-describedby": "keys" };
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  for (const [key, value] of Object.entries(attributes)) svg.setAttribute(key, value);
  svg.setAttribute("aria-label", `${table.title}. ${table.alt}`);
  const [across, up] = [spec.x, spec.y].map((axis) => axis.label || column(table, axis.column).label);
  const reason = views.length
    ? "The filters above exclude all rows."
    : `No row has both ${across} and ${up}, so there is nothing to draw. The numbers are below.`;
  const empty = make("p", { class: "empty", hidden: "" }, reason);
  const redraw = () => {
    const drawn = drawChart(svg, spec, table);
    spots = drawn ?? [];
    svg.toggleAttribute("hidden", !drawn);
    empty.hidden = Boolean(drawn);
  };
  holder.append(svg, empty);
  if (views.length > 1) {
    const pick = (name) => {
      spec = views.find((each) => each.view === name);
      redraw();
    };
    const names = views.map((each) => each.view);
    const group = choices(`View of ${table.title}`, "radio", names, (name) => name === spec.view, pick);
    group.classList.add("views");
    holder.before(group);
  }
  listen(svg, () => spots);
  redraws.push(redraw);
  redraw();
  section.querySelector(".actions").append(
    action("Save SVG", () => save(`${table.name}.svg`, standalone(svg, table.title, table.alt))),
  );
}

function mountTable(section, table) {
  const holder = section.querySelector(".rows");
  const outer = holder.closest("details");
  const fill = () => {
    if (!outer || outer.open) fillTable(holder, table);
  };
  outer?.addEventListener("toggle", fill);
  redraws.push(fill);
  fill();
  const order = () => holder.order ?? { name: "", falling: false };
  section.querySelector(".actions").append(
    action("Copy", (button) => copy(tabbed(table, order()), button)),
    action("Copy Markdown", (button) => copy(marked(table, order()), button)),
  );
}

function mountFilters() {
  const place = document.getElementById("prices");
  const more = document.getElementById("filters");
  const flip = (set) => (name, on) => {
    if (on) set.add(name);
    else set.delete(name);
    redrawAll();
  };
  const pick = (name) => {
    chosen.costs = name;
    redrawAll();
  };
  if (data.costs.length) {
    place.append(choices("Costs", "radio", data.costs, (name) => name === chosen.costs, pick));
  }
  if (data.logs.length > 1) {
    place.append(choices("Logs", "checkbox", data.logs, () => true, flip(chosen.logs)));
  }
  if (data.policies.length) {
    const group = choices("Policies", "checkbox", data.policies, () => true, flip(chosen.policies));
    const setAll = (on) => {
      data.policies.forEach((name) => chosen.policies[on ? "add" : "delete"](name));
      group.querySelectorAll("input").forEach((input) => { input.checked = on; });
      redrawAll();
    };
    group.append(action("All", () => setAll(true)), action("None", () => setAll(false)));
    more.append(group);
  }
}

function mountTheme() {
  const button = document.getElementById("theme");
  const isDark = () => {
    const asked = document.documentElement.dataset.theme;
    return asked ? asked === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  };
  const name = () => { button.textContent = isDark() ? "Light" : "Dark"; };
  button.addEventListener("click", () => {
    document.documentElement.dataset.theme = isDark() ? "light" : "dark";
    name();
  });
  name();
}

/** On a phone, all figures but the first of each part are folded; their titles open them. */
function mountFolds() {
  if (innerWidth > 640) return;
  const open = (section, on) => {
    section.classList.toggle("folded", !on);
    section.querySelector("h3 button").setAttribute("aria-expanded", String(on));
  };
  for (const section of document.querySelectorAll(".part .card")) {
    if (section === section.closest(".part").querySelector(".card")) continue;
    const title = section.querySelector("h3");
    const button = make("button", { type: "button", class: "fold" }, title.textContent);
    title.replaceChildren(button);
    open(section, false);
    button.addEventListener("click", () => {
      open(section, section.classList.contains("folded"));
      redrawAll();
    });
  }
  const jump = () => {
    const section = location.hash && document.getElementById(location.hash.slice(1))?.closest(".folded");
    if (!section) return;
    open(section, true);
    redrawAll();
  };
  addEventListener("hashchange", jump);
  jump();
}

document.body.append(tip, spoken);
mountTheme();
mountFilters();
for (const section of document.querySelectorAll("[data-table]")) {
  const table = tables.get(section.dataset.table);
  const drawings = data.drawings[table.name];
  if (drawings && section.querySelector(".chart")) mountChart(section, table, drawings);
  if (section.querySelector(".rows")) mountTable(section, table);
}
mountFolds();
let width = innerWidth;
addEventListener("resize", () => {
  if (innerWidth !== width) redrawAll();
  width = innerWidth;
});
document.documentElement.classList.add("ready");
