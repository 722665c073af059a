import { get, post, put, remove } from "./api.js";
import { $, codeBlock, fill, h } from "./dom.js";
import { ago, moment } from "./format.js";
import { ask, attempt, say } from "./say.js";

async function tokens() {
  const list = await get("/me/tokens");
  fill(
    $("#tokens"),
    list.length ? table(list) : h("p", { class: "muted", style: "padding: 0 1.4rem 1.3rem" }, "You have no tokens."),
  );
}

function table(list) {
  return h(
    "table",
    {},
    h(
      "thead",
      {},
      h(
        "tr",
        {},
        h("th", {}, "For"),
        h("th", {}, "Made"),
        h("th", {}, "Last used"),
        h("th", {}, "Good until"),
        h("th", {}),
      ),
    ),
    h(
      "tbody",
      {},
      list.map((one) =>
        h(
          "tr",
          {},
          h("td", {}, one.label),
          h("td", {}, ago(one.created_at)),
          h("td", {}, one.used_at ? ago(one.used_at) : "never"),
          h("td", {}, one.expires_at ? moment(one.expires_at) : "for ever"),
          h(
            "td",
            { class: "right" },
            h("button", { type: "button", class: "danger tiny", onclick: () => revoke(one) }, "Revoke"),
          ),
        ),
      ),
    ),
  );
}

async function revoke(one) {
  if (!(await ask(`Revoke ${one.label}?`, "Programs that use it can no longer come in.", "Revoke"))) return;
  await attempt(() => remove(`/me/tokens/${one.id}`));
  await attempt(tokens);
}

$("#token").addEventListener("submit", async (event) => {
  event.preventDefault();
  const { label, days } = event.target.elements;
  const wish = { label: label.value, ...(days.value ? { days: Number(days.value) } : {}) };
  const made = await attempt(() => post("/me/tokens", wish));
  if (made === null) return;
  fill($("#made"), h("p", { class: "label" }, "Copy it now; it is not shown again."), codeBlock(made.token));
  label.value = "";
  await attempt(tokens);
});

$("#password")?.addEventListener("submit", async (event) => {
  event.preventDefault();
  const form = event.target;
  const problem = $(".problem", form);
  problem.textContent = "";
  try {
    await put("/me/password", { old: form.elements.old.value, new: form.elements.new.value });
    form.reset();
    say("Your password is changed.");
  } catch (error) {
    problem.textContent = error.message;
  }
});

await attempt(tokens);
