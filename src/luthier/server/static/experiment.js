// The page of one experiment: result, progress, analyses, trials and setup.

import { get } from "./api.js";
import { $, card, fill, h, throttled } from "./dom.js";
import { config, count, duration, measured, sentence } from "./format.js";
import { isActive, showHeader } from "./experiment-header.js";
import { jobText, queueText } from "./jobs.js";
import { follow } from "./live.js";
import { Plot } from "./plot.js";
import { attempt, statusLine } from "./messages.js";
import { showSetup } from "./setup.js";
import { trialsTable } from "./trials.js";
import { factsOf, showExplanation, showFailures, showUse, showVerdict } from "./result-summary.js";

const root = $("#experiment");
const path = `/experiments/${root.dataset.id}`;
const TABS = { overview: "Overview", insight: "Analysis", trials: "Trials", setup: "Setup" };
const OVERVIEW_FIGURES = ["trajectory", "trials", "gain"];
const SHOWN_RUNS = 8;
const QUEUE_SHOWN_EVERY_MS = 5000;
const RELOAD_EVERY_MS = 5000;

let detail = null;
let figures = [];
let lastEvent = 0;
const plots = new Map();
const latest = new Map();

const head = h("div", { class: "head" });
const verdict = h("div", { class: "card" });
const use = h("div", { class: "card" });
const failures = h("section", { class: "card failures" });
const explanation = h("section", { class: "card explanation" });
const status = h("p", { class: "visually-hidden", role: "status", "aria-live": "polite" });
const waiting = h("section", { class: "card wide empty" });
const latestRows = h("tbody", { class: "latest-runs" });
const queue = h("p", { class: "muted queue", hidden: true });
const panels = Object.fromEntries(
  Object.keys(TABS).map((name) => [
    name,
    h("div", { role: "tabpanel", id: `panel-${name}`, "aria-labelledby": `tab-${name}`, class: "cards" }),
  ]),
);
const tabs = h("div", { class: "tabs", role: "tablist", "aria-label": "Parts of the experiment" });

/** Redraw a part only if its contents have changed, so that buttons keep the focus. */
const drawn = new Map();
function draw(part, state, show) {
  const key = JSON.stringify(state);
  if (drawn.get(part) === key) return;
  drawn.set(part, key);
  show();
}

function showAll() {
  const { name, status: now, stop_requested: stopping, verify_requested: verifying, shared, may_change: mine, result } =
    detail;
  document.title = `${name} · luthier`;
  draw(head, [name, now, stopping, verifying, shared, mine], () => showHeader(head, detail, reload));
  draw(verdict, [factsOf(detail), now, result.facts, result.best], () =>
    showVerdict(verdict, detail),
  );
  draw(use, [now, result.recommended, result.improved, result.command], () => showUse(use, detail));
  draw(failures, [detail.failures, detail.failing_output, result.best === null], () => showFailures(failures, detail));
  draw(explanation, detail.explanation, () => showExplanation(explanation, detail));
  showWaiting();
}

/* ---- parts ---- */

function plotCard(name, kind) {
  const { title, explanation } = figures.find((one) => one.name === name) ?? { title: name, explanation: "" };
  const plot = new Plot(`${path}/figures/${name}`, { title });
  plots.set(name, plot);
  return card(title, explanation, plot.box, kind);
}

function showOverview() {
  const runs = card(
    "Latest runs",
    "",
    h(
      "div",
      { class: "scroll" },
      h(
        "table",
        {},
        h(
          "thead",
          {},
          h(
            "tr",
            {},
            h("th", {}, "Run"),
            h("th", { class: "number" }, "Value"),
            h("th", {}, "Configuration"),
            h("th", { class: "number" }, "Duration"),
            h("th", {}, "Job"),
          ),
        ),
        latestRows,
      ),
    ),
    "wide",
  );
  runs.querySelector("header").append(queue);
  panels.overview.classList.add("two");
  fill(
    panels.overview,
    waiting,
    plotCard("trajectory", "wide"),
    plotCard("trials"),
    plotCard(detail.settings.objectives.length > 1 ? "front" : "gain"),
    runs,
  );
}

