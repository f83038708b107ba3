// Asking the node.

import { clock } from "./format.js";

// Refused is an answer that is not what was asked for; detail is for people. Its
// status is 0 when there was no answer at all.
export class Refused extends Error {
  constructor(status, detail, code) {
    super(detail);
    this.status = status;
    this.code = code;
  }
}

const patience = 10_000; // milliseconds

// address is that of a path of this server. It leaves out a user and password that
// were typed into the page's own address, since such an address is not asked for.
export const address = (path) => new URL(`../${path}`, location.origin + location.pathname).href;

async function ask(path, options) {
  let answer;
  try {
    answer = await fetch(address(path), { cache: "no-store", signal: AbortSignal.timeout(options?.patience ?? patience), ...options });
  } catch (e) {
    throw new Refused(0, e.name === "TimeoutError" ? "The node does not answer in time." : "The node can't be reached.");
  }
  clock.heard(answer.headers.get("Date"));
  return answer;
}

async function problem(answer) {
  try {
    const p = await answer.json();
    return new Refused(answer.status, p.detail, p.code);
  } catch {
    return new Refused(answer.status, `The node answers ${answer.status} ${answer.statusText}.`);
  }
}

// get returns the JSON of a path.
export async function get(path, patience) {
  const answer = await ask(path, { patience });
  if (!answer.ok) throw await problem(answer);
  return answer.json();
}

// readiness returns the checks, whose status says the same as they do.
export async function readiness() {
  const answer = await ask("readyz?verbose");
  if (answer.status !== 200 && answer.status !== 503) throw await problem(answer);
  return answer.json();
}

export async function getText(path) {
  const answer = await ask(path);
  if (!answer.ok) throw await problem(answer);
  return answer.text();
}

// write asks for a change and returns the JSON of the answer. It may take as long as
// an election.
export async function write(method, path, body) {
  const answer = await ask(path, { method, body: JSON.stringify(body), headers: { "Content-Type": "application/json" }, patience: 30_000 });
  if (!answer.ok) throw await problem(answer);
  return answer.json();
}
