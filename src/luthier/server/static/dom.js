// Small means to build pages: every text goes in as text, never as markup.

const SVG = "http://www.w3.org/2000/svg";
const ICONS = new URL("icons.svg", import.meta.url);

/** An element with attributes, listeners (`onclick`) and children; false and null leave a thing out. */
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

/** Whether whoever is looking may launch experiments and register components. */
export const mayLaunch = document.documentElement.dataset.mayLaunch === "yes";

export const $ = (selector, within = document) => within.querySelector(selector);

/** Put children in place of what an element holds. */
export function fill(element, ...children) {
  element.replaceChildren(
    ...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false),
  );
}

/** Call `act` once nothing has happened for a while. */
export function paused(act, pause_ms) {
  let timer;
  return () => {
    clearTimeout(timer);
    timer = setTimeout(act, pause_ms);
  };
}

/** Call `act` at once, but never again within a while; what was asked for meanwhile happens once at its end. */
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

/** A block of text to read and to copy. */
export function codeBlock(text, kind = "") {
  return h(
    "div",
    { class: `code-block ${kind}` },
    h("pre", { tabindex: "0" }, text),
    copyButton(() => text),
  );
}

/** A button that copies a text and says so. */
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
    return copyOldWay(text); // pages that do not come by HTTPS or from this machine have no clipboard
  }
}

function copyOldWay(text) {
  const area = h("textarea", { class: "visually-hidden", value: text });
  document.body.append(area);
  area.select();
  const copied = document.execCommand("copy");
  area.remove();
  return copied;
}
