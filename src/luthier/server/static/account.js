import { get, post, put, remove } from "./api.js";
import { $, codeBlock, dataTable, fill, h } from "./dom.js";
import { ago, moment } from "./format.js";
import { confirmDialog, attempt, showMessage } from "./messages.js";

async function tokens() {
  const list = await get("/me/tokens");
  fill(
    $("#tokens"),
    list.length ? table(list) : h("p", { class: "muted", style: "padding: 0 1.4rem 1.3rem" }, "You have no tokens."),
  );
}

function table(list) {
  const row = (one) =>
    h(
      "tr",
      {},
      h("td", {}, one.label),
      h("td", {}, ago(one.created_at)),
      h("td", {}, one.used_at ? ago(one.used_at) : "never"),
      h("td", {}, one.expires_at ? moment(one.expires_at) : "never"),
      h(
        "td",
        { class: "right" },
        h("button", { type: "button", class: "danger tiny", onclick: () => revoke(one) }, "Revoke"),
      ),
    );
  return dataTable(["Label", "Created", "Last used", "Expires", ""], list.map(row));
}

async function revoke(one) {
  if (!(await confirmDialog(`Revoke ${one.label}?`, "Programs that use it will lose access.", "Revoke"))) return;
  await attempt(() => remove(`/me/tokens/${one.id}`));
  await attempt(tokens);
}

$("#token").addEventListener("submit", async (event) => {
  event.preventDefault();
  const { label, days } = event.target.elements;
  const body = { label: label.value, ...(days.value ? { days: Number(days.value) } : {}) };
  const made = await attempt(() => post("/me/tokens", body));
  if (made === null) return;
  fill($("#made"), h("p", { class: "label" }, "Copy the token now; it is not shown again."), codeBlock(made.token));
  label.value = "";
  await attempt(tokens);
});

$("#password")?.addEventListener("submit", async (event) => {
  event.preventDefault();
  const form = event.target;
  const problem = $(".problem", form);
  problem.textContent = "";
  try {
    await put("/me/password", { old: form.elements.old?.value ?? "", new: form.elements.new.value });
    form.reset();
    showMessage("Your password was changed.");
  } catch (error) {
    problem.textContent = error.message;
  }
});

await attempt(tokens);
