// Common to all pages: theme button, menus, logout, and the / key for the search field.

import { remove } from "./api.js";
import { $, fill, icon } from "./dom.js";
import { forgetDraft, forgetOthersDraft } from "./drafts.js";
import { attempt } from "./messages.js";

forgetOthersDraft();

const toggle = $("#theme");

function showTheme() {
  const dark = document.documentElement.dataset.theme === "dark";
  toggle?.setAttribute("aria-label", dark ? "Light theme" : "Dark theme");
  if (toggle) fill(toggle, icon(dark ? "sun" : "moon"));
}

toggle?.addEventListener("click", () => dispatchEvent(new Event("luthier-toggle-theme")));
addEventListener("luthier-theme", showTheme);
showTheme();

$("#logout")?.addEventListener("click", async () => {
  if ((await attempt(() => remove("/session").then(() => true))) !== true) return;
  forgetDraft();
  location.assign("/login");
});

function closeMenus(except) {
  for (const menu of document.querySelectorAll("details.menu[open]")) {
    if (menu !== except) menu.open = false;
  }
}

document.addEventListener("click", (event) => closeMenus(event.target.closest("details.menu")));
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") {
    const open = $("details.menu[open]");
    closeMenus(null);
    open?.querySelector("summary").focus();
  }
  const typing = event.target.closest("input, textarea, select, [contenteditable]");
  if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey && !event.altKey && $("#search")) {
    event.preventDefault();
    $("#search").focus();
  }
});
