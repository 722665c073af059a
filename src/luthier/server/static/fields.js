// Form fields for the settings of a document. Values that a field cannot parse are returned as typed, so that the server
// can report the error.

import { h } from "./dom.js";

const WHOLE = /^[+-]?\d+$/;
const REAL = /^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$/;

/** The value of a text; undefined if it is empty. */
export function valueOf(text, kind) {
  const plain = text.trim();
  if (kind === "list" || kind === "numbers") {
    const lines = text
      .split("\n")
      .map((line) => line.trim())
      .filter(Boolean);
    if (lines.length === 0) return undefined;
    return kind === "numbers" ? lines.map((line) => valueOf(line, "int")) : lines;
  }
  if (kind === "script") return text === "" ? undefined : text;
  if (plain === "") return undefined;
  if (kind === "int" && WHOLE.test(plain) && Number.isSafeInteger(Number(plain))) return Number(plain);
  if ((kind === "float" || kind === "number") && REAL.test(plain)) return Number(plain);
  if (kind === "bool" && (plain === "true" || plain === "false")) return plain === "true";
  return kind === "str" ? text : plain;
}

/** The text to show for a value. */
export function textOf(value) {
  if (value === undefined || value === null) return "";
  if (Array.isArray(value)) return value.map(textOf).join("\n");
  return typeof value === "string" ? value : JSON.stringify(value);
}

/** The text to show for a list of values on one line; as JSON if values contain commas. */
export function listText(values) {
  const plain = values.every(
    (one) => typeof one !== "string" || (one === one.trim() && one !== "" && !/[,[\]]/.test(one)),
  );
  return plain ? values.map(textOf).join(", ") : JSON.stringify(values);
}

/** The values of a list on one line. */
export function listOf(text, kind) {
  const plain = text.trim();
  if (plain.startsWith("[")) {
    try {
      return JSON.parse(plain);
    } catch {
      return [plain];
    }
  }
  if (plain === "") return [];
  return plain.split(",").map((one) => valueOf(one.trim(), kind) ?? "");
}

let count = 0;

/** A control with its label, a place for an error and an optional hint; screen readers read both. */
export function field(label, control, { hint = "", wide = false } = {}) {
  const id = `field-${(count += 1)}`;
  control.id ||= id;
  control.setAttribute("aria-describedby", hint ? `${id}-problem ${id}-hint` : `${id}-problem`);
  return h(
    "div",
    { class: wide ? "field wide" : "field" },
    h("label", { for: control.id }, label),
    control,
    h("span", { class: "problem", id: `${id}-problem` }),
    hint ? h("span", { class: "hint", id: `${id}-hint` }, hint) : null,
  );
}

/** An input, or a field of several lines for a list. */
export function input(path, kind, { placeholder = "", suggestions = [], rows = 1 } = {}) {
  const shared = { placeholder, spellcheck: "false", autocomplete: "off", dataset: { path, kind } };
  if (["list", "numbers", "script"].includes(kind)) return h("textarea", { ...shared, rows });
  const numeric = kind === "int" ? { inputmode: "numeric" } : {};
  if (suggestions.length === 0) return h("input", { ...shared, ...numeric });
  const id = `list-${path.replaceAll(".", "-")}`;
  document.body.append(
    h(
      "datalist",
      { id },
      suggestions.map((one) => h("option", { value: one })),
    ),
  );
  return h("input", { ...shared, list: id });
}

export function select(path, options, first) {
  const entries = options.map((one) => (Array.isArray(one) ? one : [one, one]));
  return h(
    "select",
    { dataset: { path, kind: "text" } },
    first ? h("option", { value: "" }, first) : null,
    entries.map(([value, text]) => h("option", { value }, text)),
  );
}

export function check(path, label) {
  return h("label", { class: "check" }, h("input", { type: "checkbox", dataset: { path, kind: "flag" } }), label);
}

/** The fields of a form without those of nested forms, which are in an element with their own scope. */
function own(within) {
  const scope = within.closest("[data-scope]");
  return [...within.querySelectorAll("[data-path]")].filter((control) => control.closest("[data-scope]") === scope);
}

/** The path in the document of a field or a part of the form. */
function placeOf(control) {
  if (control.dataset.place !== undefined) return control.dataset.place;
  const scope = control.closest("[data-scope]")?.dataset.scope;
  return scope ? `${scope}.${control.dataset.path}` : control.dataset.path;
}

const at = (document, path) => path.split(".").reduce((here, step) => here?.[step], document);

/** Show the settings of a document in the fields with a path. */
export function showFields(within, document) {
  for (const control of own(within)) {
    const value = at(document, control.dataset.path);
    if (control.dataset.kind === "flag") control.checked = value === true;
    else {
      const text = textOf(value);
      if (control.tagName === "SELECT" && text !== "" && ![...control.options].some((one) => one.value === text)) {
        control.append(h("option", { value: text }, text)); // keep a value that the form does not offer
      }
      if (control.value !== text) control.value = text;
    }
  }
}

/** Write the values of the fields into a document; the setting of an empty field is removed. */
export function readFields(within, document) {
  for (const control of own(within)) {
    const steps = control.dataset.path.split(".");
    const last = steps.pop();
    const here = steps.reduce((inner, step) => (inner[step] ??= {}), document);
    const kept = textOf(here[last]) === control.value && control.dataset.kind !== "flag";
    if (kept && here[last] !== undefined) continue; // unchanged: keep it as it was written
    const value =
      control.dataset.kind === "flag" ? control.checked || undefined : valueOf(control.value, control.dataset.kind);
    if (value === undefined) delete here[last];
    else here[last] = value;
  }
  return document;
}

/** Show an error next to the best matching field; without a place, remove all errors. */
export function showProblem(within, place = "", text = "") {
  let best = null;
  for (const control of within.querySelectorAll("[data-path], [data-place]")) {
    const here = placeOf(control);
    control.removeAttribute("aria-invalid");
    const fits = place !== "" && (place === here || place.startsWith(`${here}.`));
    if (fits && (best === null || here.length >= placeOf(best).length)) best = control;
  }
  for (const line of within.querySelectorAll(".problem")) line.textContent = "";
  if (best === null) return;
  if (best.matches("input, select, textarea")) best.setAttribute("aria-invalid", "true");
  const line = (best.closest(".field") ?? best).querySelector(".problem");
  if (line) line.textContent = text;
}
