// Candidates that are diffs, shown as diffs; long logs, folded. Texts are never parsed as markup.

import { counted, make, number, setting } from "./common.js";

const OPEN_LINES = 120; // a file with more lines is folded at first
const OPEN_FILES = 6; // of a diff with more files, all are folded at first
const SHOWN_LINES = 600; // of a file, at first
const SHOWN_PARTS = 300; // of a text, at first: files, and what is between them
const LOG_LINES = 8; // a text with more lines is folded
const LOG_CHARACTERS = 600;
const HUNK = /^@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@/;
const folds = new Map(); // what the reader opened or folded, by name

/** Whether a text contains a unified diff. */
export const isDiff = (text) => /^(?:diff --git .+|--- .+\r?\n\+\+\+ .+)\r?\n(?:.*\r?\n){0,12}?(?:@@ -\d|GIT binary patch|Binary files |rename to |deleted file |new mode )/m.test(text);

const named = (header) => header.replace(/^(?:---|\+\+\+) /, "").replace(/\t.*$/, "").replace(/^[ab]\//, "");

/** The parts of a text: prose, and the files of diffs with their lines. */
export function parts(text) {
  const found = [];
  const lines = text.split("\n");
  let file = null;
  let [before, after, inHunk] = [0, 0, false];
  const add = (kind, line) => file.lines.push([kind, line]);
  const start = (path) => {
    file = { path, lines: [], added: 0, removed: 0, hasHunks: false };
    found.push(file);
    inHunk = false;
  };
  lines.forEach((line, at) => {
    const isPair = line.startsWith("--- ") && (lines[at + 1] ?? "").startsWith("+++ ");
    const isHeader = line.startsWith("diff --git ") || isPair;
    if (inHunk && (before > 0 || after > 0 || !isHeader) && /^(?:[ +\-\\]|$)/.test(line) && !line.startsWith("diff --git ")) {
      if (line === "" && before <= 0 && after <= 0) return;
      const kind = line[0] === "+" ? "add" : line[0] === "-" ? "del" : "same";
      if (kind !== "add" && line[0] !== "\\") before -= 1;
      if (kind !== "del" && line[0] !== "\\") after -= 1;
      file.added += kind === "add";
      file.removed += kind === "del";
      add(kind, line);
      return;
    }
    if (line.startsWith("diff --git ")) {
      start(/ b\/(.+)$/.exec(line)?.[1] ?? line.slice(11));
      return;
    }
    if (isPair && (!file || file.hasHunks)) start(named(line));
    const hunk = file && HUNK.exec(line);
    if (hunk) {
      [before, after, inHunk] = [Number(hunk[1] ?? 1), Number(hunk[2] ?? 1), true];
      file.hasHunks = true;
      add("hunk", line);
    } else if (file && line.startsWith("+++ ")) {
      if (named(line) !== "/dev/null") file.path = named(line);
    } else if (file && !inHunk && !line.startsWith("```")) {
      if (line && !line.startsWith("--- ") && !line.startsWith("index ")) add("note", line);
    } else {
      [file, inHunk] = [null, false];
      if (/^```/.test(line)) return;
      if (typeof found.at(-1) === "string") found[found.length - 1] += `\n${line}`;
      else found.push(line);
    }
  });
  return found.filter((part) => typeof part !== "string" || part.trim());
}

/** A diff in a few words: its files, and how many lines they gain and lose. */
export function brief(text) {
  const files = parts(text).filter((part) => typeof part !== "string");
  const first = files.slice(0, 3).map((each) => `${each.path} +${each.added} −${each.removed}`).join(", ");
  return files.length > 3 ? `${first} and ${counted(files.length - 3, "file")} more` : first;
}

/** An element that is folded or open as the reader left it. */
function folding(name, isOpen, summary, body) {
  const element = make("details", { class: "fold" }, summary);
  const fill = () => { if (element.children.length === 1) element.append(body()); };
  element.open = folds.get(name) ?? isOpen;
  if (element.open) fill();
  element.addEventListener("toggle", () => {
    folds.set(name, element.open);
    if (element.open) fill();
  });
  return element;
}

function fileBody(file) {
  const shown = make("pre", { class: "diff", tabindex: 0 });
  const paint = (from, to) => shown.append(...file.lines.slice(from, to).map(([kind, line]) => make("span", { class: kind }, `${line}\n`)));
  paint(0, SHOWN_LINES);
  const rest = file.lines.length - SHOWN_LINES;
  if (rest <= 0) return shown;
  const more = make("button", { type: "button" }, `Show ${counted(rest, "more line", "more lines")}`);
  more.addEventListener("click", () => { paint(SHOWN_LINES); more.remove(); });
  return make("div", {}, shown, more);
}

/** A diff: one folding part per file, with what the text says besides. */
export function diff(text, name) {
  const found = parts(text);
  const files = found.filter((part) => typeof part !== "string").length;
  const one = (part, at) => {
    if (typeof part === "string") return make("pre", { class: setting(part), tabindex: 0 }, part.trim());
    const summary = make("summary", {}, make("span", { class: "path" }, part.path), " ", make("span", { class: "gained" }, `+${number(part.added)}`), " ", make("span", { class: "removed" }, `−${number(part.removed)}`));
    return folding(`${name} ${at} ${part.path}`, files <= OPEN_FILES && part.lines.length <= OPEN_LINES, summary, () => fileBody(part));
  };
  const shown = make("div", { class: "diffs" }, make("p", { class: "caption" }, `${counted(files, "file")} changed`));
  const paint = (from) => {
    for (let at = from; at < Math.min(from + SHOWN_PARTS, found.length); at += 1) shown.append(one(found[at], at));
    const rest = found.length - from - SHOWN_PARTS;
    if (rest <= 0) return;
    const more = make("button", { type: "button" }, `Show ${number(Math.min(rest, SHOWN_PARTS))} more of ${counted(rest, "part")}`);
    more.addEventListener("click", () => { more.remove(); paint(from + SHOWN_PARTS); });
    shown.append(more);
  };
  paint(0);
  return shown;
}

/** A text as it is; if it is long, its length and its last line, and the text on request. */
export function log(text, name) {
  const lines = text.split("\n").length;
  if (lines <= LOG_LINES && text.length <= LOG_CHARACTERS) return make("pre", {}, text);
  const last = text.trimEnd().split("\n").at(-1).trim().slice(0, 120);
  const summary = make("summary", {}, counted(lines, "line"), make("span", { class: "last" }, last));
  return folding(name, false, summary, () => make("pre", { class: "text", tabindex: 0 }, text));
}
