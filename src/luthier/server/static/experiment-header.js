// The header of an experiment page: name, status, and buttons.

import { patch, post, remove } from "./api.js";
import { $, fill, h, icon, mayLaunch } from "./dom.js";
import { ago, count, moment, statusClass } from "./format.js";
import { actionButton, confirmDialog, showMessage } from "./messages.js";

const ENDED = ["finished", "no result"]; // these can only be continued with more runs
const NAMES = { csv: "CSV", json: "JSON", parquet: "Parquet" };
const formats = $("#experiment").dataset.formats.split(" "); // those that work on the server

/** Whether the experiment is running or waiting for a worker. */
export function isActive(detail) {
  return detail.status === "running" || detail.status === "queued";
}

/** Show name, status and buttons; `reload` is called after each action. */
export function showHeader(element, detail, reload) {
  fill(
    element,
    h(
      "div",
      { class: "grow" },
      h(
        "h1",
        {},
        detail.name,
        " ",
        h("span", { class: `badge ${statusClass(detail.status)}`, style: "vertical-align: middle" }, statusText(detail)),
      ),
      h(
        "p",
        { class: "small" },
        `${detail.author || "command line"} · created `,
        h("time", { title: moment(detail.created_at) }, ago(detail.created_at)),
        detail.shared ? " · shared with all users" : "",
      ),
    ),
    h("div", { class: "actions" }, buttons(detail, reload)),
  );
}

function statusText(detail) {
  if (detail.status !== "running") return detail.status;
  return detail.stop_requested ? "stopping" : detail.verify_requested ? "running: search stopped" : "running";
}

/** Whether the search can be ended so that its best configuration is verified. */
function canVerify({ status, stop_requested: stopping, verify_requested: asked, settings }) {
  const isPossible = settings.objectives.length === 1 && settings.verify_pairs !== 0;
  return status === "running" && !stopping && !asked && isPossible;
}

/** Whether it compares what another experiment found: runs are added to that one. */
function isComparison({ result }) {
  return result.steps?.at(-1)?.name === "comparison";
}

function buttons(detail, reload) {
  const path = `/experiments/${detail.id}`;
  const mine = detail.may_change;
  const on = isActive(detail);
  const then = (act) => () => act(path, detail).then(reload);
  return [
    mine && canVerify(detail) && actionButton("check", "Stop and verify", then(verify)),
    mine && on && !detail.stop_requested && actionButton("stop", "Stop", then(stop)),
    mine && on && detail.stop_requested && actionButton("stop", "Stop now", then(kill), "danger"),
    mine && !on && !ENDED.includes(detail.status) && actionButton("play", "Resume", then(resume), "primary"),
    mine && !on && detail.has_script && !isComparison(detail) && moreRunsButton(path, detail, reload),
    mayLaunch && cloneButton(detail),
    h(
      "details",
      { class: "menu" },
      h("summary", { class: "button" }, icon("download"), "Export", icon("down")),
      h(
        "div",
        {},
        formats.map((format) =>
          h("a", { href: `/api/v1${path}/export?format=${format}`, download: "" }, `Runs as ${NAMES[format]}`),
        ),
        h("a", { href: `/api/v1${path}/report`, download: "" }, "Report as HTML"),
      ),
    ),
    mine && actionButton(detail.shared ? "lock" : "share", detail.shared ? "Unshare" : "Share", then(share)),
    mine && actionButton("trash", "Delete", () => deleteExperiment(path, detail, on), "danger"),
  ];
}

/** What was tuned by a Python function has no form: only its program can run it. */
function cloneButton(detail) {
  return detail.has_script && h("a", { class: "button", href: `/new?clone=${detail.id}` }, icon("clone"), "Clone");
}

async function verify(path) {
  await post(`${path}/stop?verify=true`);
  showMessage("The search ends when the active runs have ended; then the best configuration so far is verified.");
}

async function stop(path) {
  await post(`${path}/stop`);
  showMessage("Stopping: active runs finish, no new runs start.");
}

async function kill(path) {
  await post(`${path}/stop?now=true`);
  showMessage("Stopping now: active runs are killed.");
}

/** A menu that continues the search with more runs; after it, the best configuration is verified again. */
function moreRunsButton(path, detail, reload) {
  const runs = h("input", { type: "number", min: "1", max: "999999", step: "1", value: "30", "aria-label": "More runs" });
  const go = actionButton("play", "Continue", async () => {
    if (!runs.reportValidity()) return;
    await post(`${path}/resume?budget=${encodeURIComponent(`+${runs.value}`)}`);
    showMessage("The search continues as soon as a worker is free.");
    await reload();
  });
  return h(
    "details",
    { class: "menu" },
    h("summary", { class: "button" }, icon("play"), "More runs", icon("down")),
    h(
      "div",
      { class: "more-runs" },
      h("p", {}, "Continue the search. It knows what was measured; its best configuration is verified again."),
      h("label", {}, runs, " more runs"),
      go,
    ),
  );
}

async function resume(path) {
  await post(`${path}/resume`);
  showMessage("It continues as soon as a worker is free.");
}

async function share(path, detail) {
  await patch(path, { shared: !detail.shared });
}

async function deleteExperiment(path, detail, on) {
  const sure = await confirmDialog(
    `Delete ${detail.name}?`,
    (on ? "It is still running. It will be stopped first, and its active runs will be killed. " : "") +
      `Experiment ${detail.id} and its ${count(detail.runs)} runs will be deleted permanently.`,
    "Delete",
  );
  if (!sure) return;
  await remove(on ? `${path}?stop=true` : path);
  location.assign("/");
}
