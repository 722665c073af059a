// The table of trials, sorted and paged by the server; a click shows the runs of a trial, their logs and the script.

import { get, request } from "./api.js";
import { codeBlock, dataTable, fill, h, icon } from "./dom.js";
import { config, count, duration, estimate, measured, number, value } from "./format.js";
import { attempt, statusLine } from "./messages.js";

const PAGE = 25;

export function trialsTable(path, detail) {
  const names = detail.parameters.map((one) => one.name);
  const measures = detail.settings.objectives.map((one) => one.measure);
  const body = h("tbody");
  const headings = h("tr");
  const pager = h("div", { class: "pager" });
  const state = { sort: "estimate", pages: [null], next: null };
  let opened = null;

  async function load() {
    const query = new URLSearchParams({ sort: state.sort, limit: PAGE });
    const after = state.pages.at(-1);
    if (after !== null) query.set("after", after);
    const page = await get(`${path}/trials?${query}`);
    state.next = page.next;
    show(page.items);
  }

  function show(items) {
    fill(
      headings,
      sortable("number", "Trial"),
      h("th", { class: "number" }, "Runs"),
      measures.map((one, at) => (at === 0 ? sortable("estimate", one) : h("th", { class: "number" }, one))),
      h("th", { class: "number" }, "Noise"),
      names.map((name) => h("th", { class: "number" }, name)),
    );
    fill(
      body,
      items.length
        ? items.map((trial) => row(trial))
        : h("tr", {}, h("td", { colspan: 9, class: "muted" }, "No run has ended yet.")),
    );
    const first = (state.pages.length - 1) * PAGE;
    fill(
      pager,
      h("span", { class: "grow" }, items.length ? `${count(first + 1)} to ${count(first + items.length)}` : ""),
      turn("Previous", state.pages.length === 1, () => state.pages.pop()),
      turn("Next", state.next === null, () => state.pages.push(state.next)),
    );
  }

  function sortable(by, title) {
    const active = state.sort === by;
    const act = () => {
      state.sort = by;
      state.pages = [null];
      attempt(load);
    };
    return h(
      "th",
      { class: by === "estimate" ? "number" : "", "aria-sort": active ? "ascending" : null },
      h("button", { type: "button", onclick: act }, title, active ? icon("up") : ""),
    );
  }

  function turn(text, off, act) {
    const go = () => {
      act();
      opened = null;
      attempt(load);
    };
    return h("button", { type: "button", class: "tiny", disabled: off, onclick: go }, text);
  }

  function row(trial) {
    const guesses = [trial.estimate, ...(trial.others ?? [])];
    const inside = h("tr", { class: "inside", hidden: true }, h("td", { colspan: 4 + measures.length + names.length }));
    const toggle = h(
      "button",
      { type: "button", class: "quiet tiny", "aria-expanded": "false", "aria-label": `Runs of trial ${trial.number}` },
      String(trial.number),
      icon("down"),
    );
    const spread =
      trial.estimate?.deviation && trial.estimate.value
        ? `${number((100 * trial.estimate.deviation) / Math.abs(trial.estimate.value), 2)} %`
        : "";
    const own = h(
      "tr",
      { class: "link" },
      h("td", {}, toggle, trial.number === 0 ? h("span", { class: "badge plain" }, "default") : ""),
      h("td", { class: "number" }, count(trial.runs)),
      measures.map((measure, at) => h("td", { class: "number" }, estimate(guesses[at], measure))),
      h("td", { class: "number" }, spread),
      names.map((name) => h("td", { class: "number mono" }, value(trial.config[name]))),
    );
    const open = (yes) => {
      inside.hidden = !yes;
      own.classList.toggle("opened", yes);
      toggle.setAttribute("aria-expanded", yes);
      opened = yes ? trial.number : opened === trial.number ? null : opened;
      if (yes) attempt(() => showRuns(inside.firstChild, trial));
    };
    own.addEventListener("click", () => String(getSelection()) === "" && open(inside.hidden));
    if (opened === trial.number) open(true);
    return [own, inside];
  }

  async function showRuns(cell, trial) {
    const page = await get(`${path}/runs?trial=${trial.number}&limit=100`);
    const below = h("div");
    const scripts = h(
      "button",
      { type: "button", class: "tiny", onclick: () => attempt(() => showScript(below, trial)) },
      "Script of this configuration",
    );
    fill(
      cell,
      dataTable(
        ["Run", "Purpose", "Outcome", h("th", { class: "number" }, "Duration"), "Job", "Output"],
        page.items.map((run) => runRow(run, below)),
      ),
      detail.has_script ? h("div", { class: "actions", style: "margin: 0.8rem 0" }, scripts) : null,
      below,
    );
  }

  function runRow(run, below) {
    const said =
      run.outcome === "completed"
        ? [run.value, ...run.others].map((one, at) => measured(one, measures[at])).join(", ")
        : `${run.outcome}${run.reason ? `: ${run.reason}` : ""}`;
    const logs = ["stdout", "stderr"].map((stream) =>
      h(
        "button",
        { type: "button", class: "quiet tiny", onclick: () => attempt(() => showLog(below, run, stream)) },
        stream,
      ),
    );
    return h(
      "tr",
      {},
      h("td", {}, String(run.run)),
      h("td", {}, run.purpose),
      h("td", { class: `outcome ${run.outcome}`, style: "white-space: normal" }, said),
      h("td", { class: "number" }, duration(run.duration_s)),
      h("td", {}, run.batch_job ?? ""),
      h("td", {}, run.has_log ? logs : h("span", { class: "muted" }, "not kept")),
    );
  }

  async function showLog(below, run, stream) {
    const answer = await request("GET", `${path}/runs/${run.run}/log?stream=${stream}`, undefined, {
      headers: { Accept: "text/plain" },
    });
    const text = await answer.text();
    fill(
      below,
      h("p", { class: "label" }, `${stream} of run ${run.run}`),
      text ? codeBlock(text, "log") : statusLine("No output.", "calm"),
    );
  }

  async function showScript(below, trial) {
    const query = new URLSearchParams(Object.entries(trial.config).map(([name, one]) => [`p.${name}`, value(one)]));
    const found = await get(`${path}/script?${query}`);
    fill(below, h("p", { class: "label" }, config(trial.config)), codeBlock(found.script));
  }

  attempt(load);
  const element = h(
    "div",
    { class: "card" },
    h("div", { class: "scroll" }, h("table", { class: "trials" }, h("thead", {}, headings), body)),
    pager,
  );
  return { element, refresh: () => opened === null && element.offsetParent !== null && attempt(load) };
}
