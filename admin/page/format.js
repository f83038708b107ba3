// Numbers, sizes and times for people.

const space = "\u00a0"; // keeps a number and its unit on one line
const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });

// count writes a whole number with separators.
export const count = (n) => whole.format(n);

// rate writes a number per second: few digits when it is small.
export function rate(n) {
  if (n == null || !Number.isFinite(n)) return "–";
  return n > 0 && n < 10 ? n.toFixed(1) : whole.format(n);
}

export function bytes(n) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let i = 0;
  for (; n >= 1024 && i < units.length - 1; i++) n /= 1024;
  return `${i && n < 10 ? n.toFixed(1) : whole.format(n)}${space}${units[i]}`;
}

// duration writes seconds with the two units that matter.
export function duration(s) {
  if (s == null || !Number.isFinite(s)) return "–";
  if (s < 0) s = 0;
  if (s < 0.0005) return `0${space}ms`;
  if (s < 1) return `${s < 0.01 ? (s * 1000).toFixed(1) : whole.format(s * 1000)}${space}ms`;
  if (s < 10) return `${Number.isInteger(s) ? s : s.toFixed(1)}${space}s`;
  const units = [["d", 86400], ["h", 3600], ["min", 60], ["s", 1]];
  const t = Math.round(s);
  const i = units.findIndex(([, size]) => t >= size);
  const [unit, size] = units[i];
  let out = `${Math.floor(t / size)}${space}${unit}`;
  if (i < 3) {
    const rest = Math.floor((t % size) / units[i + 1][1]);
    if (rest > 0) out += ` ${rest}${space}${units[i + 1][0]}`;
  }
  return out;
}

// clock is the node's time: what it says of the past is compared with that, not with
// the clock of the machine that the browser runs on.
export const clock = {
  ahead: 0, // milliseconds
  now() { return Date.now() + this.ahead; },
  // heard takes the Date header of an answer, which has whole seconds.
  heard(date) {
    const t = Date.parse(date ?? "");
    if (Number.isNaN(t)) return;
    const ahead = t + 500 - Date.now();
    this.ahead = Math.abs(ahead) > 2000 ? ahead : 0;
  },
};

// never is what Go's zero time looks like.
const never = (iso) => !iso || iso.startsWith("0001-");

// ago writes how long ago a time was, in whole steps that do not flicker.
export function ago(iso) {
  if (never(iso)) return "";
  const s = (clock.now() - Date.parse(iso)) / 1000;
  return s < 1 ? "just now" : `${duration(Math.floor(s))} ago`;
}

// age is the seconds since a time; null for none.
export const age = (iso) => (never(iso) ? null : Math.max(0, (clock.now() - Date.parse(iso)) / 1000));

// moment writes a time in the zone of who looks.
export function moment(iso) {
  if (never(iso)) return "";
  const d = new Date(iso);
  const today = new Date().toDateString() === d.toDateString();
  const time = d.toLocaleTimeString("en-GB");
  return today ? time : `${d.toLocaleDateString("en-CA")} ${time}`;
}

export const plural = (n, one, many = one + "s") => `${count(n)} ${n === 1 ? one : many}`;

// list writes "a, b and c".
export const list = (words) => (words.length < 2 ? words.join("") : `${words.slice(0, -1).join(", ")} and ${words.at(-1)}`);
