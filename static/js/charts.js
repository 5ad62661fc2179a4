// Charts: <figure data-chart="kind" data-source="id of a JSON script" data-name="file name">.
// Draws with d3 in the theme's colours; values on hover, numbers in a table below, PNG, SVG and CSV to download.

import * as bars from "./charts/bars.js";
import { Context } from "./charts/context.js";
import * as grid from "./charts/grid.js";
import * as intervals from "./charts/intervals.js";
import * as lines from "./charts/lines.js";
import * as scatter from "./charts/scatter.js";
import { save, toCsv } from "./csv.js";
import { onThemeChange } from "./theme.js";

const PAPER_WIDTH = 760;
const matrix = { scale: "sequential", domain: [0, 1] };
const heatmap = { scale: "diverging", domain: [-1, 1] };

const KINDS = {
  intervals,
  dots: intervals,
  scatter,
  lines,
  bars,
  histogram: { draw: bars.drawHistogram, table: bars.histogramTable },
  matrix: { draw: (c, d, t) => grid.draw(c, d, t, matrix), table: grid.table },
  heatmap: { draw: (c, d, t) => grid.draw(c, d, t, heatmap), table: grid.table },
};

// What a drawing takes from the style sheets, written into a file that stands alone.
const KEPT = [
  "fill",
  "stroke",
  "stroke-width",
  "stroke-dasharray",
  "stroke-linecap",
  "opacity",
  "font-size",
  "font-weight",
];

function make(tag, className, text) {
  const node = document.createElement(tag);
  if (className) node.className = className;
  if (text !== undefined) node.textContent = text;
  return node;
}

class Chart {
  constructor(figure) {
    this.figure = figure;
    this.kind = KINDS[figure.dataset.chart];
    this.name = figure.dataset.name || figure.dataset.chart;
    this.data = JSON.parse(document.getElementById(figure.dataset.source).textContent);
    this.title =
      figure.querySelector("h3, .chart-title, figcaption")?.textContent.trim() || this.name;
    this.legend = make("ul", "chart-legend");
    this.stage = make("div", "chart-stage");
    this.tip = make("div", "chart-tip");
    this.tip.hidden = true;
    figure.append(this.legend, this.stage, this.tip);
    this.addTools();
    this.draw();
    new ResizeObserver(() => {
      if (Math.abs(this.stage.clientWidth - this.width) > 1) this.draw();
    }).observe(this.stage);
  }

  draw() {
    this.width = this.stage.clientWidth;
    if (!this.width) return;
    this.stage.replaceChildren();
    if (this.kind.table(this.data).length < 2) {
      const words = document.body.dataset.labelNothing || "Nothing to draw yet.";
      this.stage.append(make("p", "chart-nothing muted small", words));
      return;
    }
    const context = new Context(this.stage, this.figure, this.width);
    this.kind.draw(context, this.data, this.title);
    this.showLegend(context);
    // What scrolls must be reachable by keyboard.
    if (this.stage.scrollWidth > this.width) this.stage.tabIndex = 0;
    else this.stage.removeAttribute("tabindex");
  }

  showLegend(context) {
    const names = context.labelled || context.series.length < 2 ? [] : context.series;
    this.legend.replaceChildren(
      ...names.map((name) => {
        const item = make("li", context.seriesClass(name));
        item.append(make("span", "c-swatch"), name);
        return item;
      }),
    );
    this.legend.hidden = !names.length;
  }

  addTools() {
    const tools = make("div", "chart-tools no-print");
    for (const [label, act] of [
      ["PNG", () => this.savePng()],
      ["SVG", () => save(`${this.name}.svg`, this.svgText(), "image/svg+xml")],
      ["CSV", () => save(`${this.name}.csv`, toCsv(this.kind.table(this.data)))],
    ]) {
      const button = make("button", "button button-quiet", label);
      button.type = "button";
      const words = document.body.dataset.labelDownload || "Download {title} as {kind}";
      const values = { title: `“${this.title}”`, kind: label };
      button.setAttribute(
        "aria-label",
        words.replace(/\{(title|kind)\}/g, (_, name) => values[name]),
      );
      button.addEventListener("click", act);
      tools.append(button);
    }
    this.figure.append(tools, this.numbers());
  }

  numbers() {
    const details = make("details", "chart-data no-print");
    details.append(make("summary", "", document.body.dataset.labelNumbers || "Show the numbers"));
    details.addEventListener(
      "toggle",
      () => details.childElementCount > 1 || details.append(this.table()),
    );
    return details;
  }

  table() {
    const [head, ...rows] = this.kind.table(this.data);
    const wrap = make("div", "table-wrap");
    const table = make("table", "table table-compact");
    const line = (cells, tag) => {
      const row = make("tr");
      row.append(
        ...cells.map((value) => make(tag, typeof value === "number" ? "num" : "", value ?? "")),
      );
      return row;
    };
    const [thead, tbody] = [make("thead"), make("tbody")];
    thead.append(line(head, "th"));
    tbody.append(...rows.map((row) => line(row, "td")));
    table.append(thead, tbody);
    wrap.append(table);
    return wrap;
  }

  /** The drawing for paper: light, of a fixed width, without any style sheet. */
  svgText() {
    const host = make("div", "chart chart-export");
    document.body.append(host);
    const stage = make("div", "chart-stage");
    host.append(stage);
    const context = new Context(stage, host, PAPER_WIDTH);
    this.kind.draw(context, this.data, this.title);
    const svg = stage.querySelector("svg");
    for (const node of svg.querySelectorAll("*")) {
      const style = getComputedStyle(node);
      for (const name of KEPT) node.setAttribute(name, style.getPropertyValue(name));
      node.removeAttribute("class");
      node.removeAttribute("style");
    }
    for (const hit of svg.querySelectorAll('[fill="rgba(0, 0, 0, 0)"][stroke="none"]'))
      hit.remove();
    svg.setAttribute("font-family", "Inter, Helvetica, Arial, sans-serif");
    svg.setAttribute("xmlns", "http://www.w3.org/2000/svg");
    svg.setAttribute("color", "#1a201c");
    const text = new XMLSerializer().serializeToString(svg);
    host.remove();
    return text;
  }

  async savePng() {
    const image = new Image();
    image.src = URL.createObjectURL(new Blob([this.svgText()], { type: "image/svg+xml" }));
    await image.decode();
    const canvas = document.createElement("canvas");
    canvas.width = image.naturalWidth * 3;
    canvas.height = image.naturalHeight * 3;
    const pencil = canvas.getContext("2d");
    pencil.fillStyle = "#ffffff";
    pencil.fillRect(0, 0, canvas.width, canvas.height);
    pencil.drawImage(image, 0, 0, canvas.width, canvas.height);
    URL.revokeObjectURL(image.src);
    canvas.toBlob((blob) => save(`${this.name}.png`, blob), "image/png");
  }
}

/** Draw every chart of the page. */
export function start(root = document) {
  const charts = [...root.querySelectorAll("[data-chart]")].map((figure) => new Chart(figure));
  onThemeChange(() => charts.forEach((chart) => chart.draw()));
  document.fonts?.ready.then(() => charts.forEach((chart) => chart.draw()));
}
