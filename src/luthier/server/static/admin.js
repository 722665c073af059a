import { get, post, put, remove } from "./api.js";
import { $, codeBlock, fill, h } from "./dom.js";
import { ago, moment } from "./format.js";
import { ask, attempt } from "./say.js";

const entries = [];

async function users() {
  if ($("#users") === null) return; // nobody has an account
  fill($("#users"), table(await get("/users")));
}

function table(list) {
  const role = (one) =>
    h(
      "select",
      { "aria-label": `Role of ${one.name}`, onchange: (event) => change(one, { role: event.target.value }) },
      ["viewer", "user", "admin"].map((name) => h("option", { selected: name === one.role }, name)),
    );
  return h(
    "table",
    { class: "people" },
    h(
      "thead",
      {},
      h("tr", {}, h("th", {}, "Name"), h("th", {}, "Role"), h("th", {}, "Since"), h("th", {}, "State"), h("th", {})),
    ),
    h(
      "tbody",
      {},
      list.map((one) =>
        h(
          "tr",
          {},
          h("td", {}, h("b", {}, one.name)),
          h("td", { style: "width: 130px" }, role(one)),
          h("td", {}, ago(one.created_at)),
          h(
            "td",
            {},
            h("span", { class: `badge ${one.disabled ? "stopped" : "finished"}` }, one.disabled ? "shut" : "open"),
          ),
          h(
            "td",
            {},
            h(
              "div",
              { class: "actions", style: "justify-content: flex-end" },
              h("button", { type: "button", class: "tiny", onclick: () => invite(one.name) }, "Invite"),
              h(
                "button",
                { type: "button", class: "tiny", onclick: () => change(one, { disabled: !one.disabled }) },
                one.disabled ? "Open" : "Shut",
              ),
              h("button", { type: "button", class: "danger tiny", onclick: () => forget(one.name) }, "Delete"),
            ),
          ),
        ),
      ),
    ),
  );
}

async function change(one, wish) {
  await attempt(() => put(`/users/${encodeURIComponent(one.name)}`, { role: one.role, ...wish }));
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

async function forget(name) {
  if (!(await ask(`Delete ${name}?`, "Their experiments and their lines of the audit log stay.", "Delete"))) return;
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
      ? h(
          "table",
          {},
          h(
            "thead",
            {},
            h(
              "tr",
              {},
              ["When", "Who", "What", "Of what", ""].map((text) => h("th", {}, text)),
            ),
          ),
          h("tbody", {}, entries.map(row)),
        )
      : h("p", { class: "muted", style: "padding: 1rem 1.4rem" }, "Nothing happened yet."),
    more,
  );
}

await attempt(users);
await attempt(() => audit(true));
