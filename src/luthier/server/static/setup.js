// The settings of an experiment.

import { get } from "./api.js";
import { card, codeBlock, fill, h } from "./dom.js";
import { count, value } from "./format.js";
import { statusLine } from "./messages.js";

/** Show the settings, the search space, the script and the source of an experiment. */
export function showSetup(panel, path, detail) {
  const script = h("div", {}, "Loading…");
  const source = h("div", {}, "Loading…");
  fill(
    panel,
    h(
      "div",
      { class: "cards two" },
      detail.settings_texts.map(([topic, rows]) =>
        card(topic, "", pairs(topic === "Runs" ? [...rows, ...detail.machine] : rows)),
      ),
    ),
    card("Search space", detail.size === null ? "Continuous." : `${count(detail.size)} configurations.`, space(detail)),
    card("Script", "The script of the recommended configuration.", script),
    card("Source", "", source),
  );
  const said = (text) => h("p", { class: "muted" }, text);
  if (detail.has_script) show(script, `${path}/script`, (found) => codeBlock(found.script));
  else fill(script, said("This experiment tunes a Python function; there is no script."));
  if (!detail.has_script) fill(source, said("This experiment was not described by a file."));
  else
    show(source, `${path}/source`, ({ yaml, is_written: isWritten, notes }) =>
      h(
        "div",
        { class: "stack" },
        isWritten ? null : said("Generated: the experiment was started on the command line."),
        notes.map((note) => said(`If it is started from this text, ${note}.`)),
        codeBlock(yaml),
      ),
    );
}

/** Show what the server answers; an error is marked, so that it is tried again when the connection is back. */
async function show(place, address, shown) {
  try {
    fill(place, shown(await get(address)));
  } catch (error) {
    fill(place, statusLine(error.message));
    place.dataset.failed = "yes";
  }
}

/** The parameters of a space and its constraints. */
export function space(detail) {
  return h(
    "div",
    { class: "scroll" },
    h(
      "table",
      {},
      h("thead", {}, h("tr", {}, h("th", {}, "Parameter"), h("th", {}, "Values"), h("th", {}, "Default"))),
      h(
        "tbody",
        {},
        detail.parameters.map((one) =>
          h(
            "tr",
            {},
            h("td", { class: "mono" }, one.name),
            h("td", {}, valuesText(one)),
            h("td", { class: "mono" }, value(one.default)),
          ),
        ),
      ),
    ),
    detail.constraints.length
      ? h("p", { class: "small muted" }, `Constraints: ${detail.constraints.join(" and ")}.`)
      : null,
  );
}

function valuesText(one) {
  if (one.kind === "choice") return one.values.map(value).join(", ");
  const step =
    one.step === null || (one.step === 1 && one.scale === "linear")
      ? ""
      : `, ${one.scale === "log" ? "×" : "step "}${one.step}`;
  return `${one.low}${one.unit} to ${one.high}${one.unit}${step}`;
}

/** Names and texts, one pair a line. */
export function pairs(entries) {
  return h(
    "dl",
    { class: "pairs" },
    entries.map(([name, text]) => [h("dt", {}, name), h("dd", {}, String(text))]),
  );
}
