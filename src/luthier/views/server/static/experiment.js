// One experiment: what it found, how it goes on, and everything about it.

import { get, patch, post, remove } from "./api.js";
import { $, codeBlock, copyButton, fill, h, icon, throttled } from "./dom.js";
import { ago, config, count, duration, estimate, gain, measured, moment, number, percent, value } from "./format.js";
import { follow } from "./live.js";
import { Plot } from "./plot.js";
import { ask, attempt, line, say } from "./say.js";
import { trialsTable } from "./trials.js";

const root = $("#experiment");
const id = Number(root.dataset.id);
const path = `/experiments/${id}`;
const TABS = { overview: "Overview", insight: "Insight", trials: "Trials", setup: "Setup" };
const COURSE = ["trajectory", "trials", "gain"];
const GOING_ON = ["running", "queued"];

let detail = null;
let figures = [];
let lastEvent = 0;
const plots = new Map();
const latest = new Map();

const head = h("div", { class: "head" });
const verdict = h("div", { class: "card" });
const use = h("div", { class: "card" });
const status = h("p", { class: "visually-hidden", role: "status", "aria-live": "polite" });
const waiting = h(
  "section",
  { class: "card wide empty" },
  h("h2", {}, "Nothing has run yet"),
  h("p", {}, "It begins as soon as a worker is free. The server has one of its own unless it was started without; more of them, also on other machines, come with:"),
  h("div", { class: "code-block" }, h("pre", { tabindex: "0" }, "luthier worker")),
);
const ticker = h("tbody", { class: "ticker" });
const panels = Object.fromEntries(
  Object.keys(TABS).map((name) => [name, h("div", { role: "tabpanel", id: `panel-${name}`, "aria-labelledby": `tab-${name}`, class: "cards" })]),
);
const tabs = h("div", { class: "tabs", role: "tablist", "aria-label": "Parts of the experiment" });

/** Draw a part anew only if what it shows has changed: whoever is about to press a button keeps it, and the focus. */
const drawn = new Map();
function draw(part, state, show) {
  const key = JSON.stringify(state);
  if (drawn.get(part) === key) return;
  drawn.set(part, key);
  show();
}

function showAll() {
  const { name, status: now, stop_requested: stopping, shared, may_change: mine, result } = detail;
  draw(head, [name, now, stopping, shared, mine], showHead);
  draw(verdict, [facts(), result.verdict, result.best, detail.trouble], showVerdict);
  draw(use, [now, result.recommended, result.improved, result.command], showUse);
  showWaiting();
}

/* ---- head ---- */

function showHead() {
  document.title = `${detail.name} · luthier`;
  fill(
    head,
    h(
      "div",
      { class: "grow" },
      h("h1", {}, detail.name, " ", h("span", { class: `badge ${detail.status}`, style: "vertical-align: middle" }, statusText())),
      h(
        "p",
        { class: "small" },
        `${detail.author || "command line"} · begun `,
        h("time", { title: moment(detail.created_at) }, ago(detail.created_at)),
        detail.shared ? " · shared with everybody" : "",
      ),
    ),
    h("div", { class: "actions" }, buttons()),
  );
}

function statusText() {
  return detail.stop_requested && detail.status === "running" ? "stopping" : detail.status;
}

function buttons() {
  const mine = detail.may_change;
  const on = GOING_ON.includes(detail.status);
  return [
    mine && on && !detail.stop_requested && button("stop", "Stop", stop),
    mine && !on && detail.status !== "finished" && button("play", "Resume", resume, "primary"),
    detail.has_source ? h("a", { class: "button", href: `/new?clone=${id}` }, icon("clone"), "Clone") : button("clone", "Clone", clone),
    h(
      "details",
      { class: "menu" },
      h("summary", { class: "button" }, icon("download"), "Export", icon("down")),
      h(
        "div",
        {},
        ["csv", "json", "parquet"].map((format) => h("a", { href: `/api/v1${path}/export?format=${format}`, download: "" }, `Runs as ${format.toUpperCase()}`)),
        h("a", { href: `/api/v1${path}/report`, download: "" }, "Report as HTML"),
      ),
    ),
    mine && button(detail.shared ? "lock" : "share", detail.shared ? "Unshare" : "Share", share),
    mine && !on && button("trash", "Delete", erase, "danger"),
  ];
}

