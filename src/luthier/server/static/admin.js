import { get, post, put, remove } from "./api.js";
import { $, codeBlock, dataTable, fill, h } from "./dom.js";
import { ago, moment } from "./format.js";
import { confirmDialog, attempt } from "./messages.js";

const entries = [];

async function users() {
  if ($("#users") === null) return; // the server has no accounts
  fill($("#users"), table(await get("/users")));
}

function table(list) {
  const role = (one) =>
    h(
      "select",
      { "aria-label": `Role of ${one.name}`, onchange: (event) => change(one, { role: event.target.value }) },
      ["submitter", "viewer", "user", "admin"].map((name) => h("option", { selected: name === one.role }, name)),
    );
  const button = (text, onclick, kind = "") => h("button", { type: "button", class: `tiny ${kind}`, onclick }, text);
  const row = (one) =>
    h(
      "tr",
      {},
      h("td", {}, h("b", {}, one.name)),
      h("td", { style: "width: 130px" }, role(one)),
      h("td", {}, ago(one.created_at)),
      h(
        "td",
        {},
        h("span", { class: `badge ${one.disabled ? "stopped" : "finished"}` }, one.disabled ? "disabled" : "enabled"),
      ),
      h(
        "td",
        {},
        h(
          "div",
          { class: "actions", style: "justify-content: flex-end" },
          button("Invite", () => invite(one.name)),
          button(one.disabled ? "Enable" : "Disable", () => change(one, { disabled: !one.disabled })),
          button("Delete", () => deleteUser(one.name), "danger"),
        ),
      ),
    );
  return dataTable(["Name", "Role", "Created", "Status", ""], list.map(row), { class: "people" });
}

async function change(one, values) {
  await attempt(() => put(`/users/${encodeURIComponent(one.name)}`, { role: one.role, ...values }));
  await attempt(users);
  await attempt(() => audit(true));
}

async function invite(name) {
  const made = await attempt(() => post(`/users/${encodeURIComponent(name)}/invitation`));
  if (made === null) return;
  fill(
    $("#invited"),
    h("p", { class: "label" }, `Send this link to ${name}. It works once, within a day.`),
    codeBlock(made.url),
  );
}

async function deleteUser(name) {
  if (!(await confirmDialog(`Delete ${name}?`, "Their experiments and their entries in the audit log are kept.", "Delete"))) return;
  await attempt(() => remove(`/users/${encodeURIComponent(name)}`));
  await attempt(users);
}

$("#user")?.addEventListener("submit", async (event) => {
  event.preventDefault();
  const { name, role } = event.target.elements;
  const made = await attempt(() =>
    put(`/users/${encodeURIComponent(name.value)}`, { role: role.value }).then(() => true),
  );
  if (made === null) return;
  await invite(name.value);
  name.value = "";
  await attempt(users);
  await attempt(() => audit(true));
});

async function audit(fresh) {
  if (fresh) entries.length = 0;
  const page = await get(`/audit?limit=50${entries.length ? `&before=${entries.at(-1).id}` : ""}`);
  entries.push(...page.items);
  const more =
    page.next === null
      ? null
      : h(
          "div",
          { class: "pager" },
          h("button", { type: "button", onclick: () => attempt(() => audit(false)) }, "Show more"),
        );
  const row = (one) =>
    h(
      "tr",
      {},
      h("td", { class: "nowrap", title: moment(one.at) }, ago(one.at)),
      h("td", {}, one.user),
      h("td", {}, one.action),
      h("td", {}, one.target),
      h("td", { class: "muted" }, one.detail),
    );
  fill(
    $("#audit"),
    entries.length
      ? dataTable(["Time", "User", "Action", "Target", "Details"], entries.map(row))
      : h("p", { class: "muted", style: "padding: 1rem 1.4rem" }, "No entries yet."),
    more,
  );
}

await attempt(users);
await attempt(() => audit(true));
