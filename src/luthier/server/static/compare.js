// Comparison of several experiments.

import { get } from "./api.js";
import { $, dataTable, debounced, fill, h, icon } from "./dom.js";
import { count, duration, gain } from "./format.js";
import { Plot } from "./plot.js";
import { attempt } from "./messages.js";

const root = $("#compare");
const chosen = new Map();
const picker = h("input", {
  id: "search",
  type: "search",
  placeholder: "Add an experiment by name",
  autocomplete: "off",
  "aria-controls": "found",
});
const found = h("div", { id: "found", class: "chips", "aria-live": "polite" });
const tags = h("div", { class: "chips" });
const empty = h(
  "div",
  { class: "card empty" },
  h("h2", {}, "Nothing to compare yet"),
  h("p", {}, "Choose two or more experiments here, or select them in the list."),
);
const tableBody = h("div", { class: "scroll" });
const plot = new Plot(null, { title: "Best so far", empty: "None of these experiments has a result yet." });
const parts = h(
  "div",
  { class: "cards" },
  h("section", { class: "card" }, h("header", {}, h("h2", {}, "Best so far")), h("div", { class: "body" }, plot.box)),
  h("section", { class: "card" }, h("header", {}, h("h2", {}, "Results")), tableBody),
);

async function search() {
  const page = await get(`/experiments?${new URLSearchParams({ text: picker.value.trim(), limit: 12 })}`);
  const others = page.items.filter((one) => !chosen.has(one.id));
  fill(
    found,
    others.map((one) =>
      h(
        "button",
        { type: "button", class: "tiny", onclick: () => change(() => chosen.set(one.id, one)) },
        icon("plus"),
        `${one.name} #${one.id}`,
      ),
    ),
  );
}

async function change(act) {
  act();
  const ids = [...chosen.keys()];
  history.replaceState(null, "", ids.length ? `/compare?ids=${ids.join(",")}` : "/compare");
  await attempt(show);
  await attempt(search);
}

async function show() {
  const ids = [...chosen.keys()].join(",");
  const items = ids ? await get(`/compare?ids=${ids}`) : [];
  for (const one of items) chosen.set(one.id, one);
  fill(
    tags,
    [...chosen.values()].map((one) =>
      h(
        "span",
        { class: "chip" },
        `${one.name ?? "experiment"} #${one.id} `,
        h(
          "button",
          {
            type: "button",
            class: "quiet tiny square",
            "aria-label": `Remove ${one.name}`,
            onclick: () => change(() => chosen.delete(one.id)),
          },
          icon("close"),
        ),
      ),
    ),
  );
  empty.hidden = chosen.size > 0;
  parts.hidden = chosen.size === 0;
  if (chosen.size === 0) return;
  plot.refresh(`/compare/figures/best?ids=${ids}`);
  fill(tableBody, table([...chosen.values()]));
}

function table(items) {
  const lines = [
    ["Status", (one) => h("span", { class: `badge ${one.status}` }, one.status)],
    ["Gain over default", (one) => (gain(one)?.improved ? gain(one).text : one.verdict ? "not proven" : "–")],
    ["95 % interval", (one) => gain(one)?.interval || "–"],
    ["Verdict", (one) => one.verdict ?? "–"],
    ["Runs", (one) => `${count(one.runs)} of ${count(one.budget)}`],
    ["Run time", (one) => duration(one.cost_s)],
    ["User", (one) => one.author || "command line"],
  ];
  const heading = (one) => h("th", {}, h("a", { href: `/experiments/${one.id}` }, `${one.name} #${one.id}`));
  const row = ([title, cell]) =>
    h(
      "tr",
      {},
      h("td", { class: "muted nowrap" }, title),
      items.map((one) => h("td", {}, cell(one))),
    );
  return dataTable(["", ...items.map(heading)], lines.map(row));
}

picker.addEventListener(
  "input",
  debounced(() => attempt(search), 250),
);
fill(
  root,
  h(
    "div",
    { class: "card pad stack" },
    tags,
    h(
      "label",
      { class: "search" },
      icon("search"),
      h("span", { class: "visually-hidden" }, "Add an experiment"),
      picker,
      h("kbd", { "aria-hidden": "true" }, "/"),
    ),
    found,
  ),
  empty,
  parts,
);
const ids = (new URLSearchParams(location.search).get("ids") ?? "").split(",").filter((one) => /^\d{1,9}$/.test(one));
for (const id of ids) chosen.set(Number(id), { id: Number(id), name: "experiment" });
await attempt(show);
await attempt(search);
root.removeAttribute("aria-busy");
