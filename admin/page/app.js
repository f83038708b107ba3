// The page of a node: what it tells, and what may be asked of it.

import { ask } from "./ask.js";
import { get, readiness, write } from "./api.js";
import { attr, byId, facts, h, keyed, rows, show, text } from "./dom.js";
import { count, duration, moment } from "./format.js";
import { draw, drawUnpublished, record, recordLatency } from "./connectors.js";
import { follow } from "./live.js";
import { judge, verdict } from "./judge.js";
import { link } from "./runbooks.js";

const auditShown = 10;
let status = null, cluster = null, checks = null, audit = [], allAudit = false;

// say tells screen readers of a change. What changes all the time is not told.
function say(...sentences) {
  if (sentences.length) byId("news").textContent = sentences.join(". ");
}

function news(before, after) {
  if (!before) return;
  const out = [];
  if (before.leader !== after.leader) out.push(after.leader ? `${after.leader} leads now` : "There is no leader");
  const was = new Map(before.connectors.map((c) => [c.name, judge(c)]));
  for (const c of after.connectors) {
    const j = judge(c);
    if (was.get(c.name)?.state !== j.state) out.push(`${c.name}: ${j.state}`);
  }
  say(...out);
}

function drawStatus() {
  const v = verdict(status, checks);
  attr(byId("verdict"), "data-level", v.level);
  text(byId("verdict-title"), v.title);
  keyed(byId("verdict-list"), v.points, (p) => `${p.connector ?? ""} ${p.runbook ?? ""}`,
    (p) => h("li", {}, p.connector ? h("a", { href: `#connector-${encodeURIComponent(p.connector)}` }, p.connector) : null, p.connector ? " " : null, h("span"), p.runbook ? " Runbook: " : null, p.runbook ? link(p.runbook) : null),
    (li, p) => text(li.querySelector("span"), p.text + (/[.]$/.test(p.text) ? "" : ".")));
  text(byId("node"), `${status.node} · ${status.role}`);
  text(byId("version"), `binlog-outbox ${status.version}`);
  const mark = { bad: "✕ ", warn: "! " }[v.level] ?? "";
  document.title = `${mark}${status.node} · binlog-outbox`;
  draw(status, (name, action) => {
    say(`${name}: ${action} was asked for`);
    refreshAudit();
  });
  drawUnpublished(status);
}

function drawCluster() {
  const c = cluster;
  facts(byId("cluster-facts"), [
    ["Leader", { text: c.leader || "none", level: c.leader ? "" : "bad" }], ["Term", count(c.term)],
    ["This node", { text: `${c.node}, ${c.role}`, level: c.ready ? "" : "warn" }],
    ["Applied", { text: `${count(c.applied_index)} of ${count(c.last_index)}`, title: "Entries of the replicated log" }],
    ["Leader heard", c.role === "leader" ? "" : c.last_contact_seconds == null ? "never" : `${duration(c.last_contact_seconds)} ago`],
    ["Trouble", c.error ? { text: c.error, level: "bad" } : ""],
  ]);
  rows(byId("members"), c.members, (m) => m.id, (m) => [
    m.id === c.node ? `${m.id} (this node)` : m.id, m.leader ? "leader" : m.voter ? "voter" : "no vote yet",
    m.reachable == null ? "–" : { text: m.reachable ? "yes" : "no", level: m.reachable ? "ok" : "bad" }, m.address,
  ]);
  show(byId("members-hint"), c.members.some((m) => m.reachable == null));
  show(byId("transfer"), c.leader !== "" && c.members.filter((m) => m.voter).length > 1);
}

function drawAudit() {
  const newest = audit.toReversed();
  show(byId("no-audit"), newest.length === 0);
  show(byId("audit-scroll"), newest.length > 0);
  rows(byId("audit"), allAudit ? newest : newest.slice(0, auditShown), (e) => String(e.index), (e) => [
    { text: moment(e.at), title: e.at }, e.by, [e.action.replaceAll("_", " "), e.detail].filter(Boolean).join(": "), e.connector ?? "", e.reason ?? "",
  ]);
  show(byId("audit-more"), newest.length > auditShown);
  text(byId("audit-more"), allAudit ? `Show the last ${auditShown} only` : `Show all ${count(newest.length)}`);
}

