// The variables of a component in jobs of all users: which are approved, by whom, and approving them.

import { get, post, remove } from "./api.js";
import { $, dataTable, fill, h } from "./dom.js";
import { ago, moment } from "./format.js";
import { actionButton, attempt, showMessage } from "./messages.js";

const area = $("#approvals");
const mayApprove = area?.dataset.mayApprove === "yes";

/** Show the variables of a component; nothing is shown for a component without variables. */
export async function showApprovals(component) {
  const address = `/components/${encodeURIComponent(component)}`;
  const { version, variables } = await get(`${address}/variables`);
  area.hidden = variables.length === 0;
  const again = () => showApprovals(component);
  const approve = async (wanted) => {
    await post(`${address}/approvals`, { version, variables: wanted });
    showMessage(`Approved: ${Object.keys(wanted).join(", ")}`);
    await again();
  };
  const withdraw = async (one) => {
    await remove(`${address}/approvals/${encodeURIComponent(one.name)}`);
    await again();
  };
  const rows = variables.map((one) => row(one, approve, withdraw));
  fill(
    $("#approvals-list"),
    h("div", { class: "scroll" }, dataTable(["Variable", "Values", "Approved", ""], rows, { class: "experiments" })),
  );
  const harmless = $("#approvals-harmless");
  fill(harmless, mayApprove ? harmlessOnes(variables, approve) : null);
  harmless.hidden = harmless.childElementCount === 0;
}

function row(one, approve, withdraw) {
  const proposed = one.allowed ?? one.harmless ?? one.declared ?? "";
  const values = h("input", { "aria-label": `Allowed values of ${one.name}`, value: proposed, spellcheck: "false" });
  const isOpen = mayApprove && one.problem === null;
  const known = one.harmless !== null ? `known to be harmless: ${one.harmless}` : "not known to be harmless";
  const buttons = [
    isOpen && actionButton("check", "Approve", () => approve({ [one.name]: values.value }), "tiny"),
    mayApprove && one.allowed !== null && actionButton("close", "Withdraw", () => withdraw(one), "tiny"),
  ];
  for (const button of buttons) if (button) button.setAttribute("aria-label", `${button.textContent} ${one.name}`);
  return h(
    "tr",
    {},
    h("td", { class: "name" }, h("b", {}, one.name), h("small", {}, one.problem ?? known)),
    h("td", {}, isOpen ? values : (one.allowed ?? "–"), declared(one)),
    h("td", {}, approvedText(one)),
    h("td", { class: "right" }, h("div", { class: "actions" }, buttons)),
  );
}

function declared(one) {
  return one.declared === null ? null : h("small", { class: "muted" }, `the component declares ${one.declared}`);
}

function approvedText(one) {
  if (one.problem !== null) return h("span", { class: "badge failed" }, "never set");
  if (one.allowed === null) return h("span", { class: "badge" }, "no");
  const time = h("time", { title: moment(one.approved_at) }, ago(one.approved_at));
  return [h("span", { class: "badge finished" }, one.allowed), h("br"), h("small", {}, `${one.approved_by}, `, time)];
}

function harmlessOnes(variables, approve) {
  const open = variables.filter((one) => one.harmless !== null && one.allowed === null);
  if (open.length === 0) return null;
  const wanted = Object.fromEntries(open.map((one) => [one.name, one.harmless]));
  const list = open.map((one) => h("li", {}, h("code", {}, `${one.name}: ${one.harmless}`)));
  return [
    h("p", {}, "Known to be harmless, because they can name no program, library, file or host:"),
    h("ul", {}, list),
    h("div", {}, actionButton("check", "Approve the harmless ones", () => approve(wanted))),
  ];
}
