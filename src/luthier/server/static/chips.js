// One parameter of a configuration, marked if it differs from the default.

import { h } from "./dom.js";
import { value } from "./format.js";

/** A parameter with its value; a `before` that differs is struck out. */
export function chip(name, one, before) {
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