function button(sign, text, act, kind = "") {
  const made = h("button", { type: "button", class: kind }, icon(sign), text);
  made.addEventListener("click", async () => {
    made.disabled = true;
    await attempt(act);
    made.disabled = false;
  });
  return made;
}

async function stop() {
  await post(`${path}/stop`);
  say("It will stop: what is running finishes, nothing new begins.");
  await reload();
}

async function resume() {
  await post(`${path}/resume`);
  say("It goes on as soon as a worker is free.");
  await reload();
}

async function clone() {
  const copy = await post(`${path}/clone`);
  location.assign(`/experiments/${copy.id}`);
}

async function share() {
  await patch(path, { shared: !detail.shared });
  await reload();
}

async function erase() {
  const sure = await ask(`Delete ${detail.name}?`, `Experiment ${id} and its ${count(detail.runs)} runs are forgotten for good.`, "Delete");
  if (!sure) return;
  await remove(path);
  location.assign("/");
}

/* ---- verdict, figures in short, what to use ---- */

function showVerdict() {
  const result = detail.result;
  const found = gain({ ...result.speedup, speedup: result.speedup?.value, improved: result.improved });
  const trouble = detail.trouble ?? [];
  fill(
    verdict,
    h(
      "div",
      { class: "verdict" },
      h("div", {}, headline(result, found)),
      h("div", { class: "stack" }, h("div", {}, h("p", { class: "sentence" }, result.verdict), beforeAndAfter()), trouble.map((text) => h("p", { class: "small muted" }, text))),
    ),
    h("dl", { class: "facts" }, facts().map(([name, text, under]) => h("div", {}, h("dt", {}, name), h("dd", {}, text, under ? h("small", {}, ` ${under}`) : "")))),
  );
}

function headline(result, found) {
  const lines = (kind, big, under) => [h("div", { class: `big ${kind}` }, big), h("div", { class: "muted" }, under)];
  if (found) return lines(result.improved ? "yes" : "", found.text, found.interval ? `${found.interval}, 95 % sure` : "not proven");
  if (objectives().length > 1 && result.front.length) return lines("yes", count(result.front.length), "on the Pareto front");
  const [first, best] = [result.default?.estimate?.value, result.best?.estimate?.value];
  if (!(first > 0 && best > 0)) return lines("guess", "–", "gain over the default");
  const ratio = objectives()[0].goal === "maximize" ? best / first : first / best;
  return lines("guess", `${number(ratio, 3)}×`, "by estimates, not verified");
}

function beforeAndAfter() {
  const { default: first, best } = detail.result;
  if (!first?.estimate || !best?.estimate || objectives().length > 1) return null;
  const { measure } = objectives()[0];
  return h("p", { class: "muted" }, `${measure}: ${estimate(first.estimate, measure)} by default, ${estimate(best.estimate, measure)} with the best`);
}

function facts() {
  const noise = detail.result.noise;
  const measure = objectives()[0].measure;
  const spread = noise && (noise.relative ? percent(noise.deviation) : measured(noise.deviation, measure));
  return [
    ["Runs", count(detail.runs), `of ${count(detail.budget)}`],
    ["Run time", duration(detail.cost_s), ""],
    ["Explored", detail.explored === null ? "–" : percent(detail.explored, 3), detail.size === null ? "continuous" : `of ${count(detail.size)}`],
    ["Noise", spread || "–", spread ? "run to run" : "nothing ran twice"],
    ["Workers busy", detail.utilisation === null ? "–" : percent(Math.min(1, detail.utilisation), 3), `${detail.settings.workers} at a time`],
  ];
}

function objectives() {
  return detail.settings.objectives;
}

function showUse() {
  const { recommended, default: first, improved, command } = detail.result;
  const isOther = improved || objectives().length > 1;
  use.hidden = !recommended || (!isOther && GOING_ON.includes(detail.status));
  if (use.hidden) return;
  const title = isOther ? "Configuration to use" : "Stay with the default";
  const why = detail.status === "finished" ? "Nothing is proven to be better." : "Nothing is proven to be better yet; the best one is verified at the end.";
  fill(
    use,
    h("header", {}, h("h2", {}, title), h("p", {}, isOther ? "Changes against the default are marked." : why)),
    h(
      "div",
      { class: "body stack" },
      h("div", { class: "chips" }, Object.entries(recommended).map(([name, one]) => chip(name, one, first?.config[name]))),
      command ? codeBlock(command) : h("div", {}, copyButton(() => config(recommended))),
    ),
  );
}

