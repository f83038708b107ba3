// What is well and what is not: the same limits as the alerts have.

import { age, count, duration, list, plural } from "./format.js";

export const lagLimit = 60; // seconds, as BinlogOutboxLagHigh
const purgeLimit = 6 * 3600; // as BinlogOutboxBinlogPurgeRisk
const statusLimit = 300; // as BinlogOutboxLagUnknown

// isPurgeRisk is true when the source may soon purge what is needed next: less than
// six hours, and less than half of what it keeps.
export function isPurgeRisk(backlog) {
  const left = backlog?.headroom_seconds;
  return left != null && left < purgeLimit && !(left >= (backlog.retention_seconds ?? Infinity) / 2);
}

// statusAge is how old lag and backlog are, in seconds, when that is too old.
export function statusAge(c) {
  const old = c.backlog ? age(c.backlog.at) : null;
  return old > statusLimit ? old : null;
}

// judge returns {level, state, problem, runbook}: level is ok, busy, warn, bad, off or
// standby; problem is a sentence without its subject when there is one.
export function judge(c) {
  const e = c.last_error;
  if (c.state === "failed") return { level: "bad", state: "Failed", problem: `has failed (${e?.code ?? "no reason is known"}) and waits for somebody` };
  if (c.state === "unassigned") return { level: "standby", state: wantedOnly(c) };
  if (isPurgeRisk(c.backlog)) {
    const left = c.backlog.headroom_seconds;
    return { level: "bad", state: left > 0 ? "Purge near" : "Purged", runbook: "BinlogOutboxBinlogPurgeRisk",
      problem: left > 0 ? `is ${c.state}, and the source may purge what it needs next in ${duration(left)}` : "needs a binlog that the source may have purged" };
  }
  if (c.state === "paused" || c.state === "stopped") return { level: "off", state: c.state === "paused" ? "Paused" : "Stopped", problem: `is ${c.state}${c.wanted.by ? ` by ${c.wanted.by}` : ""}: nothing is published` };
  if (c.phase === "snapshot rows") return { level: "ok", state: "Snapshot rows", problem: snapshotProgress(c.snapshot) };
  if (c.phase === "finished") return { level: "ok", state: "Finished", problem: "has published the rows that stood in its tables, which is all that it was to do" };
  if (c.phase !== "streaming") {
    if (e) return { level: "warn", state: "Retrying", problem: `can't publish at the moment (${e.code}) and tries again by itself` };
    return { level: "busy", state: "Starting", problem: `is starting: ${c.phase}` };
  }
  if (c.source && !c.source.connected) return { level: "warn", state: "Disconnected", problem: "has lost its source and connects again by itself" };
  if (c.lag_seconds > lagLimit) return { level: "warn", state: "Behind", problem: `is ${duration(c.lag_seconds)} behind`, runbook: "BinlogOutboxLagHigh" };
  if (statusAge(c)) return { level: "warn", state: "Streaming", problem: "does not know its lag: the source does not say how far it is", runbook: "BinlogOutboxLagUnknown" };
  return { level: "ok", state: "Streaming" };
}

function snapshotProgress(i) {
  if (!i) return "publishes the rows that stood in its tables at the start";
  const of = i.estimated_rows ? ` of about ${count(Math.max(i.estimated_rows, i.rows))}` : "";
  return `publishes the rows that stood in its tables at the start: ${count(i.rows)}${of}, ${i.done_tables} of ${plural(i.tables, "table")} done`;
}

const wantedOnly = (c) => (c.wanted.state === "running" ? "Runs elsewhere" : `${c.wanted.state[0].toUpperCase()}${c.wanted.state.slice(1)}`);

const order = ["bad", "warn", "busy", "off", "standby", "ok"];

// verdict is the state of all in one line, and what it is made of: {level, title,
// points: [{text, connector, runbook}]}.
export function verdict(status, checks) {
  const judged = status.connectors.map((c) => ({ name: c.name, ...judge(c) }));
  const points = judged.filter((j) => j.problem).sort((a, b) => order.indexOf(a.level) - order.indexOf(b.level))
    .map((j) => ({ text: j.problem, connector: j.name, runbook: j.runbook, level: j.level }));
  if (!status.leader) {
    return { level: "bad", title: "No leader: nothing is published", points: [{ text: "This node knows of no leader. Nothing is lost while the source keeps its binlog.", runbook: "BinlogOutboxNoLeader" }] };
  }
  if (status.role !== "leader") {
    const bad = (checks ?? []).filter((c) => !c.ok).map((c) => ({ text: `${c.name}: ${c.detail}` }));
    if (bad.length) return { level: "warn", title: "This node is not ready", points: bad };
    return { level: "standby", title: `Standing by: ${status.leader} leads and publishes`, points: [{ text: `How the connectors are is known at ${status.leader}; here is what the cluster keeps of them.` }] };
  }
  const level = order.find((l) => judged.some((j) => j.level === l)) ?? "ok";
  const of = (...levels) => judged.filter((j) => levels.includes(j.level)).length;
  const well = of("ok");
  const title = {
    bad: () => `${plural(of("bad"), "connector needs", "connectors need")} somebody`,
    warn: () => `${plural(of("warn"), "connector is", "connectors are")} not well`,
    busy: () => `${plural(of("busy"), "connector is", "connectors are")} starting`,
    off: () => list([well ? `${plural(well, "connector publishes", "connectors publish")}` : "", `${plural(of("off"), "is", "are")} switched off`].filter(Boolean)),
    ok: () => (judged.length ? `All is well: ${plural(well, "connector publishes", "connectors publish")}` : "All is well, and there are no connectors"),
  }[level]();
  return { level, title, points };
}
