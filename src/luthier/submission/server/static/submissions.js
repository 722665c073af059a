// Submitted jobs: what each got, what that saved, and which programs to tune next.

import { get, post } from "./api.js";
import { $, dataTable, fill, h, mayLaunch } from "./dom.js";
import { ago, count, duration, moment, number } from "./format.js";
import { actionButton, attempt } from "./messages.js";

const LOOK_EVERY_MS = 5000;
const DECISIONS = {
  set: ["finished", "configured"],
  default: ["running", "default, to compare"],
  unused: ["stopped", "not used"],
  none: ["", "no match"],
};
const opened = new Set(); // the jobs whose similarities are shown
let shown = [];
let next = null;
let drawn = "";

async function look() {
  const page = await get("/submissions?limit=50");
  const newest = new Set(page.items.map((one) => one.id));
  const older = shown.filter((one) => !newest.has(one.id) && one.id < (page.items.at(-1)?.id ?? 0));
  if (older.length === 0) next = page.next;
  shown = [...page.items, ...older];
  const [gains, candidates, withdrawn] = await Promise.all([
    get("/job-gains"),
    get("/tuning-candidates"),
    get("/job-records?withdrawn=true"),
  ]);
  const state = JSON.stringify([shown, gains, candidates, withdrawn]);
  if (state === drawn || $("main").contains(document.activeElement?.closest("button, summary"))) return;
  drawn = state;
  showDecisions();
  showGains(gains);
  showCandidates(candidates);
  showWithdrawn(withdrawn);
}

function table(headings, rows) {
  return h("div", { class: "scroll" }, dataTable(headings, rows, { class: "experiments" }));
}

function numeric(text) {
  return h("th", { class: "number" }, text);
}

function showDecisions() {
  const list = $("#decisions");
  list.removeAttribute("aria-busy");
  if (shown.length === 0) {
    fill(list, $("#nothing-yet").content.cloneNode(true));
    return;
  }
  const more = h("button", { type: "button", onclick: () => attempt(showMore) }, "Show more");
  fill(
    list,
    table(["Job", "Decision", "Similarity", "Ended", "Match"], shown.map(decisionRow)),
    next === null ? null : h("div", { class: "pager" }, more),
  );
}

async function showMore() {
  const page = await get(`/submissions?limit=50&before=${next}`);
  shown.push(...page.items);
  next = page.next;
  showDecisions();
}

function decisionRow(one) {
  const [kind, text] = DECISIONS[one.decision];
  const under = [`#${one.id}`, one.user, one.program, `${count(one.nodes)} node${one.nodes === 1 ? "" : "s"}`];
  return h(
    "tr",
    { dataset: { id: one.id } },
    h(
      "td",
      { class: "name" },
      h("b", {}, one.name),
      h("small", {}, under.filter(Boolean).join(" · ")),
      h("small", {}, h("time", { title: moment(one.submitted_at) }, ago(one.submitted_at))),
    ),
    h(
      "td",
      {},
      h("span", { class: `badge ${kind}` }, text),
      h("div", { class: "small muted" }, one.reason),
      one.experiment_id === null ? null : again(one.experiment_id),
    ),
    h("td", {}, similarity(one)),
    h("td", { class: "nowrap" }, ending(one)),
    h("td", { class: "nowrap" }, one.record_id === null ? "–" : review(one)),
  );
}

function again(experiment) {
  const links = [h("a", { href: `/experiments/${experiment}` }, `Experiment ${experiment}`)];
  if (mayLaunch) links.push(" · ", h("a", { href: `/new?clone=${experiment}&after=${experiment}` }, "Tune again from it"));
  return h("small", {}, links);
}

function similarity(one) {
  if (one.by_field === null) return "–";
  const fields = Object.entries(one.by_field).map(([field, score]) =>
    h("span", { class: "chip" }, `${field} `, h("b", {}, score.toFixed(2))),
  );
  const details = h(
    "details",
    { class: "more", open: opened.has(one.id) },
    h("summary", {}, one.score.toFixed(2)),
    h("div", { class: "chips" }, fields),
  );
  details.addEventListener("toggle", () => (details.open ? opened.add(one.id) : opened.delete(one.id)));
  return details;
}

function ending(one) {
  if (one.state === null) return h("span", { class: "said" }, "not known");
  const job = one.job_id === null ? null : h("small", {}, `job ${one.job_id}`);
  return h("span", {}, `${duration(one.elapsed_s)}, ${one.state.toLowerCase()}`, h("br"), job);
}

