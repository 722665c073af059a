// An experiment as a form: component, values to try, application script, and search settings.

import { get } from "./api.js";
import { ComponentForm } from "./component-form.js";
import { fill, h } from "./dom.js";
import { codeEditor } from "./editor.js";
import { field, input, readFields, select, showFields, showProblem, textOf } from "./fields.js";
import { gridFields } from "./grid.js";

const INLINE = "described here"; // contains a space, so it cannot be the name of a component

/** The form of an experiment. `read()` returns the document; settings that the form does not show are unchanged. */
export class ExperimentForm {
  constructor(element, components, options, changed) {
    this.element = element;
    this.components = components;
    this.changed = changed;
    this.base = {};
    this.rows = [];
    this.described = null;
    this.inline = new ComponentForm(changed);
    this.build(options);
  }

  build(options) {
    this.chooser = h("select", { id: "component", dataset: { place: "components" } });
    this.about = h("p", { class: "hint" });
    this.inlineName = h("input", { placeholder: "dd", spellcheck: "false" });
    this.inlinePart = h(
      "div",
      { class: "stack", hidden: true, dataset: { place: "definitions" } },
      field("Name of the component", this.inlineName),
      this.inline.element,
    );
    this.grid = h("tbody");
    this.script = codeEditor("Application script", {
      rows: 8,
      path: "experiment.script",
      placeholder: "#!/bin/bash\n# if empty, only the command of the component runs",
    });
    this.script.area.dataset.kind = "script";
    this.optimizers = Object.fromEntries(options.optimizers.map((one) => [one.name, one]));
    this.optimizer = select(
      "experiment.optimizer",
      Object.keys(this.optimizers).filter((name) => name !== "auto"),
      "auto (default)",
    );
    this.optimizer.addEventListener("change", () => this.showOptimizer());
    this.optimizerAbout = h("p", { class: "hint" });
    this.optimizerOptions = h("div", { class: "fields wide" });
    const section = (title, explanation, ...body) =>
      h(
        "section",
        { class: "card" },
        h("header", {}, h("h2", {}, title), explanation ? h("p", {}, explanation) : null),
        h("div", { class: "body stack" }, body),
      );
    fill(
      this.element,
      section(
        "Component",
        "",
        h(
          "div",
          { class: "fields" },
          field("Name", input("experiment.name", "text", { placeholder: "a name for the list" })),
          field("Component", this.chooser),
        ),
        this.about,
        this.inlinePart,
      ),
      section(
        "Values to try",
        "Parameters that are not selected keep their default.",
        h(
          "div",
          { class: "scroll" },
          h(
            "table",
            { class: "grid-table" },
            h(
              "thead",
              {},
              h(
                "tr",
                {},
                h("th", {}, h("span", { class: "visually-hidden" }, "Tune")),
                h("th", {}, "Parameter"),
                h("th", {}, "Kind"),
                h("th", {}, "Values"),
                h("th", {}, "Default"),
              ),
            ),
            this.grid,
          ),
        ),
      ),
      section(
        "Application",
        "The shell script to run; the component is applied before it. Tab indents; to leave the field, press Escape, then Tab.",
        h("div", { class: "field" }, this.script.element, h("span", { class: "problem" })),
      ),
      section(
        "Search",
        "",
        h(
          "div",
          { class: "fields" },
          options.settings.filter((one) => one.common).map(settingField),
          field("Runner", input("experiment.runner", "text", { placeholder: "auto", suggestions: options.runners }), {
            hint: "Slurm if the script has #SBATCH lines, else this machine.",
          }),
        ),
        h(
          "details",
          { class: "more" },
          h("summary", {}, "Search, noise, pruning, stopping"),
          h(
            "div",
            { class: "fields" },
            h("div", { class: "wide" }, field("Optimizer", this.optimizer), this.optimizerAbout),
            this.optimizerOptions,
            options.settings.filter((one) => !one.common).map(settingField),
          ),
        ),
      ),
    );
    this.inline.element.addEventListener("input", () => this.inlineChanged());
    this.inline.changed = () => {
      this.inlineChanged();
      this.changed();
    };
    this.chooser.addEventListener("change", () => this.choose(this.chooser.value));
    this.offer();
  }

  offer() {
    const chosen = this.chooser.value;
    fill(
      this.chooser,
      h("option", { value: "" }, "Choose one"),
      this.components.map((one) => h("option", { value: one.name }, one.name)),
      h("option", { value: INLINE }, "Describe one here"),
    );
    this.chooser.value = chosen;
  }

  /** The options of the chosen optimizer, with their defaults. */
  showOptimizer() {
    const { description = "", options = {} } = this.optimizers[this.optimizer.value] ?? {};
    this.optimizerAbout.textContent = description;
    const kinds = { number: "number", boolean: "bool" };
    fill(
      this.optimizerOptions,
      Object.entries(options).map(([name, usual]) =>
        field(name, input(`experiment.options.${name}`, kinds[typeof usual] ?? "text", { placeholder: textOf(usual) })),
      ),
    );
    this.optimizerOptions.hidden = Object.keys(options).length === 0;
    showFields(this.optimizerOptions, this.base);
  }

  get isInline() {
    return this.chooser.value === INLINE;
  }

  /** Show the parameters of another component, with the values it declares. */
  async choose(name) {
    this.inlinePart.hidden = name !== INLINE;
    this.about.textContent = "";
    this.rows = [];
    if (name === INLINE) {
      this.described = this.inline.read();
    } else {
      this.described = name === "" ? null : await this.fetch(name);
      this.about.textContent = this.described?.description ?? "";
    }
    this.showGrid({});
    this.changed();
  }

