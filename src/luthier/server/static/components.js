import { get } from "./api.js";
import { $, dataTable, fill, h, mayLaunch } from "./dom.js";
import { count } from "./format.js";
import { statusLine } from "./messages.js";

const list = $("#list");

function row(one) {
  const address = `/components/${encodeURIComponent(one.name)}`;
  const used = one.used_by === 0 ? "–" : `${count(one.used_by)} experiment${one.used_by === 1 ? "" : "s"}`;
  const made = h(
    "tr",
    { class: "link" },
    h("td", { class: "nowrap" }, h("a", { href: address }, h("b", {}, one.name))),
    h("td", {}, one.description),
    h(
      "td",
      {},
      h(
        "div",
        { class: "chips" },
        one.parameters.slice(0, 6).map((name) => h("span", { class: "chip" }, name)),
        one.parameters.length > 6 ? h("span", { class: "muted" }, `and ${one.parameters.length - 6} more`) : null,
      ),
    ),
    h("td", { class: "nowrap" }, used),
    h(
      "td",
      { class: "right" },
      mayLaunch && h("a", { class: "button", href: `/new?component=${encodeURIComponent(one.name)}` }, "Tune this"),
    ),
  );
  made.addEventListener("click", (event) => {
    if (!event.target.closest("a") && String(getSelection()) === "") location.assign(address);
  });
  return made;
}

try {
  const found = await get("/components");
  const table = () =>
    h(
      "div",
      { class: "scroll" },
      dataTable(["Name", "Description", "Parameters", "Used by", ""], found.map(row), { class: "experiments" }),
    );
  fill(list, found.length ? table() : $("#nothing-yet").content.cloneNode(true));
} catch (error) {
  fill(list, h("div", { class: "body" }, statusLine(error.message)));
}
list.removeAttribute("aria-busy");
