// The result of an experiment: verdict, key figures, and the configuration to use.

import { codeBlock, copyButton, fill, h } from "./dom.js";
import { config, count, duration, estimate, gain, measured, number, percent, value } from "./format.js";
import { isActive } from "./experiment-header.js";

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
        h("div", {}, h("p", { class: "sentence" }, result.verdict), beforeAndAfter(detail)),
        result.ending ? h("p", { class: "small muted" }, `The search ended: ${result.ending}.`) : null,
        detail.trouble.map((text) => h("p", { class: "small muted" }, text)),
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
  if (found)
    return lines(
      result.improved ? "yes" : "",
      found.text,
      found.interval ? `${found.interval} (95 % confidence)` : "not significant",
    );
  if (objectives.length > 1 && result.front.length)
    return lines("yes", count(result.front.length), "on the Pareto front");
  const [first, best] = [result.default?.estimate?.value, result.best?.estimate?.value];
  if (!(first > 0 && best > 0)) return lines("guess", "–", "gain over the default");
  const ratio = objectives[0].goal === "maximize" ? best / first : first / best;
  return lines("guess", `${number(ratio, 3)}×`, "estimated, not verified");
}

function beforeAndAfter({ result, settings: { objectives } }) {
  const { default: first, best } = result;
  if (!first?.estimate || !best?.estimate || objectives.length > 1) return null;
  const { measure } = objectives[0];
  return h(
    "p",
    { class: "muted" },
    `${measure}: ${estimate(first.estimate, measure)} with the default, ${estimate(best.estimate, measure)} with the best configuration`,
  );
}

/** The key figures: name, value, and a remark. */
export function factsOf(detail) {
  const noise = detail.result.noise;
  const { measure } = detail.settings.objectives[0];
  const spread = noise && (noise.relative ? percent(noise.deviation) : measured(noise.deviation, measure));
  return [
    ["Runs", count(detail.runs), `of ${count(detail.budget)}`],
    ["Run time", duration(detail.cost_s), ""],
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
  element.hidden = !recommended || (!isOther && isActive(detail));
  if (element.hidden) return;
  const title = isOther ? "Configuration to use" : "Keep the default";
  const why =
    detail.status === "finished"
      ? "No configuration is significantly better."
      : "No configuration is significantly better yet; the best one is verified at the end.";
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

function chip(name, one, before) {
  const changed = before !== undefined && before !== one;
  return h(
    "span",
    { class: changed ? "chip changed" : "chip" },
    `${name}=`,
    changed ? h("s", {}, value(before)) : "",
    changed ? " " : "",
    h("b", {}, value(one)),
  );
}
