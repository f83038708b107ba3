// What is shown stays in place and only changes where it differs, so that focus,
// selections, open details and screen readers are left alone.

// h makes an element. Attributes that are null or false are left out.
export function h(tag, attributes, ...children) {
  const e = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (name.startsWith("on")) e.addEventListener(name.slice(2), value);
    else if (value != null && value !== false) e.setAttribute(name, value === true ? "" : value);
  }
  e.append(...children.filter((c) => c != null));
  return e;
}

export const byId = (id) => document.getElementById(id);

export function text(e, value) {
  if (e.textContent !== value) e.textContent = value;
}

export function show(e, visible) {
  if (e.hidden === visible) e.hidden = !visible;
}

export function attr(e, name, value) {
  if (e.getAttribute(name) !== value) e.setAttribute(name, value);
}

// option sets an attribute, or takes it away where there is no value.
function option(e, name, value) {
  if (value) attr(e, name, value);
  else if (e.hasAttribute(name)) e.removeAttribute(name);
}

// keyed makes the children of parent those of items, in order: made once for each
// key, then filled again and again.
export function keyed(parent, items, key, make, fill) {
  const had = new Map([...parent.children].map((e) => [e.dataset.key, e]));
  let before = parent.firstElementChild;
  for (const item of items) {
    const k = key(item);
    let e = had.get(k);
    if (e) had.delete(k);
    else {
      e = make(item);
      e.dataset.key = k;
    }
    if (e === before) before = before.nextElementSibling;
    else parent.insertBefore(e, before);
    fill(e, item);
  }
  for (const e of had.values()) e.remove();
}

// facts fills a dl with [term, value] pairs; values are text or {text, level, title}.
export function facts(dl, pairs) {
  keyed(dl, pairs.filter(([, v]) => v != null && v !== ""), ([term]) => term,
    ([term]) => h("div", {}, h("dt", {}, term), h("dd")),
    (e, [, v]) => {
      const dd = e.lastElementChild;
      const value = typeof v === "object" ? v : { text: v };
      text(dd, value.text);
      attr(e, "data-level", value.level ?? "");
      option(dd, "title", value.title);
    });
}

// rows fills the body of a table with rows of cells, each text or a node to be made
// anew when its row is.
export function rows(table, list, key, cells) {
  keyed(table.tBodies[0], list, key,
    (item) => h("tr", {}, ...cells(item).map((c) => h("td", {}, c.node ?? null))),
    (tr, item) => cells(item).forEach((c, i) => {
      if (!c.node) text(tr.children[i], c.text ?? c);
      option(tr.children[i], "title", c.title);
      option(tr.children[i], "data-level", c.level);
    }));
}