/** Until the first run, show only what the experiment waits for; without a result, no empty figures. */
function showWaiting() {
  const begun = detail.runs > 0;
  draw(waiting, [begun, detail.waiting], () => {
    fill(
      waiting,
      h("h2", {}, detail.waiting ? "Waiting in the queue" : "No runs yet"),
      h("p", {}, detail.waiting ? sentence(detail.waiting.sentence) : "The first run starts in a moment."),
    );
  });
  for (const part of panels.overview.children)
    part.hidden = (part === waiting ? begun && !detail.waiting : !begun) || (detail.status === "no result" && part.querySelector(".plot") !== null);
}

function showInsight() {
  const shown = figures
    .map((one) => one.name)
    .filter((name) => !OVERVIEW_FIGURES.includes(name) && detail.figures.includes(name));
  const missing = shown.filter((name) => !plots.has(name));
  const first = !panels.insight.hasChildNodes();
  if (!first && missing.length === 0) return;
  const wide = ["parallel", "dependence", "scatter", "front"];
  const kept = shown.map((name) =>
    plots.has(name) ? plots.get(name).element.closest(".card") : plotCard(name, wide.includes(name) ? "wide" : ""),
  );
  panels.insight.classList.add("two");
  fill(
    panels.insight,
    kept.filter((one) => !panels.overview.contains(one)),
    shown.length === 0
      ? h(
          "div",
          { class: "card wide empty" },
          h("h2", {}, "No analysis yet"),
          h("p", {}, "After some runs, this page shows which parameters are important and how they affect the value."),
        )
      : null,
  );
}

/* ---- tabs ---- */

function makeTabs() {
  for (const [name, title] of Object.entries(TABS)) {
    tabs.append(
      h(
        "button",
        {
          type: "button",
          role: "tab",
          id: `tab-${name}`,
          "aria-controls": `panel-${name}`,
          onclick: () => choose(name),
        },
        title,
      ),
    );
  }
  tabs.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const names = Object.keys(TABS);
    const next = names[(names.indexOf(current()) + step + names.length) % names.length];
    choose(next);
    $(`#tab-${next}`).focus();
  });
  addEventListener("hashchange", () => choose(current()));
}

function current() {
  const name = location.hash.slice(1);
  return name in TABS ? name : "overview";
}

let trials = null;

function choose(name) {
  if (current() !== name) history.replaceState(null, "", `#${name}`);
  for (const other of Object.keys(TABS)) {
    const tab = $(`#tab-${other}`);
    tab.setAttribute("aria-selected", other === name);
    tab.tabIndex = other === name ? 0 : -1;
    panels[other].hidden = other !== name;
  }
  if (name === "trials" && trials === null) {
    trials = trialsTable(path, detail);
    fill(panels.trials, trials.element);
  }
  else if (name === "trials") trials.refresh();
  if (name === "setup" && (!panels.setup.hasChildNodes() || $("[data-failed]", panels.setup)))
    showSetup(panels.setup, path, detail);
}

/* ---- live ---- */

async function reload() {
  const before = detail?.status;
  detail = await get(path);
  if (before !== undefined && before !== detail.status) status.textContent = `The experiment is ${detail.status}.`;
  showAll();
  showInsight();
  showLatestRuns();
}

/** A queued experiment sends no events while others are before it, and elapsed time goes on without any. */
setInterval(() => {
  if (detail !== null && isActive(detail) && !document.hidden) reloadSoon();
}, RELOAD_EVERY_MS);

