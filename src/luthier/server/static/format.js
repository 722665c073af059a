// Numbers, times and gains as text, in the same format as on the command line.

const SECONDS = ["wall", "user", "system", "cpu", "time", "io:time"];
const RATES = ["io:perf", "io:write_bandwidth", "io:read_bandwidth"];
const BYTES = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

/** A number with a given precision, without trailing zeros. */
export function number(value, digits = 4) {
  if (value === null || value === undefined) return "–";
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-4 || size >= 1e7)) return Number(value.toPrecision(digits)).toExponential();
  return String(Number(value.toPrecision(digits)));
}

export function count(value) {
  return value === null || value === undefined ? "–" : value.toLocaleString("en");
}

/** A measured value with its unit. */
export function measured(value, measure) {
  if (value === null || value === undefined) return "–";
  if (SECONDS.includes(measure) || /^io:.*_s$/.test(measure)) return Math.abs(value) < 1 ? `${number(value * 1000)} ms` : `${number(value)} s`;
  const isRate = RATES.includes(measure);
  if (measure !== "memory" && !isRate && !/^io:.*_bytes$/.test(measure)) return number(value, 5);
  let [size, unit] = [value, 0];
  while (Math.abs(size) >= 1024 && unit < BYTES.length - 1) [size, unit] = [size / 1024, unit + 1];
  return `${number(size)} ${BYTES[unit]}${isRate ? "/s" : ""}`;
}

/** An estimate with its interval, if it has one. */
export function estimate(guess, measure) {
  if (!guess) return "no value";
  const text = measured(guess.value, measure);
  if (guess.low === null || guess.high === null || guess.low === guess.high) return text;
  return `${text} (${measured(guess.low, measure)} to ${measured(guess.high, measure)})`;
}

export function duration(seconds) {
  if (seconds === null || seconds === undefined) return "–";
  if (seconds < 1) return `${number(seconds * 1000, 3)} ms`;
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  if (seconds < 60) return `${Math.round(seconds)} s`;
  const minutes = Math.floor(Math.round(seconds) / 60);
  const rest = Math.round(seconds) % 60;
  if (minutes < 60) return `${minutes} min ${String(rest).padStart(2, "0")} s`;
  return `${Math.floor(minutes / 60)} h ${String(minutes % 60).padStart(2, "0")} min`;
}

export function percent(share, digits = 2) {
  return share === null || share === undefined ? "–" : `${number(100 * share, digits)} %`;
}

export function moment(at_s) {
  return new Date(at_s * 1000).toLocaleString([], { dateStyle: "medium", timeStyle: "short" });
}

/** The time since a moment, in words. */
export function ago(at_s) {
  const seconds = Date.now() / 1000 - at_s;
  if (seconds < 45) return "just now";
  if (seconds < 3600) return `${Math.max(1, Math.round(seconds / 60))} min ago`;
  if (seconds < 36 * 3600) return `${Math.round(seconds / 3600)} h ago`;
  if (seconds < 14 * 86400) return `${Math.round(seconds / 86400)} days ago`;
  return new Date(at_s * 1000).toLocaleDateString([], { dateStyle: "medium" });
}

/** A ratio with three digits, or more if they are needed to tell it from 1. */
function ratio(one) {
  const away = Math.abs(one - 1);
  if (!(away > 0 && Number.isFinite(away))) return number(one, 3);
  return number(one, Math.min(Math.max(3, 2 - Math.floor(Math.log10(away))), 7));
}

/** A gain with its interval: a ratio, or a difference in the measure's unit where values are not positive. */
export function gain({ speedup, low, high, improved, kind }) {
  if (speedup === null || speedup === undefined) return null;
  const isRatio = kind !== "difference";
  const text = (one) => (isRatio ? ratio(one) : number(one));
  const isKnown = low !== null && low !== undefined && high !== null && high !== undefined;
  return {
    text: isRatio ? `${text(speedup)}×` : text(speedup),
    interval: isKnown ? `${text(low)} to ${text(high)}` : "",
    improved: Boolean(improved),
  };
}

/** A remark of the server as a sentence. */
export function sentence(text) {
  return `${text[0].toUpperCase()}${text.slice(1)}${text.endsWith(".") ? "" : "."}`;
}

/** The CSS class of a status. */
export function statusClass(status) {
  return status.replace(" ", "-");
}

export function value(one) {
  return typeof one === "string" ? one : JSON.stringify(one);
}

export function config(values) {
  return Object.entries(values)
    .map(([name, one]) => `${name}=${value(one)}`)
    .join(" ");
}