function chip(name, one, before) {
  const changed = before !== undefined && before !== one;
  return h("span", { class: changed ? "chip changed" : "chip" }, `${name}=`, changed ? h("s", {}, value(before)) : "", changed ? " " : "", h("b", {}, value(one)));
}

/* ---- parts ---- */

function card(title, explanation, body, kind = "") {
  return h("section", { class: `card ${kind}` }, h("header", {}, h("h2", {}, title), explanation ? h("p", {}, explanation) : null), h("div", { class: "body" }, body));
}

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
    h("div", { class: "scroll" }, h("table", {}, h("thead", {}, h("tr", {}, h("th", {}, "Run"), h("th", { class: "number" }, "Value"), h("th", {}, "Configuration"), h("th", { class: "number" }, "Took"))), ticker)),
    "wide",
  );
  panels.overview.classList.add("two");
  fill(panels.overview, waiting, plotCard("trajectory", "wide"), plotCard("trials"), plotCard(objectives().length > 1 ? "front" : "gain"), runs);
}

/** Until there is a run there is nothing but a word about what it waits for. */
function showWaiting() {
  const begun = detail.runs > 0;
  for (const part of panels.overview.children) part.hidden = (part === waiting) === begun;
}

function showInsight() {
  const shown = figures.map((one) => one.name).filter((name) => !COURSE.includes(name) && detail.figures.includes(name));
  const missing = shown.filter((name) => !plots.has(name));
  const first = !panels.insight.hasChildNodes();
  if (!first && missing.length === 0) return;
  const wide = ["parallel", "dependence", "scatter", "front"];
  const kept = shown.map((name) => (plots.has(name) ? plots.get(name).element.closest(".card") : plotCard(name, wide.includes(name) ? "wide" : "")));
  panels.insight.classList.add("two");
  fill(panels.insight, kept.filter((one) => !panels.overview.contains(one)), shown.length === 0 ? h("div", { class: "card wide empty" }, h("h2", {}, "Nothing to see yet"), h("p", {}, "After some runs, this is where you see which parameters matter, and how.")) : null);
}

function showSetup() {
  const { settings } = detail;
  const script = h("div", {}, "Loading…");
  const source = h("div", {}, "Loading…");
  fill(
    panels.setup,
    h(
      "div",
      { class: "cards two" },
      card("What is measured", "", pairs(objectives().map((one) => [one.measure, one.goal === "maximize" ? "higher is better" : "lower is better"]))),
      card("Search", "", pairs([["Optimizer", settings.optimizer], ...Object.entries(settings.options ?? {}), ["Budget", `${count(detail.budget)} runs`], ["Workers", settings.workers], ["Seed", settings.seed], ["Verification", settings.verify === null ? "as needed" : `${settings.verify} pairs at most`]])),
      card("Noise", "", pairs([["Runs of a configuration", settings.resample], ["Estimator", settings.estimator === detail.result.estimator ? settings.estimator : `${settings.estimator} (${detail.result.estimator})`], ["Default again after", settings.sentinels ? `${settings.sentinels} runs` : "never"]])),
      card("Pruning and stopping", "", pairs([["Pruning", settings.prune ?? "none"], ["Stopping", settings.stop?.join(", ") || "when the budget is used up"], ["Time limit", settings.time_limit_s === null ? "none" : duration(settings.time_limit_s)], ["Timeout of a run", settings.timeout_s === null ? "none" : duration(settings.timeout_s)]])),
    ),
    card("Space", detail.size === null ? "Continuous." : `${count(detail.size)} configurations.`, space()),
    card("Script", "What runs for the configuration to use.", script),
    card("Source", "", source),
  );
  attempt(async () => {
    const found = await get(`${path}/script`);
    fill(script, codeBlock(found.script ?? found.command ?? ""));
  });
  attempt(async () => {
    const { yaml } = await get(`${path}/source`);
    fill(source, yaml ? codeBlock(yaml) : h("p", { class: "muted" }, "It was not described by a file."));
  });
}

