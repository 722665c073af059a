// One document, two views of it: a form and a text. Whatever a person types in is theirs: only the other view is ever
// written to, after a pause or when it is looked at. A text keeps its comments until the form is used.

import { post } from "./api.js";
import { $, paused } from "./dom.js";
import { attempt } from "./say.js";

const PAUSE_MS = 450;

export class TwoViews {
  /** `form` has `read()` and `show(document)`; `check(text)` looks at a text; `checked(answer)` shows what came out. */
  constructor({ form, formElement, editor, editorElement, check, checked }) {
    Object.assign(this, { form, formElement, editor, editorElement, check, checked });
    this.typedIn = "form";
    this.typed = 0;
    this.upToDate = false;
    this.answer = null;
    this.answeredAt = -1;
    this.later = paused(() => attempt(() => this.settle()), PAUSE_MS);
    formElement.addEventListener("input", () => this.note("form"));
    formElement.addEventListener("change", () => this.note("form"));
    formElement.addEventListener("submit", (event) => event.preventDefault());
    editor.area.addEventListener("input", () => this.note("yaml"));
    for (const name of ["form", "yaml"])
      $(`#tab-${name}`).addEventListener("click", () => attempt(() => this.look(name)));
    $("[role=tablist]").addEventListener("keydown", (event) => {
      if (event.key !== "ArrowLeft" && event.key !== "ArrowRight") return;
      attempt(() => this.look(this.shown === "form" ? "yaml" : "form"));
    });
  }

  get shown() {
    return this.formElement.hidden ? "yaml" : "form";
  }

  /** Begin with a text. */
  async begin(text, view = "form") {
    this.editor.value = text;
    this.typedIn = "yaml";
    this.upToDate = false;
    await this.look(view);
    await this.settle();
  }

  note(view) {
    this.typedIn = view;
    this.typed += 1;
    this.upToDate = false;
    this.later();
  }

  /** The document as a text, with everything typed so far. */
  async text() {
    while (this.typedIn === "form" && !this.upToDate) await this.writeText();
    return this.editor.value;
  }

  async settle() {
    const at = this.typed;
    const text = await this.text();
    if (at !== this.typed) return;
    const answer = await this.check(text);
    if (at !== this.typed) return;
    [this.answer, this.answeredAt] = [answer, at];
    this.checked(answer);
  }

  async writeText() {
    const at = this.typed;
    const { yaml } = await post("/experiments/yaml", { document: this.form.read() });
    if (at !== this.typed) return;
    this.editor.value = yaml;
    this.upToDate = true;
  }

  async readText() {
    const at = this.typed;
    const { document } = await post("/experiments/document", { yaml: this.editor.value });
    if (at !== this.typed) return;
    await this.form.show(document);
    this.upToDate = true;
  }

  /** Show one of the views; a text that is not YAML keeps the form away. */
  async look(view) {
    if (view === "yaml") await this.text();
    else if (this.typedIn === "yaml" && !this.upToDate) await this.readText();
    this.formElement.hidden = view !== "form";
    this.editorElement.hidden = view !== "yaml";
    for (const name of ["form", "yaml"]) {
      const tab = $(`#tab-${name}`);
      tab.setAttribute("aria-selected", name === view);
      tab.tabIndex = name === view ? 0 : -1;
    }
    if (document.activeElement?.closest("[role=tablist]")) $(`#tab-${view}`).focus();
    if (this.answeredAt === this.typed) this.checked(this.answer); // it is said in other words there
  }
}

/** What a message of the server says, and of which place of the document: `x.yaml:3: experiment.budget: ...`. */
export function placed(message) {
  const plain = message.replace(/^[^\s:]+\.yaml(:\d+)?: /, "");
  const found = /^([\w.-]+): (.+)$/s.exec(plain);
  return found ? { path: found[1], text: found[2], plain } : { path: "", text: plain, plain };
}
