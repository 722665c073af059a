// Helpers to build pages. Texts are always inserted as text, never as HTML.

const SVG = "http://www.w3.org/2000/svg";
const ICONS = new URL("icons.svg", import.meta.url);

/** An element with attributes, listeners (`onclick`) and children; false and null are ignored. */
export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === false || value === null || value === undefined) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "value") element.value = value;
    else if (name === "dataset") Object.assign(element.dataset, value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(
    ...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false),
  );
  return element;
}

/** One of the icons, as decoration. */
export function icon(name) {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("class", "icon");
  svg.setAttribute("aria-hidden", "true");
  const use = document.createElementNS(SVG, "use");
  use.setAttribute("href", `${ICONS.href}#${name}`);
  svg.append(use);
  return svg;
}

/** Whether the user may launch experiments and register components. */
export const mayLaunch = document.documentElement.dataset.mayLaunch === "yes";

export const $ = (selector, within = document) => within.querySelector(selector);

/** Replace the contents of an element. */
export function fill(element, ...children) {
  element.replaceChildren(
    ...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false),
  );
}

/** A function that calls `act` after a pause without further calls. */
export function debounced(act, pause_ms) {
  let timer;
  return () => {
    clearTimeout(timer);
    timer = setTimeout(act, pause_ms);
  };
}

/** A function that calls `act` immediately, but at most once per pause; calls in between lead to one call at its end. */
export function throttled(act, pause_ms) {
  let last = -Infinity;
  let timer = null;
  return () => {
    if (timer !== null) return;
    const wait = Math.max(0, last + pause_ms - performance.now());
    timer = setTimeout(() => {
      timer = null;
      last = performance.now();
      act();
    }, wait);
  };
}

/** A part of a page with a heading. */
export function card(title, explanation, body, kind = "") {
  return h(
    "section",
    { class: `card ${kind}` },
    h("header", {}, h("h2", {}, title), explanation ? h("p", {}, explanation) : null),
    h("div", { class: "body" }, body),
  );
}

/** A table; headings are texts or elements. */
export function dataTable(headings, rows, attributes = {}) {
  const cells = headings.map((one) => (typeof one === "string" ? h("th", {}, one) : one));
  return h("table", attributes, h("thead", {}, h("tr", {}, cells)), h("tbody", {}, rows));
}

/** A block of text with a copy button. */
export function codeBlock(text, kind = "") {
  return h(
    "div",
    { class: `code-block ${kind}` },
    h("pre", { tabindex: "0" }, text),
    copyButton(() => text),
  );
}

/** A button that copies a text. */
export function copyButton(text) {
  const button = h(
    "button",
    { type: "button", class: "tiny square", "aria-label": "Copy", title: "Copy" },
    icon("copy"),
  );
  button.addEventListener("click", async () => {
    const copied = await copyText(text());
    fill(button, icon(copied ? "check" : "warning"));
    button.setAttribute("aria-label", copied ? "Copied" : "Select the text by hand");
    setTimeout(() => {
      fill(button, icon("copy"));
      button.setAttribute("aria-label", "Copy");
    }, 1600);
  });
  return button;
}

async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copyBySelection(text); // without HTTPS or localhost, browsers offer no clipboard
  }
}

function copyBySelection(text) {
  const area = h("textarea", { class: "visually-hidden", value: text });
  document.body.append(area);
  area.select();
  const copied = document.execCommand("copy");
  area.remove();
  return copied;
}
