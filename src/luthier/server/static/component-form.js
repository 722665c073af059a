// A component as a form: its command, its parameters, and more settings.

import { fill, h, icon } from "./dom.js";
import { check, field, input, readFields, select, showFields, textOf, valueOf } from "./fields.js";
import { gridFields } from "./grid.js";

const NEW = { type: "int", cmd_var: true };
const GRID = ["min", "max", "step", "step_type", "values"];

/** The form of one component. `read()` returns the component; settings that the form does not show are unchanged. */
export class ComponentForm {
  constructor(changed) {
    this.changed = changed;
    this.base = {};
    this.rows = [];
    this.list = h("div", { class: "stack" });
    this.fields = h(
      "div",
      { class: "stack", dataset: { scope: "" } },
      h(
        "div",
        { class: "fields" },
        field("Description", input("description", "text", { placeholder: "What is tuned" }), { wide: true }),
        field("Command", input("command", "text", { placeholder: "dd if=/dev/zero of=/dev/null" }), {
          wide: true,
          hint: "Run and timed before the application; parameters passed as arguments are appended.",
        }),
      ),
      h(
        "details",
        { class: "more" },
        h("summary", {}, "More settings"),
        h(
          "div",
          { class: "fields" },
          field("Header", input("header", "script", { rows: 2, placeholder: "sync" }), {
            wide: true,
            hint: "Shell lines that run before the measurement starts.",
          }),
          field("Measure", input("measure", "list", { placeholder: "wall" }), {
            hint: "One per line; by default, the elapsed time.",
          }),
          field("Constraints", input("constraints", "list", { placeholder: "threads <= 2 * depth" }), {
            hint: "One per line.",
          }),
          field("Library to preload", input("ld_preload", "text", { placeholder: "$HOME/lib/libfast.so" })),
          field("Options for sbatch", input("plugin", "text", { placeholder: "fastio=yes" })),
        ),
      ),
    );
    this.element = h(
      "div",
      { class: "stack" },
      this.fields,
      h("div", {}, h("span", { class: "label" }, "Parameters"), this.list),
      h("div", {}, h("button", { type: "button", onclick: () => this.add() }, icon("plus"), "Add a parameter")),
    );
  }

  /** Add a parameter. */
  add() {
    const row = this.row("", NEW);
    this.rows.push(row);
    this.list.append(row.element);
    row.name.focus();
    this.changed();
  }

  row(name, described) {
    const title = input("", "text", { placeholder: "threads" });
    delete title.dataset.path;
    title.value = name;
    const fields = h("div", { class: "fields", dataset: { scope: "" } });
    const type = select("type", ["int", "float", "str", "bool"]);
    const fallback = input("default", "text");
    const grid = gridFields(name || "the parameter", () => type.value, { none: true });
    const drop = h(
      "button",
      { type: "button", class: "quiet square", "aria-label": `Remove ${name || "the parameter"}` },
      icon("trash"),
    );
    fill(
      fields,
      field("Type", type),
      field("Default", fallback),
      field("Flag", input("flag", "str", { placeholder: "none" })),
      field("Suffix", input("suffix", "str", { placeholder: "none" })),
      h(
        "div",
        { class: "wide" },
        h("span", { class: "label" }, "Values to try"),
        h("div", { class: "grid-pair" }, grid.kind, grid.body),
      ),
      h(
        "div",
        { class: "wide passing" },
        h("span", { class: "small muted" }, "Passed as"),
        check("cmd_var", "argument of the command"),
        check("env_var", "environment variable"),
        check("cli_var", "option of sbatch"),
        check("optional", "optional"),
        check("ordered", "list in order"),
      ),
    );
    const element = h(
      "div",
      { class: "parameter" },
      h("header", {}, field("Name", title), drop),
      fields,
      h("span", { class: "problem" }),
    );
    const row = { element, name: title, base: described, fields, type, fallback, grid };
    showFields(fields, described);
    grid.show(described);
    drop.addEventListener("click", () => {
      this.rows = this.rows.filter((other) => other !== row);
      element.remove();
      this.changed();
    });
    return row;
  }

  show(component) {
    this.base = structuredClone(component ?? {});
    showFields(this.fields, this.base);
    this.rows = Object.entries(this.base.parameters ?? {}).map(([name, described]) => this.row(name, described));
    fill(
      this.list,
      this.rows.map((row) => row.element),
    );
  }

  read() {
    const found = readFields(this.fields, structuredClone(this.base));
    found.parameters = {};
    for (const row of this.rows) {
      const name = row.name.value.trim();
      const isBlank = name === "" && row.fallback.value === "" && row.grid.read() === undefined;
      if (!isBlank) found.parameters[name] = this.readRow(row);
    }
    return found;
  }

  /** Set the path of the component in the document, so that errors are shown next to their fields. */
  setDocumentPath(place) {
    this.fields.dataset.scope = place;
    for (const row of this.rows) {
      row.fields.dataset.scope = `${place}.parameters.${row.name.value.trim()}`;
      row.element.dataset.place = row.fields.dataset.scope;
    }
  }

  readRow(row) {
    const found = readFields(row.fields, structuredClone(row.base));
    const text = row.fallback.value;
    if (text !== textOf(row.base.default) || row.type.value !== row.base.type) {
      const value = valueOf(text, row.type.value);
      if (value === undefined) delete found.default;
      else found.default = value;
    }
    for (const key of GRID) delete found[key];
    return { ...found, ...row.grid.read() };
  }
}