const reloadSoon = throttled(() => attempt(reload), 1500);
const refreshTrajectory = throttled(() => plots.get("trajectory")?.refresh(), 700);
const refreshFigures = throttled(() => {
  for (const [name, plot] of plots) if (name !== "trajectory" && !isSlow(name)) plot.refresh();
  trials?.refresh();
}, 2000);
const refreshSlowFigures = throttled(() => {
  for (const [name, plot] of plots) if (isSlow(name)) plot.refresh();
}, 15000);

/** After a lost connection: fetch again what may have failed or changed in the meantime. */
function returned() {
  reloadSoon();
  for (const plot of plots.values()) plot.refresh();
  choose(current());
}

/** Whether the batch system says of the active runs what is shown. */
function sameJobs(jobs) {
  const words = (list) => JSON.stringify(list.map(({ run, number, state, reason }) => [run, number, state, reason]));
  return words(jobs) === words(detail.jobs);
}

function isSlow(name) {
  return figures.find((one) => one.name === name)?.slow ?? false;
}

function runs(list, event) {
  lastEvent = Number(event) || lastEvent;
  const before = detail.runs;
  for (const run of list) {
    latest.set(run.run, run);
    detail.runs = Math.max(detail.runs, run.run + 1);
  }
  showLatestRuns();
  if (detail.runs !== before) showAll();
  refreshTrajectory();
  refreshFigures();
  refreshSlowFigures();
  reloadSoon();
}

function showLatestRuns() {
  const jobs = new Map(detail.jobs.map((job) => [job.run, job]));
  queue.textContent = queueText(detail.jobs);
  queue.hidden = queue.textContent === "";
  const shown = [...latest.keys()].sort((one, other) => other - one);
  for (const old of shown.splice(SHOWN_RUNS)) latest.delete(old);
  fill(
    latestRows,
    shown.map((key) => {
      const run = latest.get(key);
      return h(
        "tr",
        { class: isActive(detail) && key === shown[0] ? "fresh" : "" },
        h("td", { class: "nowrap" }, count(run.run)),
        h(
          "td",
          { class: `number outcome ${run.outcome}` },
          run.outcome === "completed" ? measured(run.value, detail.settings.objectives[0].measure) : run.outcome,
        ),
        h("td", { class: "mono ellipsis", title: config(run.config) }, config(run.config)),
        h("td", { class: "number" }, duration(run.duration_s)),
        h("td", {}, run.outcome === "running" && jobs.has(key) ? jobText(jobs.get(key)) : (run.batch_job ?? "")),
      );
    }),
  );
}

async function begin() {
  [detail, figures] = await Promise.all([get(path), get("/figures")]);
  root.replaceChildren(head, h("div", { class: "cards" }, verdict, use, failures, explanation), tabs, ...Object.values(panels), status);
  makeTabs();
  showOverview();
  showAll();
  showInsight();
  choose(current());
  root.removeAttribute("aria-busy");
  const older = detail.runs > SHOWN_RUNS ? `after=${detail.runs - SHOWN_RUNS - 1}&` : "";
  const page = await attempt(() => get(`${path}/runs?${older}limit=50`));
  for (const run of page?.items ?? []) latest.set(run.run, run);
  showLatestRuns();
  setInterval(() => detail.jobs.length > 0 && showLatestRuns(), QUEUE_SHOWN_EVERY_MS);
  lastEvent = detail.events;
  const end = follow(
    () => `/api/v1${path}/events?since=${lastEvent}`,
    {
      runs,
      status: (now) => {
        const changed = ["status", "stop_requested", "verify_requested"].some((name) => now[name] !== detail[name]);
        if (changed || !sameJobs(now.jobs)) reloadSoon();
      },
      gone: () => {
        end();
        fill(root, statusLine("This experiment was deleted.", "note"));
      },
    },
    returned,
  );
}

function tryToBegin() {
  begin().catch((error) => {
    fill(root, statusLine(error.message));
    if (error.status === 0 || error.status >= 500) setTimeout(tryToBegin, 3000);
  });
}

tryToBegin();
