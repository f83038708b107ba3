// What a connector did in the last minutes. It is kept by the page, from when it was
// opened: the node keeps no history.

export const span = 300_000; // milliseconds that are shown

// Series are points [time in ms, value or null for not known].
export class Series {
  points = [];

  add(time, value) {
    this.points.push([time, value]);
    while (this.points.length && this.points[0][0] < time - span) this.points.shift();
  }
}

// Rates are what was added to a counter a second.
export class Rates extends Series {
  #base = null; // the reading that the last point counts from
  #last = null;

  // read takes a reading of the counter. Readings that were held up and come in a
  // bunch make one point together: their times say nothing of when they were made.
  read(time, value) {
    const bunched = this.#last !== null && time - this.#last.time < 500;
    if (bunched) this.points.pop();
    else this.#base = this.#last;
    this.#last = { time, value };
    const b = this.#base;
    const known = b && value >= b.value && time - b.time < 30_000;
    this.add(time, known ? ((value - b.value) * 1000) / (time - b.time) : null);
  }
}

// buckets reads the histogram of that name from Prometheus's text: for each
// connector its [upper bound, count] pairs.
export function buckets(text, name) {
  const all = new Map();
  for (const line of text.split("\n")) {
    if (!line.startsWith(`${name}_bucket{`)) continue;
    const connector = /connector="((?:[^"\\]|\\.)*)"/.exec(line)?.[1].replace(/\\(["\\])/g, "$1");
    const bound = /le="([^"]+)"/.exec(line)?.[1];
    const value = Number(/} (\S+)/.exec(line)?.[1]);
    if (connector == null || bound == null) continue;
    if (!all.has(connector)) all.set(connector, []);
    all.get(connector).push([bound === "+Inf" ? Infinity : Number(bound), value]);
  }
  return all;
}

// quantile estimates, as Prometheus does, the q-quantile of what came between two
// readings of a histogram; null when nothing did.
export function quantile(before, after, q) {
  if (!before || before.length !== after.length) return null;
  const diff = after.map(([bound, n], i) => [bound, n - before[i][1]]);
  const total = diff.at(-1)?.[1];
  if (!(total > 0)) return null;
  const rank = q * total;
  let low = 0, below = 0;
  for (const [bound, n] of diff) {
    if (n >= rank) return bound === Infinity ? low : low + ((bound - low) * (rank - below)) / (n - below || 1);
    low = bound;
    below = n;
  }
  return low;
}
