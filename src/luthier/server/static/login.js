import { post } from "./api.js";
import { $ } from "./dom.js";

$("#login")?.addEventListener("submit", async (event) => {
  event.preventDefault();
  const form = event.target;
  const button = $("button", form);
  button.disabled = true;
  try {
    await post("/session", { name: form.elements.name.value, password: form.elements.password.value });
    location.assign(form.dataset.next);
  } catch (error) {
    $(".problem", form).textContent = error.message;
    button.disabled = false;
    form.elements.password.select();
  }
});
