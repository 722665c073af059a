// Draws the output of `to_plotly` in the colours of the page: `role:best/0.2` becomes --figure-best at 20 % opacity.

const NARROW = 640;

function colour(text, style) {
  const [role, strength] = text.slice("role:".length).split("/");
  const solid = style.getPropertyValue(`--figure-${role}`).trim();
  if (!strength) return solid;
  const [red, green, blue] = [1, 3, 5].map((at) => parseInt(solid.slice(at, at + 2), 16));
  return `rgba(${red},${green},${blue},${strength})`;
}

function withColours(value, key, style) {
  if (typeof value === "string") {
    return key.endsWith("color") && value.startsWith("role:") ? colour(value, style) : value;
  }
  if (value === null || typeof value !== "object" || (Array.isArray(value) && typeof value[0] !== "object")) return value;
  if (Array.isArray(value)) return value.map((one) => withColours(one, key, style));
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, withColours(one, name, style)]));
}

// On a narrow screen, the panels of a figure are drawn one below the other.
function fitToWidth(layout, width) {
  const panels = Object.keys(layout).filter((name) => name.startsWith("xaxis")).length;
  if (!layout.grid || width >= NARROW) return layout;
  return { ...layout, grid: { ...layout.grid, rows: panels, columns: 1 }, height: 80 + 240 * panels };
}

// Draw or redraw a figure in an element; `figure` is the output of `to_plotly`.
export function showFigure(element, figure, plotly = window.Plotly) {
  const { data, layout } = withColours(figure, "", getComputedStyle(element));
  const font = { ...layout.font, family: getComputedStyle(element).fontFamily };
  return plotly.react(element, data, fitToWidth({ ...layout, font }, element.clientWidth), {
    responsive: true,
    displaylogo: false,
    modeBarButtons: [["toImage", "resetScale2d"]],
  });
}
