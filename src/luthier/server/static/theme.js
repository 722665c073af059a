// Runs before the page is drawn, so that it never appears in the wrong theme first. Not a module, because modules run later.
(() => {
  const KEY = "luthier-theme";
  const root = document.documentElement;
  const dark = matchMedia("(prefers-color-scheme: dark)");

  function stored() {
    try {
      return localStorage.getItem(KEY);
    } catch {
      return null; // without storage, the theme of the system is used
    }
  }

  function show() {
    root.dataset.theme = stored() ?? (dark.matches ? "dark" : "light");
    dispatchEvent(new Event("luthier-theme"));
  }

  addEventListener("luthier-toggle-theme", () => {
    const next = root.dataset.theme === "dark" ? "light" : "dark";
    try {
      localStorage.setItem(KEY, next);
    } catch {
      root.dataset.theme = next;
    }
    show();
  });
  addEventListener("storage", (event) => event.key === KEY && show());
  dark.addEventListener("change", show);
  show();
})();
