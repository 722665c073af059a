// Figures: fetched when they become visible, drawn in the colours of the theme, and fetched again only if they changed.

import { request } from "./api.js";
import { fill, h } from "./dom.js";
import { showFigure } from "./figures.js";

let loading = null;

function plotly() {
  loading ??= new Promise((ready, failed) => {
    const script = h("script", { src: document.documentElement.dataset.plotly, onload: () => ready(window.Plotly) });
    script.addEventListener("error", () => {
      loading = null;
      failed(new Error("The plotting library could not be loaded; reload the page."));
    });
    document.head.append(script);
  });
  return loading;
}

/** One figure, fetched from `path` (null if not known yet) as soon as it is visible. */
export class Plot {
  constructor(path, { title = "", empty = "No data yet." } = {}) {
    this.path = path;
    this.empty = empty;
    this.element = h("div", { class: "plot", role: "img", "aria-label": title });
    this.note = h("p", { class: "hint" });
    this.box = h("div", {}, this.element, this.note);
    this.message("Loading…");
    plotly().catch(() => {}); // start loading; an error is reported when the figure is drawn
    this.tag = null;
    this.figure = null;
    this.isKnown = false;
    this.stale = true;
    this.busy = false;
    this.seen = false;
    this.waits = false; // to be drawn as soon as the element has a size
    new IntersectionObserver(
      ([entry]) => {
        this.seen = entry.isIntersecting;
        if (!this.seen) return;
        if (this.waits) this.draw();
        else if (this.isDrawn) window.Plotly.Plots.resize(this.element);
        this.load();
      },
      { rootMargin: "200px" },
    ).observe(this.element);
    addEventListener("luthier-theme", () => this.draw());
  }

  get isDrawn() {
    return this.element.classList.contains("js-plotly-plot");
  }

  refresh(path = this.path) {
    if (path !== this.path) this.tag = null;
    this.path = path;
    this.stale = true;
    if (this.seen) this.load();
  }

  async load() {
    if (!this.stale || this.busy || this.path === null) return;
    this.stale = false;
    this.busy = true;
    let failed = false;
    try {
      const answer = await request("GET", this.path, undefined, {
        headers: this.tag === null ? {} : { "If-None-Match": this.tag },
      });
      if (answer.status !== 304) {
        this.tag = answer.headers.get("ETag");
        this.figure = answer.status === 204 ? null : await answer.json();
        this.isKnown = true;
        this.note.textContent = this.figure?.note ?? "";
        await this.draw();
      }
    } catch (error) {
      failed = this.stale = true; // until it is refreshed or shown again
      this.tag = null;
      if (!this.isDrawn) this.message(error.message);
    } finally {
      this.busy = false;
    }
    if (this.stale && this.seen && !failed) this.load();
  }

  async draw() {
    if (this.figure === null) {
      if (this.isKnown) this.message(this.empty);
      return;
    }
    if (window.Plotly === undefined) this.message("Loading…");
    const library = await plotly();
    this.waits = this.element.offsetParent === null;
    if (this.waits) return;
    if (!this.isDrawn) this.element.replaceChildren();
    await showFigure(this.element, this.figure, library);
  }

  message(text) {
    if (this.isDrawn) {
      window.Plotly.purge(this.element);
      this.element.classList.remove("js-plotly-plot");
    }
    fill(this.element, h("div", { class: "quiet" }, text));
  }
}
