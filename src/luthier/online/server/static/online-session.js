// The page of one on-line session: result so far, steps, clients, best configurations and settings.

import { get, patch, post, remove } from "./api.js";
import { chip } from "./chips.js";
import { $, card, dataTable, fill, h, throttled } from "./dom.js";
import { ago, config, count, duration, moment, number, value } from "./format.js";
import { follow } from "./live.js";
import { actionButton, attempt, confirmDialog, showMessage, statusLine } from "./messages.js";
import { gainText, phaseBadge, savedText } from "./online-format.js";
import { Plot } from "./plot.js";
import { pairs, space } from "./setup.js";

const root = $("#session");
const path = `/online/${root.dataset.id}`;
const SETTINGS = {
  strategy: "Strategy",
  goal: "Goal",
  samples: "Samples per configuration",
  estimator: "Estimator",
  baseline: "Samples of the default",
  watch: "Search again after a change",
  seed: "Seed",
};
const SENTENCES = {
  baseline: "The clients run the default first, so that it is known what the search saves.",
  searching: "The search goes on: clients measure other configurations.",
  converged: "Converged: clients get the best configuration. If its values change, the search begins again.",
  stopped: "Stopped: clients get the best configuration.",
  "not served": "No service answers its clients now. The session goes on when a client connects to a service again.",
};

let detail = null;
const head = h("div", { class: "head" });
const verdict = h("div", { class: "card" });
const clients = h("div", { class: "scroll" });
const points = h("div", { class: "scroll" });
const changes = h("ul", { class: "small muted" });
const status = h("p", { class: "visually-hidden", role: "status", "aria-live": "polite" });
const plot = new Plot(`${path}/figures/steps`, { title: "Value of each step", empty: "No step has ended yet." });

/* ---- header ---- */

function showHeader() {
  const { name, author, shared, created_at: created, may_change: mine, phase } = detail;
  fill(
    head,
    h(
      "div",
      { class: "grow" },
      h("h1", {}, name, " ", phaseBadge(detail)),
      h(
        "p",
        { class: "small" },
        `${author} · created `,
        h("time", { title: moment(created) }, ago(created)),
        shared ? " · shared with all users" : "",
      ),
    ),
    h(
      "div",
      { class: "actions" },
      mine && phase !== "stopped" && actionButton("stop", "Stop", stop),
      mine && actionButton(shared ? "lock" : "share", shared ? "Unshare" : "Share", share),
      mine && actionButton("trash", "Delete", deleteSession, "danger"),
    ),
  );
}

async function stop() {
  await post(`${path}/stop`);
  showMessage("The search is stopped; clients stay on the best configuration.");
  await reload();
}

async function share() {
  await patch(path, { shared: !detail.shared });
  await reload();
}

async function deleteSession() {
  const sure = await confirmDialog(
    `Delete ${detail.name}?`,
    "The session and all its samples will be deleted permanently. " +
      "Programs that still run begin a new session with this name; to end only the search, stop it instead.",
    "Delete",
  );
  if (!sure) return;
  await remove(path);
  location.assign("/online");
}

/* ---- result ---- */

function showVerdict() {
  const { best, default: first, phase } = detail;
  fill(
    verdict,
    h(
      "div",
      { class: "verdict" },
      h("div", {}, headline()),
      h(
        "div",
        { class: "stack" },
        h("p", { class: "sentence" }, SENTENCES[phase]),
        best === null
          ? null
          : h(
              "div",
              {},
              h("p", { class: "small muted" }, "Best configuration; differences from the default are marked."),
              h(
                "div",
                { class: "chips best" },
                Object.entries(best.config).map(([name, one]) => chip(name, one, first?.config[name])),
              ),
            ),
        changesList(),
      ),
    ),
    h(
      "dl",
      { class: "facts" },
      factsOf().map(([name, text, under]) =>
        h("div", {}, h("dt", {}, name), h("dd", {}, text, under ? h("small", {}, ` ${under}`) : "")),
      ),
    ),
  );
}

function headline() {
  const text = gainText(detail);
  const lines = (kind, big, under) => [h("div", { class: `big ${kind}` }, big), h("div", { class: "muted" }, under)];
  if (text === null) {
    const isUnknown = detail.best_value !== null && detail.default_value === null;
    const since = detail.search > 1 ? " since the change" : "";
    return lines("guess", "–", isUnknown ? `the default was not measured${since}` : "gain over the default");
  }
  return lines(detail.gain > 1 ? "yes" : "guess", text, "as good as the default, estimated");
}

function changesList() {
  fill(
    changes,
    detail.changes
      .slice(-3)
      .map(({ at, step, factor }) =>
        h(
          "li",
          { title: moment(at) },
          `Step ${count(step)}: the values became ${number(factor, 3)} times as large, and the search began again.`,
        ),
      ),
  );
  changes.hidden = detail.changes.length === 0;
  return changes;
}

