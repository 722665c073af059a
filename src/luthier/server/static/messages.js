// Messages for the user: short notifications in the corner, confirmation dialogs, and status lines.

import { h, icon } from "./dom.js";

const toasts = h("div", { class: "toasts", role: "status", "aria-live": "polite" });
document.body.append(toasts);

/** Show a notification in the corner for a few seconds; errors stay longer. */
export function showMessage(text, { bad = false } = {}) {
  const close = h("button", { type: "button", "aria-label": "Close" }, icon("close"));
  const toast = h(
    "div",
    { class: bad ? "toast bad" : "toast" },
    icon(bad ? "warning" : "check"),
    h("span", {}, text),
    close,
  );
  close.addEventListener("click", () => toast.remove());
  toasts.append(toast);
  setTimeout(() => toast.remove(), bad ? 12000 : 4000);
}

/** Call a function; on an error, show its message and return null. */
export async function attempt(act) {
  try {
    return await act();
  } catch (error) {
    if (error.name === "AbortError") return null;
    showMessage(error.message, { bad: true });
    return null;
  }
}

/** A button with an icon, disabled while its action runs; an error is shown as a message. */
export function actionButton(sign, text, act, kind = "") {
  const made = h("button", { type: "button", class: kind }, icon(sign), text);
  made.addEventListener("click", async () => {
    made.disabled = true;
    await attempt(act);
    made.disabled = false;
  });
  return made;
}

/** Ask for confirmation before an action that cannot be undone. */
export function confirmDialog(title, text, yes) {
  return new Promise((answer) => {
    const dialog = h(
      "dialog",
      { "aria-labelledby": "question" },
      h("h2", { id: "question" }, title),
      h("p", {}, text),
      h(
        "form",
        { method: "dialog", class: "actions" },
        h("button", { value: "no", autofocus: true }, "Cancel"),
        h("button", { value: "yes", class: "danger" }, yes),
      ),
    );
    dialog.addEventListener("close", () => {
      dialog.remove();
      answer(dialog.returnValue === "yes");
    });
    document.body.append(dialog);
    dialog.showModal();
  });
}

/** A line of text inside a page: an error, a note, or a success. */
export function statusLine(text, kind = "") {
  const signs = { good: "check", calm: "edit" };
  return h("div", { class: `line-problem ${kind}` }, icon(signs[kind] ?? "warning"), h("span", {}, text));
}