function review(one) {
  const button = (text, confirmed) =>
    h(
      "button",
      {
        type: "button",
        class: "tiny",
        "aria-pressed": String(one.confirmed === confirmed),
        "aria-label": `${text} match of job ${one.id}`,
        onclick: () => attempt(() => say(one, one.confirmed === confirmed ? null : confirmed)),
      },
      one.confirmed === confirmed ? `✓ ${text}` : text,
    );
  return h("div", { class: "chips" }, button("Right", true), button("Wrong", false));
}

async function say(one, confirmed) {
  Object.assign(one, await post(`/submissions/${one.id}/review`, { confirmed }));
  showDecisions();
  $(`tr[data-id="${one.id}"] button`)?.focus();
}

function hours(seconds) {
  if (seconds === null) return "–";
  const size = Math.abs(seconds) / 3600;
  return size < 0.1 ? `${seconds < 0 ? "−" : ""}${duration(Math.abs(seconds))}` : `${number(seconds / 3600, 3)} h`;
}

function showGains(gains) {
  $("#gains-card").hidden = gains.length === 0;
  const row = (one) =>
    h(
      "tr",
      {},
      h("td", {}, one.author),
      h(
        "td",
        { class: "name" },
        h("b", {}, one.program),
        h("small", {}, [one.component, one.experiment_id && `experiment ${one.experiment_id}`].filter(Boolean).join(" · ")),
      ),
      h("td", { class: "number" }, count(one.jobs)),
      h("td", { class: "number" }, hours(one.elapsed_s)),
      h("td", {}, one.speedup === null ? "–" : `${number(one.speedup, 3)}×`, h("small", {}, ` ${basis(one)}`)),
      h("td", { class: "number" }, h("span", { class: (one.saved_s ?? 0) > 0 ? "gain yes" : "gain" }, hours(one.saved_s))),
    );
  const headings = ["User", "Program", numeric("Jobs"), numeric("Time"), "Speed-up", numeric("Saved")];
  fill($("#gains"), table(headings, gains.map(row)));
}

function basis(one) {
  if (one.pairs > 0) return `from ${one.pairs} pairs of jobs`;
  return one.speedup === null ? "" : "estimated from the experiment";
}

function showCandidates({ items, tuned, median_speedup: usual }) {
  $("#candidates-card").hidden = items.length === 0;
  const known = "Programs that ran at least twice in 90 days and matched no tuned job. The time is that of jobs whose end is known.";
  const guess = `The saving is an estimate: what they would save with ${number(usual, 3)}×, the median speed-up of ${count(tuned)} tuned job${tuned === 1 ? "" : "s"}.`;
  $("#candidates-note").textContent = usual === null ? known : `${known} ${guess}`;
  const row = (one) =>
    h(
      "tr",
      {},
      h("td", { class: "name" }, h("b", {}, one.program), h("small", {}, one.user)),
      h("td", { class: "number" }, count(one.jobs)),
      h("td", { class: "number" }, one.ended === 0 ? "not known" : hours(one.elapsed_s)),
      h("td", { class: "number" }, one.ended === 0 ? "–" : hours(one.saving_s)),
      h("td", {}, h("time", { title: moment(one.last_at) }, ago(one.last_at))),
      h("td", { class: "right" }, mayLaunch && h("a", { class: "button", href: "/new" }, "Tune it")),
    );
  const headings = ["Program", numeric("Jobs"), numeric("Time"), numeric("Could save"), "Last", ""];
  fill($("#candidates"), table(headings, items.map(row)));
}

function showWithdrawn(records) {
  $("#withdrawn-card").hidden = records.length === 0;
  const row = (one) =>
    h(
      "tr",
      {},
      h("td", { class: "name" }, h("b", {}, one.program), h("small", {}, [one.user, one.component].filter(Boolean).join(" · "))),
      h("td", {}, one.withdrawn),
      h("td", {}, one.experiment_id === null ? "–" : h("a", { href: `/experiments/${one.experiment_id}` }, `Experiment ${one.experiment_id}`)),
      h("td", { class: "right" }, one.may_change && one.experiment_id !== null ? restore(one) : null),
    );
  fill($("#withdrawn"), table(["Job", "Reason", "Found by", ""], records.map(row)));
}

function restore(one) {
  return actionButton("play", "Use again", async () => {
    await post(`/job-records/${one.id}/restore`);
    document.activeElement?.blur();
    await look();
  });
}

attempt(look);
setInterval(() => document.hidden || look().catch(() => {}), LOOK_EVERY_MS);
