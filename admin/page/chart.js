// A small line chart: SVG, as wide as there is room, over the last five minutes.

import { h, text, attr } from "./dom.js";
import { span } from "./history.js";

const width = 600, height = 80, pad = 4;
const svg = (tag, attributes) => {
  const e = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) e.setAttribute(name, value);
  return e;
};

// chart returns {figure, draw}; draw takes the time at the right edge and the series
// of lines: [{label, points}]. format writes a value.
export function chart(title, labels, format) {
  const picture = svg("svg", { viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none", role: "img", focusable: "false" });
  const lines = labels.map((_, i) => {
    const p = svg("path", { class: `line line${i}` });
    picture.append(p);
    return p;
  });
  const now = labels.map((label, i) => {
    const value = h("b", {}, "–");
    return { value, node: h("span", { class: `key key${i}` }, label ? `${label} ` : "", value) };
  });
  const top = h("span", { class: "top-value" });
  const from = h("span", {}, "5 min ago");
  const figure = h("figure", {},
    h("figcaption", {}, h("span", { class: "title" }, title), h("span", { class: "keys" }, ...now.map((n) => n.node))),
    h("div", { class: "plot" }, top, picture),
    h("div", { class: "axis", "aria-hidden": "true" }, from, h("span", {}, "now")));

  function draw(end, series) {
    const values = series.flatMap((s) => s.points.map((p) => p[1]).filter((v) => v != null));
    const most = Math.max(...values, 0);
    const scale = ceiling(most);
    series.forEach((s, i) => {
      attr(lines[i], "d", path(s.points, end, scale));
      const last = s.points.at(-1)?.[1];
      text(now[i].value, last == null ? "–" : format(last));
    });
    text(top, values.length ? format(scale) : "");
    const said = values.length ? `at most ${format(most)} in the last 5 minutes` : "nothing in the last 5 minutes";
    attr(picture, "aria-label", `${title}: ${said}`);
  }
  return { figure, draw };
}

// ceiling is the round number at or above the most that is shown.
function ceiling(most) {
  if (!(most > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(most));
  return [1, 1.5, 2, 3, 4, 5, 6, 8, 10].map((n) => n * power).find((n) => n >= most * 0.999);
}

// path draws gaps where nothing is known.
function path(points, end, scale) {
  let d = "", open = false, before = -Infinity;
  for (const [time, value] of points) {
    if (value == null || time < end - span) {
      open = false;
      continue;
    }
    if (time - before > 20_000) open = false;
    before = time;
    const x = (width * (time - end + span)) / span;
    const y = height - pad - ((height - 2 * pad) * value) / scale;
    d += `${open ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`;
    if (!open) d += "h.01"; // so that a single point is seen
    open = true;
  }
  return d;
}