byId("audit-more").addEventListener("click", () => {
  allAudit = !allAudit;
  drawAudit();
});

byId("transfer").addEventListener("click", () => {
  const others = cluster.members.filter((m) => m.voter && !m.leader);
  ask({
    title: "Hand over the leadership?", confirm: "Hand over",
    message: `${cluster.leader} finishes its batches, saves the positions, and another node goes on. Publishing pauses for a moment.`,
    fields: [{ name: "to", label: "To", value: "", options: [["", "the node that has most"], ...others.map((m) => [m.id, m.id + (m.reachable === false ? " (not in contact)" : "")])] }],
    send: async (filled) => {
      if (!filled.to) delete filled.to;
      cluster = await write("POST", "v1/cluster/leader/transfer", filled);
      drawCluster();
      refreshAudit();
    },
  });
});

function drawLoggers(list) {
  rows(byId("loggers"), list, (l) => l.name, (l) => [
    l.name, l.level, l.until ? { text: moment(l.until), title: l.until } : "", { node: h("button", { type: "button", class: "plain", "aria-label": `Set the level of ${l.name}`, onclick: () => setLevel(l.name) }, "Set…") },
  ]);
}

function setLevel(name) {
  const pairs = (words) => words.map((w) => [w, w]);
  ask({
    title: `Log level of ${name}`, confirm: "Set level", message: "For this node alone. It is told in the node's log, not in the audit list.",
    fields: [
      { name: "level", label: "Level", value: "debug", options: pairs(["debug", "info", "warn", "error"]) },
      { name: "for", label: "For", value: "10m", options: [["10m", "10 minutes"], ["1h", "an hour"], ["", "until the node restarts"]] },
    ],
    send: async (filled) => {
      if (!filled.for) delete filled.for;
      drawLoggers((await write("PUT", `v1/loggers/${encodeURIComponent(name)}`, filled)).loggers);
    },
  });
}

// every runs work now and then, while the page is seen and the node answers.
// What fails is tried again the next time; the contact line tells of it.
function every(milliseconds, work) {
  let running = false;
  const run = async () => {
    if (running || !live.visible() || !status || lost) return;
    running = true;
    try {
      await work();
    } catch (e) {
      console.warn(e.message);
    } finally {
      running = false;
    }
  };
  setInterval(run, milliseconds);
  return run;
}

let lost = false, said = "";
function contact(c) {
  const words = { connecting: "Connecting", live: "Live", polling: "Every 2 s", lost: "No contact" }[c.state];
  attr(byId("contact"), "data-state", c.state);
  text(byId("contact-text"), words);
  lost = c.state === "lost";
  show(byId("lost"), lost);
  document.body.toggleAttribute("data-stale", lost);
  if (lost) {
    const refusedBy = { 401: "Log in: ", 403: "You may not look at this: " }[c.status] ?? "";
    text(byId("lost-title"), c.last ? `No contact with ${status.node} for ${duration(Math.floor(c.age / 1000))}.` : "No contact with the node.");
    text(byId("lost-text"), `${refusedBy}${c.detail} ${c.last ? "What stands below is as old as that." : ""}`);
    document.title = "? binlog-outbox";
  }
  if (lost !== (said === "lost")) say(lost ? "Contact with the node is lost" : "Contact is back");
  said = lost ? "lost" : "here";
}

let first = true;
const live = follow((next) => {
  news(status, next);
  const moved = status?.leader !== next.leader || status?.term !== next.term;
  status = next;
  lost = false;
  record(status);
  drawStatus();
  if (first) for (const refresh of [refreshCluster, refreshAudit, refreshLoggers, refreshLatency]) refresh();
  else if (moved) refreshCluster();
  first = false;
}, contact);

const refreshCluster = every(5000, async () => {
  [cluster, checks] = await Promise.all([get("v1/cluster"), readiness()]);
  drawCluster();
  drawStatus();
});
const refreshAudit = every(10_000, async () => {
  audit = (await get("v1/audit")).entries;
  drawAudit();
});
const refreshLoggers = every(30_000, async () => drawLoggers((await get("v1/loggers")).loggers));
const refreshLatency = every(5000, async () => {
  if (status.role === "leader") await recordLatency();
});
