// The values to try for one parameter: a range with an additive or multiplicative step, or a list.

import { h } from "./dom.js";
import { listOf, listText, textOf, valueOf } from "./fields.js";

/** The fields of one grid. `read()` returns their values, or undefined if they are empty. */
export function gridFields(name, kindOf, { none = false } = {}) {
  const kind = h(
    "select",
    { "aria-label": `Kind of values of ${name}` },
    none ? h("option", { value: "" }, "not given") : null,
    h("option", { value: "range" }, "range"),
    h("option", { value: "list" }, "list"),
  );
  const part = (label, placeholder) =>
    h("input", { "aria-label": `${label} of ${name}`, placeholder, spellcheck: "false", autocomplete: "off" });
  const [low, high, step] = [part("Lowest value", "from"), part("Highest value", "to"), part("Step", "1")];
  const type = h(
    "select",
    { "aria-label": `How the step of ${name} works` },
    h("option", { value: "additive" }, "+"),
    h("option", { value: "multiplicative" }, "×"),
  );
  const list = part("Values", "a, b, c");
  const range = h("div", { class: "range" }, low, h("span", {}, "to"), high, h("span", {}, "step"), type, step);
  const body = h("div", {}, range, list);

  function showKind() {
    range.hidden = kind.value !== "range";
    list.hidden = kind.value !== "list";
  }

  kind.addEventListener("change", showKind);

  function show(grid) {
    const values = Array.isArray(grid) ? grid : grid?.values;
    if (values) list.value = listText(values);
    else if (grid?.min !== undefined) {
      [low.value, high.value, step.value] = [textOf(grid.min), textOf(grid.max), textOf(grid.step)];
      type.value = grid.step_type ?? "additive";
    }
    kind.value = values ? "list" : grid?.min !== undefined || !none ? "range" : "";
    if (!values && grid?.min === undefined && !none && !["int", "float"].includes(kindOf())) kind.value = "list";
    showKind();
  }

  function read() {
    if (kind.value === "list") {
      const values = listOf(list.value, kindOf());
      return values.length === 0 ? undefined : { values };
    }
    if (kind.value === "") return undefined;
    const number = (control) => valueOf(control.value, "number");
    const found = { min: number(low), max: number(high), step: number(step) };
    if (type.value === "multiplicative") found.step_type = type.value;
    for (const key of Object.keys(found)) if (found[key] === undefined) delete found[key];
    return found.min === undefined && found.max === undefined ? undefined : found;
  }

  show(undefined);
  return { kind, body, show, read };
}
