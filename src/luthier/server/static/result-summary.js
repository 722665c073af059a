// The result of an experiment: verdict, key figures, and the configuration to use.

import { chip } from "./chips.js";
import { codeBlock, copyButton, dataTable, fill, h } from "./dom.js";
import { config, count, duration, gain, measured, percent, sentence } from "./format.js";
import { isActive } from "./experiment-header.js";

/** The facts that have a place of their own on the page; all others stand under the verdict. */
const OWN_PANEL = ["verdict", "recommendation", "failures", "explanation", "waiting"];

/** The result so far, as a sentence and as key figures. */
export function showVerdict(element, detail) {
  const result = detail.result;
  const found = gain({ ...result.speedup, speedup: result.speedup?.value, improved: result.improved });
  fill(
    element,
    h(
      "div",
      { class: "verdict" },
      h("div", {}, headline(detail, found)),
      h(
        "div",
        { class: "stack" },
        h("p", { class: "sentence" }, result.verdict),
        bestSoFar(detail),
        h("div", { class: "told" }, result.facts.filter((fact) => !OWN_PANEL.includes(fact.name)).map(factBody)),
      ),
    ),
    h(
      "dl",
      { class: "facts" },
      factsOf(detail).map(([name, text, under]) =>
        h("div", {}, h("dt", {}, name), h("dd", {}, text, under ? h("small", {}, ` ${under}`) : "")),
      ),
    ),
  );
}

function headline({ result, settings: { objectives } }, found) {
  const lines = (kind, big, under) => [h("div", { class: `big ${kind}` }, big), h("div", { class: "muted" }, under)];
  if (found?.improved) return lines("yes", found.text, `${found.interval} (95 % confidence)`);
  if (found) return lines("", "None proven", found.interval ? `${found.interval} (95 % confidence)` : "too few pairs of runs");
  if (objectives.length > 1 && result.front.length)
    return lines("yes", count(result.front.length), "on the Pareto front");
  return lines("guess", "–", "gain over the default, not verified");
}

/** Everything that the server says about a fact: sentences, a table, and texts to read as they are. */
function factBody({ sentences, table, texts }) {
  return [
    sentences.map((text) => h("p", { class: "small muted" }, sentence(text))),
    table?.rows.length
      ? h(
          "div",
          { class: "scroll" },
          dataTable(
            table.headings,
            table.rows.map((row) =>
              h(
                "tr",
                {},
                row.map((text) => h("td", {}, text)),
              ),
            ),
          ),
        )
      : null,
    texts.map(([heading, text]) => [h("p", { class: "label" }, heading), codeBlock(text, "log")]),
  ];
}

/** The best configuration of an experiment that has not ended, if it is not the default. */
function bestSoFar({ status, result: { best, default: first } }) {
  if (["finished", "no result"].includes(status) || !best || !first || config(best.config) === config(first.config))
    return null;
  return h(
    "div",
    { class: "best-so-far" },
    h("p", { class: "small muted" }, "Best configuration so far, not verified yet; differences from the default are marked."),
    h(
      "div",
      { class: "chips" },
      Object.entries(best.config).map(([name, one]) => chip(name, one, first.config[name])),
    ),
  );
}

function timeFacts(detail) {
  const { elapsed_s: elapsed, left_s: left } = detail;
  return [
    ["Elapsed", elapsed === null ? "–" : duration(elapsed), ""],
    ...(left === null ? [] : [[isActive(detail) ? "Time left" : "Left if resumed", `≤ ${duration(left)}`, "estimate"]]),
  ];
}

/** The key figures: name, value, and a remark. */
export function factsOf(detail) {
  const noise = detail.result.noise;
  const { measure } = detail.settings.objectives[0];
  const spread = noise && (noise.relative ? percent(noise.deviation) : measured(noise.deviation, measure));
  return [
    [
      "Runs",
      count(detail.runs - detail.result.lost),
      `of ${count(detail.budget)}${detail.result.lost ? `, ${count(detail.result.lost)} more lost` : ""}`,
    ],
    ...timeFacts(detail),
    ["Run time", duration(detail.cost_s), "of all runs"],
    [
      "Explored",
      detail.explored === null ? "–" : percent(detail.explored, 3),
      detail.size === null ? "continuous" : `of ${count(detail.size)}`,
    ],
    ["Noise", spread || "–", spread ? "between runs" : "no repeated runs"],
    [
      "Slots busy",
      detail.utilisation === null ? "–" : percent(Math.min(1, detail.utilisation), 3),
      `of ${detail.settings.slots}`,
    ],
  ];
}

/** The configuration to use, with a copy button. */
export function showUse(element, detail) {
  const { recommended, default: first, improved, command } = detail.result;
  const isOther = improved || detail.settings.objectives.length > 1;
  element.hidden = !recommended || (!isOther && detail.status !== "finished");
  if (element.hidden) return;
  const title = isOther ? "Configuration to use" : "Keep the default";
  const why = "No configuration is significantly better.";
  fill(
    element,
    h("header", {}, h("h2", {}, title), h("p", {}, isOther ? "Differences from the default are marked." : why)),
    h(
      "div",
      { class: "body stack" },
      h(
        "div",
        { class: "chips" },
        Object.entries(recommended).map(([name, one]) => chip(name, one, first?.config[name])),
      ),
      command
        ? codeBlock(command)
        : h(
            "div",
            {},
            copyButton(() => config(recommended)),
          ),
    ),
  );
}

/** What the best configuration does differently from the default, if it was explained. */
export function showExplanation(element, { explanation }) {
  element.hidden = !explanation;
  if (element.hidden) return;
  const differences = explanation.differences.filter((one) => one.is_large);
  fill(
    element,
    h(
      "header",
      {},
      h("h2", {}, "What the best configuration does differently"),
      h("p", {}, [explanation.note, ...explanation.notes].join(" ")),
      h("p", {}, `Default: ${config(explanation.default.config)}. Best: ${config(explanation.best.config)}.`),
    ),
    h(
      "div",
      { class: "body stack" },
      h(
        "ul",
        {},
        explanation.sentences.map((one) => h("li", {}, one)),
      ),
      differences.length
        ? dataTable(
            ["", h("th", { class: "number" }, "Default"), h("th", { class: "number" }, "Best"), "Difference"],
            differences.map((one) =>
              h(
                "tr",
                {},
                h("td", {}, one.label),
                h("td", { class: "number" }, one.default_text),
                h("td", { class: "number" }, one.best_text),
                h("td", {}, one.change),
              ),
            ),
          )
        : null,
    ),
  );
}

/** Why runs gave no number and, if none gave one, what the first failing run wrote. */
export function showFailures(element, { result }) {
  const fact = result.facts.find((one) => one.name === "failures");
  element.hidden = !fact;
  if (element.hidden) return;
  const why = result.best === null ? h("p", {}, "No configuration can be recommended.") : null;
  fill(element, h("header", {}, h("h2", {}, fact.title), why), h("div", { class: "body stack" }, factBody(fact)));
}
