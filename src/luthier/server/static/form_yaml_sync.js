// One document in two views, a form and a YAML text. The view that the user edits is never overwritten: only the other
// view is updated, after a pause or when it is shown. The text keeps its comments until the form is used.

import { post } from "./api.js";
import { $, debounced } from "./dom.js";
import { keepDraft, takeDraft } from "./drafts.js";
import { attempt, showMessage } from "./messages.js";

const PAUSE_MS = 450;

export class FormYamlSync {
  /** `form` has `read()` and `show(document)`; `check(text)` checks a text; `checked(answer)` shows the result. */
  constructor({ form, formElement, editor, editorElement, check, checked }) {
    Object.assign(this, { form, formElement, editor, editorElement, check, checked });
    this.editedView = "form";
    this.edits = 0;
    this.upToDate = false;
    this.answer = null;
    this.answeredAt = -1;
    this.isKept = false;
    addEventListener("luthier-logged-out", () => this.keep());
    this.later = debounced(() => attempt(() => this.settle()), PAUSE_MS);
    formElement.addEventListener("input", () => this.note("form"));
    formElement.addEventListener("change", () => this.note("form"));
    formElement.addEventListener("submit", (event) => event.preventDefault());
    editor.area.addEventListener("input", () => this.note("yaml"));
    for (const name of ["form", "yaml"])
      $(`#tab-${name}`).addEventListener("click", () => attempt(() => this.showView(name)));
    $("[role=tablist]").addEventListener("keydown", (event) => {
      if (event.key !== "ArrowLeft" && event.key !== "ArrowRight") return;
      attempt(() => this.showView(this.shown === "form" ? "yaml" : "form"));
    });
  }

  get shown() {
    return this.formElement.hidden ? "yaml" : "form";
  }

  /** Start with a text. */
  async begin(text, view = "form") {
    this.editor.value = text;
    this.editedView = "yaml";
    this.upToDate = false;
    await this.showView(view);
    await this.settle();
  }

  /** Whether something was typed that would be lost if the page was left. */
  get hasUnsaved() {
    return this.edits > 0 && !this.isKept;
  }

  /** Keep what was typed until the user has logged in again. */
  keep() {
    if (this.edits === 0) return;
    const { editedView: view, shown } = this;
    this.isKept = keepDraft({ view, shown, typed: view === "form" ? this.form.read() : this.editor.value });
  }

  /** Show what was typed before the session ended; false if nothing was kept. */
  async restore() {
    const draft = takeDraft();
    if (draft === null) return false;
    if (draft.view === "form") await this.form.show(draft.typed);
    else this.editor.value = draft.typed;
    this.note(draft.view);
    await this.showView(draft.shown);
    await this.settle();
    showMessage("Your session had ended; what you had typed is here again.");
    return true;
  }

  note(view) {
    this.editedView = view;
    this.edits += 1;
    this.upToDate = false;
    this.later();
  }

  /** The document as a text, with everything typed so far. */
  async text() {
    while (this.editedView === "form" && !this.upToDate) await this.writeText();
    return this.editor.value;
  }

  async settle() {
    const at = this.edits;
    const text = await this.text();
    if (at !== this.edits) return;
    const answer = await this.check(text);
    if (at !== this.edits) return;
    [this.answer, this.answeredAt] = [answer, at];
    this.checked(answer);
  }

  async writeText() {
    const at = this.edits;
    const { yaml } = await post("/experiments/yaml", { document: this.form.read() });
    if (at !== this.edits) return;
    this.editor.value = yaml;
    this.upToDate = true;
  }

  async readText() {
    const at = this.edits;
    const { document } = await post("/experiments/document", { yaml: this.editor.value });
    if (at !== this.edits) return;
    await this.form.show(document);
    this.upToDate = true;
  }

  /** Show one of the views; while the text is not valid YAML, the form cannot be shown. */
  async showView(view) {
    if (view === "yaml") await this.text();
    else if (this.editedView === "yaml" && !this.upToDate) await this.readText();
    this.formElement.hidden = view !== "form";
    this.editorElement.hidden = view !== "yaml";
    for (const name of ["form", "yaml"]) {
      const tab = $(`#tab-${name}`);
      tab.setAttribute("aria-selected", name === view);
      tab.tabIndex = name === view ? 0 : -1;
    }
    if (document.activeElement?.closest("[role=tablist]")) $(`#tab-${view}`).focus();
    if (this.answeredAt === this.edits) this.checked(this.answer); // the message differs between the views
  }
}

/** Split an error of the server, such as `x.yaml:3: experiment.budget: ...`, into a path in the document and a text. */
export function splitLocation(message) {
  const plain = message.replace(/^[^\s:]+\.yaml(:\d+)?: /, "");
  const found = /^([\w.-]+): (.+)$/s.exec(plain);
  return found ? { path: found[1], text: found[2], plain } : { path: "", text: plain, plain };
}
