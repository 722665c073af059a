// The list of experiments, updated live.

import { get, newKey, post } from "./api.js";
import { $, debounced, fill, h } from "./dom.js";
import { ago, count, duration, gain, moment, statusClass } from "./format.js";
import { follow } from "./live.js";
import { attempt } from "./messages.js";

const list = $("#list");
const rows = h("tbody");
const known = new Map();
const chosen = new Set();
const filter = { text: "", status: "", mine: "" };
const more = h("button", { type: "button", onclick: () => attempt(() => load(next)) }, "Show more");
let next = null;
let asked = 0;

const table = h(
  "table",
  { class: "experiments" },
  h(
    "thead",
    {},
    h(
      "tr",
      {},
      h("th", { class: "tick" }, h("span", { class: "visually-hidden" }, "Compare")),
      h("th", {}, "Name"),
      h("th", {}, "Status"),
      h("th", {}, "Gain over default"),
      h("th", {}, "Runs"),
      h("th", { class: "optional number" }, "Run time"),
      h("th", { class: "optional" }, "Created"),
    ),
  ),
  rows,
);

function address(before) {
  const query = new URLSearchParams({ limit: 50 });
  for (const [name, value] of Object.entries(filter)) if (value) query.set(name, value);
  if (before !== null) query.set("before", before);
  return `/experiments?${query}`;
}

async function load(before = null) {
  const mine = ++asked;
  const page = await get(address(before));
  if (mine !== asked) return;
  if (before === null) known.clear();
  for (const one of page.items) known.set(one.id, one);
  next = page.next;
  show();
}

function isFiltered() {
  return Object.values(filter).some(Boolean);
}

function show() {
  list.removeAttribute("aria-busy");
  $("#filters").hidden = known.size === 0 && !isFiltered();
  if (known.size === 0) {
    fill(list, isFiltered() ? nothingFound() : nothingYet());
    return;
  }
  const sorted = [...known.values()].sort((one, other) => other.id - one.id);
  fill(rows, sorted.map(row));
  more.hidden = next === null;
  fill(list, h("div", { class: "scroll" }, table), next === null ? null : h("div", { class: "pager" }, more));
}

function nothingFound() {
  return h(
    "div",
    { class: "empty" },
    h("h2", {}, "No matching experiments"),
    h("p", {}, "Try another name or status."),
  );
}

function nothingYet() {
  const shown = $("#nothing-yet").content.cloneNode(true);
  const button = $("#example", shown);
  const text = $("#example-text", shown)?.textContent;
  button?.addEventListener("click", async () => {
    button.disabled = true;
    const made = await attempt(() =>
      post("/experiments", { yaml: text }, { headers: { "Idempotency-Key": newKey() } }),
    );
    button.disabled = false;
    if (made !== null) location.assign(`/experiments/${made.id}`);
  });
  return shown;
}

function row(one) {
  const choose = h("input", {
    type: "checkbox",
    "aria-label": `Compare ${one.name}`,
    onchange: (event) => mark(one.id, event.target.checked),
  });
  choose.checked = chosen.has(one.id);
  const line = h(
    "tr",
    { class: "link", dataset: { id: one.id } },
    h("td", { class: "tick" }, choose),
    h(
      "td",
      { class: "name" },
      h("a", { href: `/experiments/${one.id}` }, one.name || `experiment ${one.id}`),
      h("small", {}, [`#${one.id}`, one.author || "command line", one.shared && "shared"].filter(Boolean).join(" · ")),
    ),
    h("td", {}, h("span", { class: `badge ${statusClass(one.status)}` }, one.status)),
    h("td", {}, gainCell(one)),
    h("td", { class: "runs" }, `${count(one.runs)} of ${count(one.budget)}`, progress(one)),
    h("td", { class: "optional number" }, duration(one.cost_s)),
    h(
      "td",
      { class: "optional nowrap" },
      h("time", { title: moment(one.created_at), dataset: { at: one.created_at } }, ago(one.created_at)),
    ),
  );
  line.addEventListener("click", (event) => {
    if (!event.target.closest("a, input") && String(getSelection()) === "") location.assign(`/experiments/${one.id}`);
  });
  return line;
}

function gainCell(one) {
  const found = gain(one);
  if (found === null) return h("span", { class: "said", title: one.verdict }, one.verdict ?? "–");
  const [kind, text] = found.improved ? ["gain yes", found.text] : ["gain", "not proven"];
  return h("span", { class: kind, title: one.verdict }, text, h("small", {}, found.interval || "too few pairs"));
}

function progress(one) {
  const share = one.budget ? Math.min(1, one.runs / one.budget) : 0;
  const done = one.status === "finished";
  const bar = h("i");
  bar.style.width = `${100 * (done ? 1 : share)}%`;
  return h("span", { class: done ? "progress done" : "progress", "aria-hidden": "true" }, bar);
}

function mark(id, yes) {
  if (yes) chosen.add(id);
  else chosen.delete(id);
  const link = $("#compare");
  link.hidden = chosen.size < 2;
  link.href = `/compare?ids=${[...chosen].join(",")}`;
  $("span", link).textContent = `Compare ${chosen.size}`;
}

function fits(one) {
  const words = filter.text.toLowerCase();
  return (
    (!words || one.name.toLowerCase().includes(words)) &&
    (!filter.status || one.status === filter.status || (filter.status === "failed" && one.status === "no result")) &&
    (!filter.mine || one.mine)
  );
}

function changed(one) {
  if (!fits(one)) {
    if (known.delete(one.id)) show();
    return;
  }
  const isNew = !known.has(one.id);
  if (isNew && next !== null && one.id < next) return; // below the rows that are shown
  known.set(one.id, one);
  const line = isNew ? null : $(`tr[data-id="${one.id}"]`, rows);
  if (line && !line.contains(document.activeElement)) line.replaceWith(row(one));
  else show();
}

const search = debounced(() => attempt(() => load()), 250);
$("#search").addEventListener("input", (event) => {
  filter.text = event.target.value.trim();
  search();
});
$("#status").addEventListener("change", (event) => {
  filter.status = event.target.value;
  attempt(() => load());
});
for (const button of document.querySelectorAll("[data-mine]")) {
  button.addEventListener("click", () => {
    filter.mine = button.dataset.mine;
    for (const other of document.querySelectorAll("[data-mine]")) other.setAttribute("aria-pressed", other === button);
    attempt(() => load());
  });
}

setInterval(() => {
  for (const time of document.querySelectorAll("time[data-at]")) time.textContent = ago(Number(time.dataset.at));
}, 30000);

attempt(() => load());
follow(() => "/api/v1/events", {
  watching: () => attempt(() => load()), // from now on nothing is missed
  experiment: changed,
  gone: ({ id }) => known.delete(id) && show(),
});
