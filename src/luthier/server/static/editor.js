// A field for scripts and YAML: line numbers, and a Tab key that indents without holding anybody captive.

import { fill, h } from "./dom.js";

const INDENT = "  ";

/** An editor with a label. `mark(line)` shows where something is wrong. */
export function codeEditor(label, { rows = 12, placeholder = "", path = "" } = {}) {
  const gutter = h("div", { class: "gutter", "aria-hidden": "true" });
  const area = h("textarea", {
    class: "code",
    rows,
    placeholder,
    "aria-label": label,
    spellcheck: "false",
    autocapitalize: "off",
    autocomplete: "off",
    wrap: "off",
    dataset: path ? { path } : {},
  });
  const element = h("div", { class: "editor" }, gutter, area);
  let marked = null;
  let leaving = false;

  function number() {
    const count = area.value.split("\n").length;
    const lines = [];
    for (let at = 1; at <= count; at += 1) lines.push(at === marked ? h("b", {}, String(at)) : `${at}\n`);
    fill(gutter, lines);
    gutter.scrollTop = area.scrollTop;
  }

  area.addEventListener("scroll", () => (gutter.scrollTop = area.scrollTop));
  area.addEventListener("input", number);
  area.addEventListener("focus", () => (leaving = false));
  area.addEventListener("keydown", (event) => {
    if (event.key === "Tab" && !event.shiftKey && !event.ctrlKey && !event.altKey && !leaving) {
      event.preventDefault();
      insert(area, INDENT);
    }
    // Escape, then Tab, goes on to the next field
    leaving = event.key === "Escape" || (leaving && event.key === "Shift");
  });
  number();

  return {
    element,
    area,
    get value() {
      return area.value;
    },
    set value(text) {
      if (area.value === text) return;
      area.value = text;
      number();
    },
    mark(line) {
      marked = line ?? null;
      element.classList.toggle("wrong", marked !== null);
      number();
    },
  };
}

/** Type a text where the cursor is, so that it can be undone like any other. */
function insert(area, text) {
  if (!document.execCommand("insertText", false, text)) {
    area.setRangeText(text, area.selectionStart, area.selectionEnd, "end");
    area.dispatchEvent(new Event("input", { bubbles: true }));
  }
}
