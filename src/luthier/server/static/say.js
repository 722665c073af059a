// Messages to people: short ones in the corner, and questions.

import { h, icon } from "./dom.js";

const shelf = h("div", { class: "toasts", role: "status", "aria-live": "polite" });
document.body.append(shelf);

/** Say something in the corner for a while; trouble stays longer. */
export function say(text, { bad = false } = {}) {
  const close = h("button", { type: "button", "aria-label": "Close" }, icon("close"));
  const toast = h(
    "div",
    { class: bad ? "toast bad" : "toast" },
    icon(bad ? "warning" : "check"),
    h("span", {}, text),
    close,
  );
  close.addEventListener("click", () => toast.remove());
  shelf.append(toast);
  setTimeout(() => toast.remove(), bad ? 12000 : 4000);
}

/** Do something; what goes wrong is said, and null comes back. */
export async function attempt(act) {
  try {
    return await act();
  } catch (error) {
    if (error.name === "AbortError") return null;
    say(error.message, { bad: true });
    return null;
  }
}

/** Ask before something that cannot be undone. */
export function ask(title, text, yes) {
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

/** A line of text inside a page: trouble, a remark, or that all is well. */
export function line(text, kind = "") {
  const signs = { good: "check", calm: "edit" };
  return h("div", { class: `line-problem ${kind}` }, icon(signs[kind] ?? "warning"), h("span", {}, text));
}
