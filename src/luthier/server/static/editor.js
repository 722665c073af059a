// A field for scripts and YAML with line numbers. Tab indents; Escape, then Tab, leaves the field.

import { fill, h } from "./dom.js";

const INDENT = "  ";

/** An editor with a label. `mark(line)` marks the line of an error. */
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
    // after Escape, Tab moves to the next field
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

/** Insert a text at the cursor so that it can be undone. */
function insert(area, text) {
  if (!document.execCommand("insertText", false, text)) {
    area.setRangeText(text, area.selectionStart, area.selectionEnd, "end");
    area.dispatchEvent(new Event("input", { bubbles: true }));
  }
}
