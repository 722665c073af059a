// One component, as a form or as YAML.

import { get, post, put, remove } from "./api.js";
import { showApprovals } from "./approvals.js";
import { ComponentForm } from "./component-form.js";
import { $, fill, h, icon, mayLaunch } from "./dom.js";
import { codeEditor } from "./editor.js";
import { field, showProblem } from "./fields.js";
import { confirmDialog, attempt, statusLine, showMessage } from "./messages.js";
import { FormYamlSync, splitLocation } from "./form_yaml_sync.js";

const editorArea = $(".editor-layout");
const registered = editorArea.dataset.name;
const save = $("#save");
const answer = $("#check");
const editor = codeEditor("Component as YAML", { rows: 30 });
const name = h("input", { placeholder: "webserver", spellcheck: "false", value: registered });
const inner = new ComponentForm(() => views.note("form"));
let saved = false;

name.disabled = registered !== "";
fill(
  $("#form"),
  h(
    "section",
    { class: "card" },
    h(
      "div",
      { class: "body stack", dataset: { place: "components" } },
      field("Name", name, { hint: "Letters, digits, _ . and -" }),
      inner.element,
    ),
  ),
);
$("#yaml").append(
  h(
    "div",
    { class: "card pad stack" },
    editor.element,
    h("p", { class: "hint" }, "The Tab key indents. To leave the field, press Escape, then Tab."),
  ),
);

let rest = {};
const views = new FormYamlSync({
  form: {
    read: () => ({ ...rest, components: { [name.value.trim() || "name"]: inner.read() } }),
    show: ({ components, ...others }) => {
      rest = others;
      const [first] = Object.keys(components ?? {});
      if (first !== undefined) name.value = first;
      inner.show(components?.[first]);
    },
  },
  formElement: $("#form"),
  editor,
  editorElement: $("#yaml"),
  check: (yaml) => (views.editedView === "form" && name.value.trim() === "" ? null : post("/components/check", { yaml })),
  checked,
});

function checked(found) {
  editor.mark(null);
  showProblem($("#form"));
  const other = found?.ok && registered && found.names.join() !== registered;
  if (save) save.disabled = !found?.ok || other;
  if (found === null) fill(answer, statusLine("Enter a name and at least one parameter.", "calm"));
  else if (other)
    fill(answer, statusLine(`This page changes ${registered}; register ${found.names.join(", ")} as a new component.`));
  else if (found.ok) fill(answer, statusLine(`${found.names.join(", ")}: valid.`, "good"));
  else {
    const { path, text, plain } = splitLocation(found.error);
    editor.mark(found.line);
    inner.setDocumentPath(`components.${name.value.trim()}`);
    showProblem($("#form"), path, text);
    fill(answer, statusLine(views.shown === "yaml" && found.line ? `Line ${found.line}: ${plain}` : plain));
  }
}

async function store() {
  if (!save || save.disabled) return;
  save.disabled = true;
  const done = await attempt(async () => {
    const yaml = await views.text();
    return registered
      ? put(`/components/${encodeURIComponent(registered)}`, { yaml })
      : post("/components", { yaml, replace: false });
  });
  save.disabled = false;
  if (done === null) return;
  saved = true;
  if (registered) {
    showMessage("Saved.");
    await attempt(() => showApprovals(registered));
  } else location.assign("/components");
}

save?.addEventListener("click", store);
addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) attempt(() => views.settle().then(store));
});
addEventListener("beforeunload", (event) => {
  if (views.hasUnsaved && !saved && mayLaunch) event.preventDefault();
});

function showUses(uses) {
  $("#used-by").hidden = uses.length === 0;
  fill(
    $("#used-by ul"),
    uses
      .slice(0, 20)
      .map((one) =>
        h("li", {}, h("a", { href: `/experiments/${one.id}` }, one.name), h("span", { class: "muted" }, ` #${one.id}`)),
      ),
  );
}

function showActions(uses) {
  const drop = h("button", { type: "button", class: "danger" }, icon("trash"), "Delete");
  drop.addEventListener("click", async () => {
    const used = uses.length ? ` ${uses.length} experiments use it; they are not changed.` : "";
    if (!(await confirmDialog(`Delete ${registered}?`, `It will not be available for new experiments.${used}`, "Delete")))
      return;
    const done = await attempt(() => remove(`/components/${encodeURIComponent(registered)}`).then(() => true));
    if (done === null) return;
    saved = true;
    location.assign("/components");
  });
  fill(
    $("#actions"),
    mayLaunch && h("a", { class: "button", href: `/new?component=${encodeURIComponent(registered)}` }, "Tune this"),
    mayLaunch ? drop : null,
  );
}

if (registered) {
  await attempt(async () => {
    const found = await get(`/components/${encodeURIComponent(registered)}`);
    if (!(await views.restore())) await views.begin(found.yaml);
    showUses(found.used_by);
    showActions(found.used_by);
    await showApprovals(registered);
  });
} else if ((await attempt(() => views.restore())) !== true) {
  inner.show({});
  inner.add();
  name.focus();
  views.edits = 0;
  checked(null);
}
document.documentElement.dataset.ready = "yes";