function space() {
  return h(
    "div",
    { class: "scroll" },
    h(
      "table",
      {},
      h("thead", {}, h("tr", {}, h("th", {}, "Parameter"), h("th", {}, "Values"), h("th", {}, "Default"))),
      h("tbody", {}, detail.parameters.map((one) => h("tr", {}, h("td", { class: "mono" }, one.name), h("td", {}, valuesText(one)), h("td", { class: "mono" }, value(one.default))))),
    ),
    detail.constraints.length ? h("p", { class: "small muted" }, `Only where ${detail.constraints.join(" and ")}.`) : null,
  );
}

function valuesText(one) {
  if (one.kind === "choice") return one.values.map(value).join(", ");
  const unit = one.unit ?? "";
  const step = one.step === null || (one.step === 1 && one.scale === "linear") ? "" : `, ${one.scale === "log" ? "×" : "step "}${one.step}`;
  return `${one.low}${unit} to ${one.high}${unit}${step}`;
}

function pairs(entries) {
  return h("dl", { class: "pairs" }, entries.map(([name, text]) => [h("dt", {}, name), h("dd", {}, String(text))]));
}

/* ---- tabs ---- */

function makeTabs() {
  for (const [name, title] of Object.entries(TABS)) {
    tabs.append(h("button", { type: "button", role: "tab", id: `tab-${name}`, "aria-controls": `panel-${name}`, onclick: () => choose(name) }, title));
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
  if (name === "setup" && !panels.setup.hasChildNodes()) showSetup();
}

/* ---- live ---- */

async function reload() {
  const before = detail?.status;
  detail = await get(path);
  if (before !== undefined && before !== detail.status) status.textContent = `The experiment is ${detail.status}.`;
  showAll();
  showInsight();
}

const soonReload = throttled(() => attempt(reload), 1500);
const soonCourse = throttled(() => plots.get("trajectory")?.refresh(), 700);
const soonFigures = throttled(() => {
  for (const [name, plot] of plots) if (name !== "trajectory" && !isSlow(name)) plot.refresh();
  trials?.refresh();
}, 2000);
const soonModels = throttled(() => {
  for (const [name, plot] of plots) if (isSlow(name)) plot.refresh();
}, 15000);

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
  showTicker();
  if (detail.runs !== before) showAll();
  soonCourse();
  soonFigures();
  soonModels();
  soonReload();
}

function showTicker() {
  const shown = [...latest.keys()].sort((one, other) => other - one);
  for (const old of shown.splice(8)) latest.delete(old);
  fill(
    ticker,
    shown.map((key) => {
      const run = latest.get(key);
      return h(
        "tr",
        { class: GOING_ON.includes(detail.status) && key === shown[0] ? "fresh" : "" },
        h("td", { class: "nowrap" }, count(run.run)),
        h("td", { class: `number outcome ${run.outcome}` }, run.outcome === "completed" ? measured(run.value, objectives()[0].measure) : run.outcome),
        h("td", { class: "mono ellipsis", title: config(run.config) }, config(run.config)),
        h("td", { class: "number" }, duration(run.duration_s)),
      );
    }),
  );
}

async function begin() {
  [detail, figures] = await Promise.all([get(path), get("/figures")]);
  root.replaceChildren(head, h("div", { class: "cards" }, verdict, use), tabs, ...Object.values(panels), status);
  makeTabs();
  showOverview();
  showAll();
  showInsight();
  choose(current());
  root.removeAttribute("aria-busy");
  const page = await get(`${path}/runs?after=${Math.max(0, detail.runs - 9)}&limit=20`);
  for (const run of page.items) latest.set(run.run, run);
  showTicker();
  lastEvent = detail.events;
  const end = follow(
    () => `/api/v1${path}/events?since=${lastEvent}`,
    {
      runs,
      status: ({ status: now }) => now !== detail.status && soonReload(),
      gone: () => {
        end();
        fill(root, line("This experiment was deleted.", "note"));
      },
    },
    soonReload,
  );
}

begin().catch((error) => fill(root, line(error.message)));
