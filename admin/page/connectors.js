// The card of a connector.

import { ask } from "./ask.js";
import { get, getText, write } from "./api.js";
import { attr, byId, facts, h, keyed, rows, show, text } from "./dom.js";
import { age, ago, bytes, clock, count, duration, moment, plural, rate } from "./format.js";
import { chart } from "./chart.js";
import { buckets, quantile, Rates, Series } from "./history.js";
import { isPurgeRisk, judge, lagLimit, statusAge } from "./judge.js";
import { address, advice, inline, title } from "./runbooks.js";

const histogram = "binlog_outbox_end_to_end_latency_seconds";
const known = new Map(); // what the page keeps of each connector, by its name

function kept(name) {
  if (!known.has(name)) known.set(name, { rates: new Rates(), p50: new Series(), p99: new Series(), buckets: null });
  return known.get(name);
}

// record takes what a status says of the past.
export function record(status) {
  const now = performance.now();
  for (const c of status.connectors) {
    if (c.state === "unassigned") continue;
    kept(c.name).rates.read(now, c.published_records);
  }
  for (const name of known.keys()) {
    if (!status.connectors.some((c) => c.name === name)) known.delete(name);
  }
}

// recordLatency reads the metrics of the node.
export async function recordLatency() {
  const all = buckets(await getText("metrics"), histogram);
  const now = performance.now();
  for (const [name, after] of all) {
    const k = known.get(name);
    if (!k) continue;
    k.p50.add(now, quantile(k.buckets, after, 0.5));
    k.p99.add(now, quantile(k.buckets, after, 0.99));
    k.buckets = after;
  }
}

// draw shows the connectors of a status; done is called after a change was asked for.
export function draw(status, done) {
  show(byId("no-connectors"), status.connectors.length === 0);
  keyed(byId("connectors"), status.connectors, (c) => c.name, (c) => make(c.name, done), (e, c) => fill(e, c, status));
}

function make(name, done) {
  const e = byId("connector").content.firstElementChild.cloneNode(true);
  const f = Object.fromEntries([...e.querySelectorAll("[data-f]")].map((x) => [x.dataset.f, x]));
  const rates = chart("Published, records a second", [""], rate);
  const latency = chart("Latency, commit to acknowledgement", ["p50", "p99"], duration);
  f.charts.append(rates.figure, latency.figure);
  e.parts = { f, rates, latency, buttons: [...e.querySelectorAll("[data-action]")], error: "" };
  e.id = `connector-${name}`;
  f.name.id = `name-${name}`;
  e.setAttribute("aria-labelledby", f.name.id);
  e.querySelector(".actions").setAttribute("aria-label", `Actions on ${name}`);
  f.unpublished.addEventListener("click", () => decideRow(e.connector, f.name, () => done(name, "a decision about the row")));
  for (const b of e.parts.buttons) {
    b.addEventListener("click", () => change(b.dataset.action, e.connector, f.name, () => done(name, b.dataset.action)));
  }
  return e;
}

function fill(e, c, status) {
  const { f, rates, latency, buttons } = e.parts;
  const j = judge(c), here = c.state !== "unassigned";
  e.connector = c;
  attr(e, "data-level", j.level);
  text(f.name, c.name);
  text(f.state, j.state);
  text(f.about, about(c, status));
  text(f.wanted, wanted(c));
  show(f.wanted, wanted(c) !== "");
  for (const b of buttons) show(b, offered(c).includes(b.dataset.action));
  trouble(e, c, j);
  for (const part of [f.tiles, f.charts]) show(part, here);
  if (here) {
    facts(f.tiles, tiles(c));
    const k = kept(c.name), now = performance.now();
    rates.draw(now, [k.rates]);
    latency.draw(now, [k.p50, k.p99]);
  }
  facts(f.health, health(c));
  facts(f.position, position(c));
}

function about(c, status) {
  const parts = [];
  if (c.state === "unassigned") parts.push(status.leader ? `${status.leader} knows how it is` : "no node leads");
  else {
    if (c.state === "running" && c.phase !== "streaming") parts.push(c.phase);
    parts.push(c.state === "running" ? `runs for ${duration(Math.floor(age(c.since)))}` : `since ${moment(c.since)}`);
  }
  if (c.delivery) parts.push(c.delivery.replaceAll("_", " "));
  return parts.filter(Boolean).join(" · ");
}

function wanted(c) {
  const w = c.wanted;
  if (!w.at || (w.state === "running" && c.state === "running")) return "";
  return `${w.state} was asked for by ${w.by} at ${moment(w.at)}${w.reason ? `: ${w.reason}` : ""}`.replace(/^./, (x) => x.toUpperCase());
}

function offered(c) {
  const want = c.state === "unassigned" ? c.wanted.state : c.state;
  return { running: ["pause", "stop", "restart"], paused: ["resume", "stop"], stopped: ["resume"], failed: ["restart", "pause", "stop"] }[want] ?? [];
}

