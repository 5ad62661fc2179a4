// A matrix of values in colour, each with its number: "matrix" and "heatmap".

import { fit, linked, show, textWidth } from "./context.js";
import { d3 } from "./d3.js";

function legend(svg, context, scale, domain, format, x, y) {
  const width = Math.min(160, context.width - 20);
  const steps = d3.range(24);
  svg.append("g").selectAll("rect").data(steps).join("rect").attr("x", (i) => x + (i * width) / 24).attr("y", y).attr("width", width / 24 + 0.5).attr("height", 8).attr("fill", (i) => scale(domain[0] + ((domain[1] - domain[0]) * (i + 0.5)) / 24));
  for (const [value, anchor, at] of [[domain[0], "start", x], [(domain[0] + domain[1]) / 2, "middle", x + width / 2], [domain[1], "end", x + width]]) {
    svg.append("text").attr("class", "muted-text").attr("x", at).attr("y", y + 22).attr("text-anchor", anchor).text(show(value, format));
  }
}

function positions(count, size, apart) {
  return d3.range(count).map((i) => i * size + (apart && i === count - 1 ? 8 : 0));
}

/** Draw with `defaults` of the kind; see docs/interface.md for the data. */
export function draw(context, data, title, defaults) {
  const { scale: kind, domain, format = ".2f", emphasis = {} } = { ...defaults, ...data };
  const scale = context.scale(kind, domain);
  const rowLabel = (i) => data.rows[i];
  const longest = d3.max(data.rows, (r) => textWidth(r, { bold: true })) || 40;
  const left = Math.min(context.width * (context.narrow ? 0.32 : 0.3), longest + 12);
  const columns = data.cols.length;
  const least = textWidth(show(-0.88, format)) + 8;
  const room = Math.max(20, (context.width - left - (emphasis.last_col ? 10 : 2) - (context.narrow ? 0 : 36)) / columns);
  // Numbers stay readable on a phone: the matrix is then wider than the screen and scrolls.
  const cell = Math.max(Math.min(room, 84), least);
  const cellHeight = Math.min(44, Math.max(26, cell * 0.62));
  const longCols = d3.max(data.cols, (c) => textWidth(c)) || 30;
  const flat = longCols < cell - 4;
  const head = flat ? 24 : Math.min(110, longCols * 0.72 + 18);
  const xs = positions(columns, cell, emphasis.last_col).map((v) => v + left);
  const ys = positions(data.rows.length, cellHeight, emphasis.last_row).map((v) => v + head);
  const bottom = (ys.at(-1) ?? head) + cellHeight;
  const svg = context.svg(bottom + 44, title);
  const full = (xs.at(-1) ?? left) + cell + (flat ? 0 : Math.min(70, head * 0.7));
  if (full > context.width) svg.attr("width", full).attr("viewBox", `0 0 ${full} ${bottom + 44}`);

  for (const [j, name] of data.cols.entries()) {
    const text = svg.append("text").attr("class", emphasis.last_col && j === columns - 1 ? "label-strong" : "muted-text");
    if (flat) text.attr("x", xs[j] + cell / 2).attr("y", head - 9).attr("text-anchor", "middle").text(name);
    else text.attr("transform", `translate(${xs[j] + cell / 2 + 4},${head - 8}) rotate(-40)`).text(fit(name, 130));
  }
  for (const [i, y] of ys.entries()) {
    svg.append("text").attr("class", "label-strong").attr("x", left - 8).attr("y", y + cellHeight / 2).attr("dy", "0.34em").attr("text-anchor", "end").text(fit(rowLabel(i), left - 10)).append("title").text(rowLabel(i));
    for (const [j, x] of xs.entries()) {
      const value = data.values[i][j];
      const known = value !== null && value !== undefined;
      const href = data.hrefs?.[i]?.[j];
      const words = `${rowLabel(i)} · ${data.cols[j]}: ${show(value, format)}`;
      const g = linked(svg, href, words);
      const fill = known ? scale(value) : context.colour("--surface-sunken");
      const rect = g.append("rect").attr("x", x + 1).attr("y", y + 1).attr("width", cell - 2).attr("height", cellHeight - 2).attr("rx", 3).attr("fill", fill);
      const ink = known ? context.ink(fill) : context.colour("--text-muted");
      g.append("text").attr("x", x + cell / 2).attr("y", y + cellHeight / 2).attr("dy", "0.34em").attr("text-anchor", "middle").attr("pointer-events", "none").style("fill", ink).text(show(value, format));
      const n = data.n?.[i]?.[j];
      context.hover(rect, () => [words, n === undefined || n === null ? null : `n = ${d3.format(",")(n)}`, known ? null : data.note || "undefined"]);
    }
  }
  legend(svg, context, scale, domain, format, left, bottom + 14);
}

/** Lines for CSV and for the table of numbers. */
export function table(data) {
  return [["", ...data.cols], ...data.rows.map((name, i) => [name, ...data.values[i]])];
}
