// What the list and the page of on-line sessions say in the same words.

import { h } from "./dom.js";
import { gain, number, percent } from "./format.js";

const BADGES = { baseline: "running", searching: "running", converged: "finished", stopped: "stopped" };

/** The phase of a session. */
export function phaseBadge({ phase }) {
  return h("span", { class: `badge ${BADGES[phase] ?? ""}` }, phase);
}

/** How many times better the best configuration is than the default; null while there is nothing to compare. */
export function gainText(one) {
  return one.phase === "baseline" ? null : (gain({ speedup: one.gain })?.text ?? null);
}

/** What the steps that can be compared with the default have saved; null without such steps. */
export function savedText({ saved, default_total: whole, phase }) {
  if (saved === null || phase === "baseline") return null;
  const share = whole > 0 ? percent(Math.abs(saved) / whole) : number(Math.abs(saved));
  return { text: share, isWorse: saved < 0 };
}
