// Describe an experiment, check it and preview its script while typing, and launch it.

import { get, newKey, post } from "./api.js";
import { $, codeBlock, fill, h } from "./dom.js";
import { codeEditor } from "./editor.js";
import { ExperimentForm } from "./experiment-form.js";
import { count } from "./format.js";
import { attempt, showMessage, statusLine } from "./messages.js";
import { FormYamlSync, splitLocation } from "./form_yaml_sync.js";

const editor = codeEditor("Experiment as YAML", { rows: 30 });
const launch = $("#launch");
const answer = $("#check");
const [components, options] = await Promise.all([get("/components"), get("/options")]);
const form = new ExperimentForm($("#form"), components, options, () => views.note("form"));
const attempted = { text: null, key: "" };
let launched = false;

const views = new FormYamlSync({
  form,
  formElement: $("#form"),
  editor,
  editorElement: $("#yaml"),
  check: (yaml) => (isEmpty() ? null : post("/experiments/check", { yaml })),
  checked,
});

function isEmpty() {
  return views.editedView === "form" && form.name === "";
}

function checked(found) {
  launch.disabled = !found?.ok;
  $("#dry-run").hidden = !found?.ok;
  editor.mark(null);
  form.showProblem("", "");
  if (found === null) fill(answer, statusLine("Choose a component, or describe one here.", "calm"));
  else if (found.ok) showGood(found);
  else showBad(found);
}

function showBad(found) {
  const { path, text, plain } = splitLocation(found.error);
  editor.mark(found.line);
  form.showProblem(path, text);
  fill(answer, statusLine(views.shown === "yaml" && found.line ? `Line ${found.line}: ${plain}` : plain));
}

function showGood(found) {
  const size = found.size === null ? "a continuous space" : `${count(found.size)} configurations`;
  const parameters = found.parameters.length;
  fill(
    answer,
    statusLine(`${parameters} parameter${parameters === 1 ? "" : "s"}, ${size}.`, "good"),
    found.notes.map((note) => statusLine(note, "note")),
  );
  const shown = $("#script pre");
  if (shown?.textContent === found.script) return;
  fill(
    $("#script"),
    codeBlock(found.script),
    found.command ? h("p", { class: "hint" }, "Run with: ", h("code", {}, found.command)) : null,
  );
}

async function start() {
  if (launch.disabled) return;
  launch.disabled = true;
  const made = await attempt(async () => {
    const yaml = await views.text();
    // the same text has the same key, so a retry does not launch a second experiment
    if (attempted.text !== yaml) Object.assign(attempted, { text: yaml, key: newKey() });
    return post("/experiments", { yaml }, { headers: { "Idempotency-Key": attempted.key } });
  });
  launch.disabled = false;
  if (made === null) return;
  launched = true;
  location.assign(`/experiments/${made.id}`);
}

launch.addEventListener("click", start);
addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
  event.preventDefault();
  attempt(async () => {
    await views.settle();
    await start();
  });
});
addEventListener("beforeunload", (event) => {
  if (views.hasUnsaved && !launched) event.preventDefault();
});

$("#yaml").append(
  h(
    "div",
    { class: "card pad stack" },
    editor.element,
    h(
      "p",
      { class: "hint" },
      "The Tab key indents. To leave the field, press Escape, then Tab. Comments are kept until you use the form.",
    ),
  ),
);

/** The text of an experiment that begins with what another one found. */
async function learningFrom(experiment, yaml) {
  const { document: described } = await post("/experiments/document", { yaml });
  described.experiment = { ...described.experiment, after: [experiment] };
  return (await post("/experiments/yaml", { document: described })).yaml;
}

const query = new URLSearchParams(location.search);
const isRestored = (await attempt(() => views.restore())) === true;
if (isRestored) {
  // the form is as it was
} else if (query.has("clone")) {
  await attempt(async () => {
    const { yaml, notes } = await get(`/experiments/${encodeURIComponent(query.get("clone"))}/source`);
    for (const note of notes) showMessage(`In this copy ${note}.`);
    await views.begin(query.has("after") ? await learningFrom(Number(query.get("after")), yaml) : yaml);
  });
} else {
  await form.show({ experiment: { budget: 60 } });
  if (query.has("component")) {
    form.chooser.value = query.get("component");
    await form.choose(form.chooser.value);
  } else if (components.length === 0) checked(null);
  await views.settle();
}
document.documentElement.dataset.ready = "yes";
