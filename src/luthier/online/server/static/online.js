// The list of on-line sessions, updated live.

import { get } from "./api.js";
import { $, dataTable, fill, h } from "./dom.js";
import { ago, count, moment, number } from "./format.js";
import { follow } from "./live.js";
import { attempt } from "./messages.js";
import { gainText, phaseBadge, savedText } from "./online-format.js";

const list = $("#list");
const known = new Map();
const more = h("button", { type: "button", onclick: () => attempt(() => load(next)) }, "Show more");
const HEADINGS = [
  "Name",
  "Phase",
  "Best over default",
  "Total over default",
  h("th", { class: "number" }, "Clients"),
  h("th", { class: "number optional" }, "Steps"),
  h("th", { class: "optional" }, "Created"),
];
let next = null;

async function load(before = null) {
  const page = await get(`/online?limit=50${before === null ? "" : `&before=${before}`}`);
  if (before === null) known.clear();
  for (const one of page.items) known.set(one.id, one);
  next = page.next;
  show();
}

function show() {
  list.removeAttribute("aria-busy");
  if (known.size === 0) {
    fill(list, $("#nothing-yet").content.cloneNode(true));
    return;
  }
  const sorted = [...known.values()].sort((one, other) => other.id - one.id);
  fill(
    list,
    h("div", { class: "scroll" }, dataTable(HEADINGS, sorted.map(row), { class: "experiments" })),
    next === null ? null : h("div", { class: "pager" }, more),
  );
}

function row(one) {
  const address = `/online/${one.id}`;
  const line = h(
    "tr",
    { class: "link", dataset: { id: one.id } },
    h(
      "td",
      { class: "name" },
      h("a", { href: address }, one.name),
      h("small", {}, [`#${one.id}`, one.author, one.shared && "shared"].filter(Boolean).join(" · ")),
    ),
    h("td", {}, phaseBadge(one)),
    h("td", {}, gainCell(one)),
    h("td", {}, savedCell(one)),
    h("td", { class: "number" }, count(one.client_count)),
    h("td", { class: "number optional" }, count(one.steps)),
    h("td", { class: "optional nowrap" }, h("time", { title: moment(one.created_at) }, ago(one.created_at))),
  );
  line.addEventListener("click", (event) => {
    if (!event.target.closest("a") && String(getSelection()) === "") location.assign(address);
  });
  return line;
}

function gainCell(one) {
  const text = gainText(one);
  if (text === null) return h("span", { class: "said" }, noGain(one));
  const values = `${number(one.best_value)}, default ${number(one.default_value)}`;
  return h("span", { class: one.gain > 1 ? "gain yes" : "gain" }, text, h("small", {}, values));
}

function noGain(one) {
  if (one.phase === "baseline") return "measuring the default";
  if (one.best_value === null) return "–";
  return one.search > 1 ? "default not measured since the change" : "default not measured";
}

function savedCell(one) {
  const saved = savedText(one);
  if (saved === null) return h("span", { class: "said" }, one.total === null ? "–" : number(one.total));
  return h(
    "span",
    { class: saved.isWorse ? "gain" : "gain yes" },
    `${saved.text} ${saved.isWorse ? "worse" : "better"}`,
    h("small", {}, `${number(one.compared_total)}, default ${number(one.default_total)}`),
  );
}

function changed(one) {
  const isNew = !known.has(one.id);
  if (isNew && next !== null && one.id < next) return; // below the rows that are shown
  known.set(one.id, one);
  const line = isNew ? null : $(`tr[data-id="${one.id}"]`, list);
  if (line && !line.contains(document.activeElement)) line.replaceWith(row(one));
  else show();
}

attempt(() => load());
follow(() => "/api/v1/online/events", {
  watching: () => attempt(() => load()), // from now on nothing is missed
  session: changed,
  gone: ({ id }) => known.delete(id) && show(),
});