  async fetch(name) {
    const found = await get(`/components/${encodeURIComponent(name)}`).catch(() => null);
    if (found === null) return null;
    return { ...found, parameters: Object.fromEntries(found.parameters.map((one) => [one.name, one])) };
  }

  inlineChanged() {
    const before = JSON.stringify(this.described?.parameters);
    const grids = this.readGrid();
    this.described = this.inline.read();
    if (JSON.stringify(this.described.parameters) !== before) this.showGrid(this.touched ? grids : {});
  }

  showGrid(grids) {
    const parameters = Object.entries(this.described?.parameters ?? {}).filter(([name]) => name !== "");
    const none = Object.keys(grids).length === 0;
    this.rows = parameters.map(([name, one]) => this.row(name, one, none ? declares(one) : name in grids, grids[name]));
    fill(
      this.grid,
      this.rows.length
        ? this.rows.map((row) => row.element)
        : h(
            "tr",
            {},
            h(
              "td",
              { colspan: 5, class: "muted" },
              this.described === null ? "Choose a component first." : "The component has no parameters yet.",
            ),
          ),
    );
  }

  row(name, one, isTuned, given) {
    const tick = h("input", { type: "checkbox", "aria-label": `Tune ${name}` });
    tick.checked = isTuned;
    const grid = gridFields(name, () => one.type);
    grid.show(given && Object.keys(given).length ? given : one);
    const element = h(
      "tr",
      { dataset: { place: "" } },
      h("td", {}, h("label", { class: "check" }, tick)),
      h("td", { class: "name" }, name, h("span", { class: "problem" })),
      h("td", { class: "kind" }, grid.kind),
      h("td", {}, grid.body),
      h("td", { class: "mono" }, textOf(one.default)),
    );
    const dim = () => element.classList.toggle("off", !tick.checked);
    tick.addEventListener("change", dim);
    element.addEventListener("input", (event) => {
      this.touched = true;
      if (event.target !== tick && !tick.checked) {
        tick.checked = true;
        dim();
      }
    });
    dim();
    return { name, element, tick, grid, declared: one };
  }

  readGrid() {
    const grids = {};
    for (const row of this.rows) if (row.tick.checked) grids[row.name] = row.grid.read() ?? {};
    return grids;
  }

  get name() {
    return this.isInline ? this.inlineName.value.trim() : this.chooser.value;
  }

  async show(document) {
    this.base = structuredClone(document);
    showFields(this.element, this.base);
    this.showOptimizer();
    const listed = Object.keys(this.base.components ?? {});
    const name = this.base.experiment?.component || listed[0] || "";
    const definition = typeof this.base.definitions === "object" ? this.base.definitions?.[name] : undefined;
    const grids = this.base.components?.[name] ?? {};
    this.touched = Object.keys(grids).length > 0;
    if (definition) {
      this.inlineName.value = name;
      this.inline.show(definition);
      this.chooser.value = INLINE;
      this.described = definition;
    } else {
      if (name && !this.components.some((one) => one.name === name))
        this.chooser.append(h("option", { value: name }, `${name} (not registered)`));
      this.chooser.value = name;
      this.described = name === "" ? null : await this.fetch(name);
    }
    this.inlinePart.hidden = !this.isInline;
    this.about.textContent = this.isInline ? "" : (this.described?.description ?? "");
    this.shownName = name;
    this.showGrid(grids);
    this.script.mark(null); // also updates the line numbers
  }

  read() {
    const document = structuredClone(this.base);
    document.experiment ??= {};
    readFields(this.element, document);
    const offered = this.optimizers[document.experiment.optimizer]?.options ?? {};
    const options = Object.entries(document.experiment.options ?? {}).filter(([option]) => option in offered);
    if (options.length) document.experiment.options = Object.fromEntries(options);
    else delete document.experiment.options;
    const { name } = this;
    if (document.experiment.component && document.experiment.component !== name) delete document.experiment.component;
    if (this.shownName !== undefined && this.shownName !== name) {
      delete document.components?.[this.shownName];
      if (typeof document.definitions === "object") delete document.definitions[this.shownName];
    }
    if (this.isInline)
      document.definitions = {
        ...(typeof document.definitions === "object" ? document.definitions : {}),
        [name]: this.inline.read(),
      };
    else delete document.definitions;
    if (name) document.components = { ...document.components, [name]: this.plainGrids() };
    this.shownName = name;
    this.base = structuredClone(document);
    return ordered(document);
  }

  /** Show an error next to its field. */
  showProblem(place, text) {
    this.inline.setDocumentPath(`definitions.${this.name}`);
    for (const row of this.rows) row.element.dataset.place = `components.${this.name}.${row.name}`;
    showProblem(this.element, place, text);
  }

  plainGrids() {
    return Object.fromEntries(Object.entries(this.readGrid()).map(([name, grid]) => [name, grid.values ?? grid]));
  }
}

/** The field of a setting, as the server describes it. */
function settingField({ name, label, help, kind, default: usual, suggestions }) {
  return field(label, input(`experiment.${name}`, kind, { placeholder: usual, suggestions }), { hint: help });
}

function declares(parameter) {
  return (parameter.min !== undefined && parameter.min !== null) || Array.isArray(parameter.values);
}

function ordered({ experiment, definitions, components, ...rest }) {
  return { experiment, ...(definitions ? { definitions } : {}), ...(components ? { components } : {}), ...rest };
}
