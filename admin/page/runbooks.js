// The runbooks, as docs/runbooks has them, and what they say of an error.

import { h } from "./dom.js";
import { getText } from "./api.js";

const texts = new Map();

// load returns the Markdown of a runbook.
export function load(name) {
  if (!texts.has(name)) {
    const t = getText(`ui/runbooks/${name}.md`);
    t.catch(() => texts.delete(name));
    texts.set(name, t);
  }
  return texts.get(name);
}

export const failed = "BinlogOutboxConnectorFailed";
export const retrying = "BinlogOutboxNotStreaming";

// advice returns {runbook, text} for an error: the line of a runbook that names its
// code, or else what is always true.
export async function advice(error) {
  const waits = error.retry_at != null;
  for (const name of waits ? [retrying, failed] : [failed, retrying]) {
    const said = find(await load(name), error.code);
    if (said) return { runbook: name, text: said };
  }
  return waits
    ? { runbook: retrying, text: "It tries again by itself. If that goes on, look at what the message names." }
    : { runbook: failed, text: "Correct what the message names, then restart the connector." };
}

// find looks for a code where runbooks say what to do about it: in the first cell of
// a table's row, or before the colon of a list's item.
export function find(markdown, code) {
  for (const line of markdown.split("\n")) {
    const cells = line.startsWith("|") ? split(line) : null;
    if (cells?.[0].includes(`\`${code}\``)) return sentence(cells.at(-1));
    const item = /^\d+\. ((?:`\w+`(?:, )?)+): (.*)/.exec(line);
    if (item?.[1].includes(`\`${code}\``)) return sentence(item[2]);
  }
  return "";
}

const sentence = (s) => s[0].toUpperCase() + s.slice(1) + (/[.!?]$/.test(s) ? "" : ".");
const split = (row) => row.slice(1, row.lastIndexOf("|")).split("|").map((c) => c.trim());

// inline writes code, and names of runbooks as links.
export function inline(source) {
  const out = document.createDocumentFragment();
  for (const part of source.split(/(`[^`]+`|\*\*[^*]+\*\*|\bBinlogOutbox[A-Z]\w+\b)/)) {
    if (part.startsWith("`")) out.append(h("code", {}, ...breakable(part.slice(1, -1))));
    else if (part.startsWith("**")) out.append(h("strong", {}, part.slice(2, -2)));
    else if (/^BinlogOutbox[A-Z]/.test(part)) out.append(link(part));
    else out.append(part);
  }
  return out;
}

// breakable lets long names go to the next line between their words.
const breakable = (name) => name.split(/(?<=[_.=/])/).flatMap((word, i) => (i ? [document.createElement("wbr"), word] : [word]));

export const address = (name) => `runbook.html#${name}`;
export const link = (name) => h("a", { href: address(name) }, title(name));

// title writes a runbook's name as words.
export const title = (name) => name.replace("BinlogOutbox", "").replace(/(?<=[a-z])[A-Z]/g, (c) => ` ${c.toLowerCase()}`);

// render makes nodes of the Markdown that runbooks are written in: headings,
// paragraphs, lists and tables.
export function render(markdown) {
  const out = [];
  for (const block of markdown.trim().split(/\n\n+/)) {
    const lines = block.split("\n");
    const heading = /^(#+) (.*)/.exec(block);
    if (heading) out.push(h(`h${heading[1].length}`, {}, heading[1] === "#" ? title(heading[2]) : inline(heading[2])));
    else if (lines[0].startsWith("|")) out.push(h("div", { class: "scroll", role: "group", "aria-label": "Table", tabindex: "0" }, table(lines)));
    else if (/^- /.test(block)) out.push(h("ul", {}, ...lines.map((l) => h("li", {}, inline(l.replace(/^- /, ""))))));
    else if (/^\d+\. /.test(block)) out.push(h("ol", {}, ...lines.map((l) => h("li", {}, inline(l.replace(/^\d+\. /, ""))))));
    else out.push(h("p", {}, inline(block)));
  }
  return out;
}

function table([head, , ...body]) {
  return h("table", {},
    h("thead", {}, h("tr", {}, ...split(head).map((c) => h("th", { scope: "col" }, inline(c))))),
    h("tbody", {}, ...body.map((r) => h("tr", {}, ...split(r).map((c) => h("td", {}, inline(c)))))));
}