function trouble(e, c, j) {
  const { f } = e.parts, err = c.last_error;
  const what = err ? `${err.code} ${err.message} ${err.retry_at ?? ""}` : j.runbook ?? "";
  show(f.trouble, what !== "");
  show(f.unpublished, c.state === "failed" && Boolean(err?.transaction) && err.row > 0);
  attr(f.trouble, "data-level", err && !err.retry_at ? "bad" : j.level === "bad" ? "bad" : "warn");
  if (err) {
    text(f["error-title"], `${err.code}, ${ago(err.at)}`);
    text(f["error-message"], err.message);
    facts(f["error-facts"], [
      ["Transaction", err.transaction || err.gtid], ["Row", err.row ? `${count(err.row)} of its outbox rows` : ""],
      ["At", { text: moment(err.at), title: err.at }],
      ["Next attempt", err.retry_at ? next(err.retry_at) : "none: it waits for somebody"],
    ]);
  } else if (j.runbook) {
    text(f["error-title"], `This connector ${j.problem}.`);
    text(f["error-message"], "");
    facts(f["error-facts"], []);
  }
  if (e.parts.error === what) return; // the advice stays the same
  e.parts.error = what;
  if (what !== "") advise(e, err, j);
}

function next(at) {
  const left = (Date.parse(at) - clock.now()) / 1000;
  return left > 1 ? `in ${duration(Math.floor(left))}` : "now";
}

async function advise(e, err, j) {
  const { f } = e.parts, what = e.parts.error;
  let a;
  try {
    a = err ? await advice(err) : { runbook: j.runbook, text: "The runbook says what it means, where to look and what to do." };
  } catch {
    e.parts.error = ""; // asked again with the next status
    return;
  }
  if (e.parts.error !== what) return;
  f.advice.replaceChildren(inline(a.text));
  f.runbook.textContent = `Runbook: ${title(a.runbook)}`;
  f.runbook.href = address(a.runbook);
}

function tiles(c) {
  const k = kept(c.name), b = c.backlog ?? {}, old = statusAge(c);
  const last = (s) => s.points.findLast((p) => p[1] != null)?.[1];
  const waits = [b.transactions != null ? plural(b.transactions, "transaction") : "", b.bytes != null ? bytes(b.bytes) : ""].filter(Boolean).join(", ");
  return [
    ["Lag", { text: c.lag_seconds == null ? "not known" : c.lag_seconds === 0 ? "none" : duration(c.lag_seconds), level: c.lag_seconds > lagLimit || old ? "warn" : "", title: "Age of the oldest transaction that the source has committed and that is not published" }],
    ["Rate", { text: `${rate(k.rates.points.at(-1)?.[1])} records/s`, title: "Records published a second, over the last second" }],
    ["Latency p50, p99", { text: last(k.p99) == null ? "no events yet" : `${duration(last(k.p50))}, ${duration(last(k.p99))}`, title: "From the commit in MySQL to the acknowledgement by Kafka, when something was published last" }],
    ["Waits for Kafka", { text: c.queue.records ? `${count(c.queue.records)} records, ${bytes(c.queue.bytes)}` : "nothing", title: "The queue between reading and publishing" }],
    ["Not read yet", { text: b.transactions === 0 || b.bytes === 0 ? "nothing" : waits || "not known", title: `What the source has and was not read, of all tables${c.backlog ? `; asked ${ago(b.at)}` : ""}` }],
    ["Purged at the earliest", { text: b.headroom_seconds == null ? (c.backlog ? "never by itself" : "not known") : b.headroom_seconds > 0 ? `in ${duration(b.headroom_seconds)}` : "now", level: isPurgeRisk(b) ? "bad" : "", title: "Least time until the source may purge the binlog that is needed next" }],
    ["Published", { text: count(c.published_records), title: "Records since this process started" }],
    ["Not published", { text: c.unpublished.rows ? plural(c.unpublished.rows, "row") : "none", level: c.unpublished.rows ? "warn" : "", title: "Rows that could not be published, since this process started" }],
  ];
}

