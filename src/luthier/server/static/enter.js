import { post } from "./api.js";
import { $ } from "./dom.js";
import { draftPage } from "./drafts.js";

$("#enter").addEventListener("submit", async (event) => {
  event.preventDefault();
  const form = event.target;
  const button = $("button", form);
  button.disabled = true;
  try {
    await post("/session/invitation", { token: form.dataset.token });
    location.replace(draftPage() ?? "/"); // replaced, so that the link is not in the browser history
  } catch (error) {
    $(".problem", form).textContent = `${error.message}.`;
    $("#another").hidden = false;
    button.disabled = false;
  }
});