/** The key figures: name, value, and a remark. */
function factsOf() {
  const { best, default: first, steps, compared_steps: compared, compared_total: total, default_total: whole } = detail;
  const samples = (point) => (point?.samples ? `${count(point.samples)} ${point.samples === 1 ? "sample" : "samples"}` : "");
  const sinceChange = detail.default_value === null ? "not measured since the change" : "since the change";
  const saved = savedText(detail);
  const over = compared === steps ? "" : ` in ${count(compared)} of ${count(steps)} steps`;
  const words = detail.goal === "maximize" ? ["More than the default", "Less than the default"] : ["Saved", "Lost so far"];
  return [
    ["Best value", number(detail.best_value, 5), samples(best)],
    ["Default value", number(detail.default_value, 5), detail.search > 1 ? sinceChange : samples(first)],
    ["Steps", count(steps), detail.search > 1 ? `search ${count(detail.search)}` : ""],
    ["Total", number(detail.total, 5), "of all steps"],
    [
      words[saved?.isWorse ? 1 : 0],
      saved?.text ?? "–",
      saved === null ? "nothing to compare yet" : `${number(total)} instead of ${number(whole)}${over}`,
    ],
    ["Clients", count(detail.client_count), ""],
  ];
}

/* ---- tables ---- */

function isSame(one, other) {
  return one !== null && Object.entries(one).every(([name, here]) => other?.[name] === here);
}

function showClients() {
  const { clients: list, more_clients: more, best, default: first } = detail;
  const marks = (ran) => [
    best !== null && isSame(ran, best.config) ? h("span", { class: "badge plain" }, "best") : null,
    isSame(ran, first?.config) ? h("span", { class: "badge plain" }, "default") : null,
  ];
  const rows = list.map((one) =>
    h(
      "tr",
      {},
      h("td", { class: "mono" }, one.name),
      h("td", {}, one.config === null ? h("span", { class: "muted" }, "between two steps") : [h("span", { class: "mono" }, config(one.config)), " ", marks(one.config)]),
      h("td", { class: "number" }, duration(Math.max(0, Date.now() / 1000 - one.since))),
      h("td", { class: "number" }, count(one.reports)),
      h("td", { class: "number" }, number(one.last, 5)),
    ),
  );
  const right = (text) => h("th", { class: "number" }, text);
  fill(
    clients,
    rows.length === 0
      ? h("p", { class: "muted" }, "No client is connected.")
      : dataTable(["Client", "Runs now", right("Since"), right("Reports"), right("Last value")], rows),
    more > 0 ? h("p", { class: "small muted" }, `And ${count(more)} more.`) : null,
  );
}

function showPoints() {
  const names = detail.parameters.map((one) => one.name);
  const right = (text) => h("th", { class: "number" }, text);
  const rows = detail.points.map((point) =>
    h(
      "tr",
      {},
      h(
        "td",
        { class: "nowrap" },
        number(point.value, 5),
        isSame(point.config, detail.default?.config) ? [" ", h("span", { class: "badge plain" }, "default")] : null,
      ),
      h("td", { class: "number" }, count(point.samples)),
      names.map((name) => h("td", { class: "number mono" }, name in point.config ? value(point.config[name]) : "")),
    ),
  );
  fill(
    points,
    rows.length === 0
      ? h("p", { class: "muted" }, "No configuration has been measured yet.")
      : dataTable(["Value", right("Samples"), ...names.map(right)], rows, { class: "compact" }),
  );
}

function settingsOf() {
  const text = (one) => (one === true ? "yes" : one === false ? "no" : String(one));
  return Object.entries(SETTINGS)
    .filter(([name]) => name in detail.settings)
    .map(([name, title]) => [title, text(detail.settings[name])]);
}

/* ---- live ---- */

/** Redraw a part only if its contents have changed, so that buttons keep the focus. */
const drawn = new Map();
function draw(part, state, show) {
  const key = JSON.stringify(state);
  if (drawn.get(part) === key) return;
  drawn.set(part, key);
  show();
}

function showAll() {
  const { name, phase, shared, may_change: mine } = detail;
  document.title = `${name} · luthier`;
  draw(head, [name, phase, shared, mine], showHeader);
  draw(verdict, [factsOf(), phase, detail.best, detail.changes, detail.gain], showVerdict);
  draw(points, detail.points, showPoints);
  showClients();
}

async function reload() {
  const before = detail?.phase;
  detail = await get(path);
  if (before !== undefined && before !== detail.phase) status.textContent = `The session is ${detail.phase}.`;
  showAll();
  plot.refresh();
}

const reloadSoon = throttled(() => attempt(reload), 700);

async function begin() {
  detail = await get(path);
  root.replaceChildren(
    head,
    h("div", { class: "cards" }, verdict),
    h(
      "div",
      { class: "cards two session" },
      card("Value of each step", "A step ends when every client has reported; its value is that of the slowest one.", plot.box, "wide"),
      card("Clients", "What each client runs now.", clients, "wide"),
      card("Best configurations", "The best that were measured in this search.", points, "wide"),
      card("Parameters", "", space(detail)),
      card("Settings", "", pairs(settingsOf())),
    ),
    status,
  );
  showAll();
  root.removeAttribute("aria-busy");
  const end = follow(() => `/api/v1${path}/events`, {
    watching: reloadSoon, // from now on nothing is missed
    session: reloadSoon,
    gone: () => {
      end();
      fill(root, statusLine("This session was deleted, or it is not shared with you now.", "note"));
    },
  });
}

function tryToBegin() {
  begin().catch((error) => {
    fill(root, statusLine(error.message));
    if (error.status === 0 || error.status >= 500) setTimeout(tryToBegin, 3000);
  });
}

tryToBegin();