// health tells how the two ends are, from what the connector is at: it opens its sink
// first, and both are open while it streams.
function health(c) {
  if (c.state === "unassigned") return [["Published up to", published(c)]];
  const s = c.source, runs = c.state === "running", streams = ["streaming", "snapshot rows", "finished"].includes(c.phase);
  const source = s
    ? { level: s.connected ? "ok" : "bad", text: `${s.connected ? "connected" : "not connected"}: ${s.flavor === "mariadb" ? "MariaDB" : "MySQL"} ${s.server_version}, heard ${duration(s.last_event_or_heartbeat_age_seconds)} ago` }
    : { level: runs ? "warn" : "off", text: runs ? (/source|start/.test(c.phase ?? "") ? c.phase : "not open") : "not open" };
  const sink = runs
    ? { level: streams ? "ok" : "warn", text: streams ? `open: ${c.delivery.replaceAll("_", " ")}` : c.phase === "opening sink" ? "opening" : /source|start/.test(c.phase ?? "") ? "open" : "not open" }
    : { level: "off", text: "not open" };
  return [
    ["Source", source],
    ["Sink", sink],
    ["Reads at", s?.binlog_file ? `${s.binlog_file}:${s.binlog_position}` : ""],
    ["Published up to", published(c)],
    ["Sessions", c.sessions > 1 ? `${count(c.sessions)} since this process started` : ""],
  ];
}

function published(c) {
  const p = c.position, at = p.last_gtid || (p.file ? `${p.file}:${p.pos}` : "");
  if (!at && !p.sequence) return "nothing yet";
  return { text: `${at || "a set position"}${p.event_time ? `, committed ${ago(p.event_time)}` : ""}`, title: p.event_time };
}

function position(c) {
  const p = c.position, s = c.source;
  return [
    ["GTID set", p.gtid_set], ["File and offset", p.file ? `${p.file}:${p.pos}` : ""], ["Last transaction", p.last_gtid],
    ["Committed", p.event_time ? { text: `${moment(p.event_time)} (${p.event_time})` } : ""],
    ["Number of the last row", count(p.sequence)], ["Server", s?.server_uuid],
    ["Seen of outbox tables", s ? `${count(s.inserts)} inserted rows, ${count(s.updates)} updates, ${count(s.deletes)} deletes` : ""],
    ["Take-over", c.takeover_seconds ? Object.entries(c.takeover_seconds).map(([k, v]) => `${k} ${duration(v)}`).join(", ") : ""],
  ];
}

const purgeNote = (c) => {
  const left = c.backlog?.headroom_seconds;
  return left == null ? "" : left > 0 ? ` The source may purge what it needs next in ${duration(left)}.` : " The source may already have purged what it needs next.";
};

const changes = {
  pause: (c) => ({ message: `Nothing more is published until it is resumed; its position stays.${purgeNote(c)}` }),
  stop: (c) => ({ message: `Nothing more is published until it is resumed. While it is stopped, its position can be set.${purgeNote(c)}`, danger: true }),
  resume: () => ({ message: "It goes on where it was, or where its position was set to." }),
  restart: (c) => ({ message: c.state === "failed" ? "It begins afresh, and fails again unless what the error names was corrected." : "It ends what it is at, opens source and sink anew, and goes on after what was published." }),
};

function change(action, c, after, done) {
  const word = action[0].toUpperCase() + action.slice(1);
  ask({
    title: `${word} ${c.name}?`, confirm: `${word} ${c.name}`, after, ...changes[action](c),
    send: async (filled) => {
      await write(action === "restart" ? "POST" : "PUT", `v1/connectors/${encodeURIComponent(c.name)}/${action}`, filled);
      done();
    },
  });
}

function decideRow(c, after, done) {
  const { transaction, row } = c.last_error;
  ask({
    title: `Go on without row ${count(row)}?`, confirm: "Skip or dead-letter the row", danger: true, after,
    message: `Row ${count(row)} of transaction ${transaction} is not published to its topic, and ${c.name} goes on behind it. That holds for this row alone, and needs the role admin.`,
    fields: [{ name: "action", label: "What becomes of it", value: "dead_letter", options: [["dead_letter", "to the dead-letter topic"], ["skip", "nothing: it is skipped"]] }],
    send: async (filled) => {
      await write("POST", `v1/connectors/${encodeURIComponent(c.name)}/unpublished-rows`, { ...filled, transaction, row });
      done();
    },
  });
}

// drawUnpublished shows the rows of all connectors that were skipped or dead-lettered, the last first.
export function drawUnpublished(status) {
  const all = status.connectors.flatMap((c) => (c.unpublished.last ?? []).map((r) => ({ ...r, connector: c.name })))
    .sort((a, b) => b.at.localeCompare(a.at));
  const total = status.connectors.reduce((n, c) => n + c.unpublished.rows, 0);
  show(byId("no-unpublished"), total === 0);
  show(byId("unpublished-scroll"), all.length > 0);
  show(byId("unpublished-hint"), total > all.length);
  text(byId("unpublished-hint"), `The last ${count(all.length)} of ${count(total)} since this process started.`);
  rows(byId("unpublished"), all, (r) => `${r.connector} ${r.transaction} ${r.row} ${r.at}`, (r) => [
    { text: moment(r.at), title: r.at }, r.connector, r.action === "dead_letter" ? "dead letter" : "skipped",
    `${r.row}${r.table ? ` of ${r.table}` : ""}`, r.transaction, `${r.cause}: ${r.message}`,
  ]);
}
