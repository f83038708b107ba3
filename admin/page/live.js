// The status, as it changes: by server-sent events, or by asking every two seconds
// where they do not come through. A page that nobody sees asks for nothing.

import { address, get } from "./api.js";

const step = 1000; // how often is looked after it all
const pollEvery = 2000;
const streamEvery = 15_000; // how long a refused stream is left alone
const staleAfter = 5000;

// follow calls seen with each status, and contact with {state, age, detail}: state is
// connecting, live, polling or lost, age the milliseconds since the last status.
export function follow(seen, contact) {
  let stream = null, streamTried = -Infinity, polled = -Infinity, polling = false;
  let last = null, began = performance.now(), refused = null, timer = null;

  function take(status) {
    last = performance.now();
    refused = null;
    seen(status);
    tell();
  }

  function open() {
    streamTried = performance.now();
    const s = stream = new EventSource(address("v1/events"));
    s.addEventListener("status", (e) => {
      if (s === stream) take(JSON.parse(e.data));
    });
    s.onerror = (e) => {
      if (e instanceof MessageEvent) return; // one of the server's events has that name, too
      if (s === stream) close(); // the browser would try again at a pace of its own
    };
  }

  function close() {
    stream?.close();
    stream = null;
  }

  // reopen is for a stream that stands and brings nothing, after a sleep for example.
  function reopen() {
    close();
    open();
  }

  async function poll() {
    polled = performance.now();
    polling = true;
    try {
      const status = await get("v1/status", staleAfter);
      if (timer) take(status);
    } catch (e) {
      refused = e;
      tell();
    } finally {
      polling = false;
    }
  }

  function tell() {
    const now = performance.now();
    const age = now - (last ?? began);
    let state = stream ? "live" : "polling";
    if (last === null && !refused) state = "connecting";
    if (age > staleAfter || (last === null && refused)) state = "lost";
    contact({ state, age, last: last !== null, detail: refused?.message ?? "", status: refused?.status ?? 0 });
  }

  function tick() {
    const now = performance.now();
    if (stream && now - Math.max(last ?? began, streamTried) > staleAfter) reopen();
    else if (!stream && now - streamTried > (refused ? pollEvery : streamEvery)) open();
    if (stream?.readyState !== EventSource.OPEN && !polling && now - polled >= pollEvery) poll();
    tell();
  }

  function start() {
    if (timer) return;
    began = performance.now();
    streamTried = polled = -Infinity;
    if (last !== null) last = Math.max(last, began - staleAfter); // what was not asked for is not lost
    timer = setInterval(tick, step);
    tick();
  }

  function stop() {
    clearInterval(timer);
    timer = null;
    close();
  }

  document.addEventListener("visibilitychange", () => (document.hidden ? stop() : start()));
  addEventListener("pagehide", stop);
  addEventListener("pageshow", () => document.hidden || start());
  if (!document.hidden) start();
  return { visible: () => timer !== null };
}
