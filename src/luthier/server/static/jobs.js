// The jobs of active runs in a batch system: number, state, and why and for how long they wait.

import { count, duration } from "./format.js";

/** A job in a few words: "4711 PENDING (Resources), 3 min in the queue". */
export function jobText(job) {
  const why = job.reason ? ` (${job.reason})` : "";
  const wait = job.began_at === null ? `, ${duration(waited(job))} in the queue` : "";
  return `${job.number} ${job.state}${why}${wait}`.trim();
}

/** How many jobs wait, and which one has waited longest; empty if none waits. */
export function queueText(jobs) {
  const waiting = jobs.filter((job) => job.began_at === null);
  if (waiting.length === 0) return "";
  const longest = waiting.reduce((one, other) => (other.submitted_at < one.submitted_at ? other : one));
  return `${count(waiting.length)} of ${count(jobs.length)} jobs wait, for the longest time job ${jobText(longest)}.`;
}

function waited(job) {
  return Math.max(0, Date.now() / 1000 - job.submitted_at);
}
