// A matrix of values in colour, each with its number: "matrix" and "heatmap".

import { fit, linked, show, textWidth } from "./context.js";
import { d3 } from "./d3.js";

function legend(svg, context, scale, domain, format, x, y) {
  const width = Math.min(160, context.width - 20);
  const steps = d3.range(24);
  svg
    .append("g")
    .selectAll("rect")
    .data(steps)
    .join("rect")
    .attr("x", (i) => x + (i * width) / 24)
    .attr("y", y)
    .attr("width", width / 24 + 0.5)
    .attr("height", 8)
    .attr("fill", (i) => scale(domain[0] + ((domain[1] - domain[0]) * (i + 0.5)) / 24));
  for (const [value, anchor, at] of [
    [domain[0], "start", x],
    [(domain[0] + domain[1]) / 2, "middle", x + width / 2],
    [domain[1], "end", x + width],
  ]) {
    svg
      .append("text")
      .attr("class", "muted-text")
      .attr("x", at)
      .attr("y", y + 22)
      .attr("text-anchor", anchor)
      .text(show(value, format));
  }
}

function positions(count, size, apart) {
  return d3.range(count).map((i) => i * size + (apart && i === count - 1 ? 8 : 0));
}

// With more columns than this the cells are small and their numbers are shown on hover only.
const MANY = 16;
const SMALLEST = 11;

/** Sizes of a matrix whose colours are read as a whole: square cells, shortened names. */
function denseLayout(context, data) {
  const columns = data.cols.length;
  const left = Math.min(84, (d3.max(data.rows, (r) => textWidth(r)) || 40) + 10);
  const cell = Math.max(SMALLEST, Math.min(26, (context.width - left - 4) / columns));
  const head = 84;
  const xs = positions(columns, cell, false).map((v) => v + left);
  const ys = positions(data.rows.length, cell, false).map((v) => v + head);
  const bottom = (ys.at(-1) ?? head) + cell;
  const full = (xs.at(-1) ?? left) + cell + 2;
  return { left, cell, cellHeight: cell, flat: false, head, xs, ys, bottom, full, dense: true };
}

/** Sizes: numbers stay readable on a phone, so the matrix may be wider than the screen and scroll. */
function layout(context, data, format, emphasis) {
  const columns = data.cols.length;
  if (columns > MANY) return denseLayout(context, data);
  const longest = d3.max(data.rows, (r) => textWidth(r, { bold: true })) || 40;
  const left = Math.min(context.width * (context.narrow ? 0.32 : 0.3), longest + 12);
  const rest = context.width - left - (emphasis.last_col ? 10 : 2) - (context.narrow ? 0 : 36);
  const cell = Math.max(
    Math.min(rest / Math.max(1, columns), 84),
    textWidth(show(-0.88, format)) + 8,
  );
  const cellHeight = Math.min(44, Math.max(26, cell * 0.62));
  const longCols = d3.max(data.cols, (c) => textWidth(c)) || 30;
  const flat = longCols < cell - 4;
  const head = flat ? 24 : Math.min(110, longCols * 0.72 + 18);
  const xs = positions(columns, cell, emphasis.last_col).map((v) => v + left);
  const ys = positions(data.rows.length, cellHeight, emphasis.last_row).map((v) => v + head);
  const bottom = (ys.at(-1) ?? head) + cellHeight;
  const full = (xs.at(-1) ?? left) + cell + (flat ? 0 : Math.min(70, head * 0.7));
  return { left, cell, cellHeight, flat, head, xs, ys, bottom, full };
}

function drawHead(svg, data, place, emphasis) {
  const { xs, cell, head, flat } = place;
  for (const [j, name] of data.cols.entries()) {
    const apart = emphasis.last_col && j === data.cols.length - 1;
    const text = svg.append("text").attr("class", apart ? "label-strong" : "muted-text");
    const middle = xs[j] + cell / 2;
    if (place.dense)
      text
        .attr("transform", `translate(${middle},${head - 5}) rotate(-90)`)
        .attr("dy", "0.34em")
        .style("font-size", `${Math.min(12, cell - 1)}px`)
        .text(fit(name, 76))
        .append("title")
        .text(name);
    else if (flat)
      text
        .attr("x", middle)
        .attr("y", head - 9)
        .attr("text-anchor", "middle")
        .text(name);
    else
      text
        .attr("transform", `translate(${middle + 4},${head - 8}) rotate(-40)`)
        .text(fit(name, 130));
  }
}

function drawCell(svg, data, [i, j], place, context, scale, format) {
  const { xs, ys, cell, cellHeight } = place;
  const value = data.values[i][j];
  const known = value !== null && value !== undefined;
  const words = `${data.rows[i]} · ${data.cols[j]}: ${show(value, format)}`;
  const fill = known ? scale(value) : context.colour("--surface-sunken");
  const ink = known ? context.ink(fill) : context.colour("--text-muted");
  const g = linked(svg, data.hrefs?.[i]?.[j], words);
  const gap = place.dense ? 0.5 : 1;
  const rect = g
    .append("rect")
    .attr("x", xs[j] + gap)
    .attr("y", ys[i] + gap)
    .attr("width", cell - 2 * gap)
    .attr("height", cellHeight - 2 * gap)
    .attr("rx", place.dense ? 1 : 3)
    .attr("fill", fill);
  if (place.dense && !known) {
    // An empty cell must not look like a low value.
    rect.attr("fill", context.colour("--surface"));
    g.append("circle")
      .attr("cx", xs[j] + cell / 2)
      .attr("cy", ys[i] + cellHeight / 2)
      .attr("r", 1)
      .attr("pointer-events", "none")
      .attr("fill", context.colour("--text-muted"));
  }
  if (!place.dense)
    g.append("text")
      .attr("x", xs[j] + cell / 2)
      .attr("y", ys[i] + cellHeight / 2)
      .attr("dy", "0.34em")
      .attr("text-anchor", "middle")
      .attr("pointer-events", "none")
      .style("fill", ink)
      .text(show(value, format));
  const n = data.n?.[i]?.[j];
  const count = n === undefined || n === null ? null : `n = ${d3.format(",")(n)}`;
  context.hover(rect, () => [words, count, known ? null : data.note || "undefined"]);
}

/** Draw with `defaults` of the kind; see docs/interface.md for the data. */
export function draw(context, data, title, defaults) {
  const { scale: kind, domain, format = ".2f", emphasis = {} } = { ...defaults, ...data };
  const scale = context.scale(kind, domain);
  const place = layout(context, data, format, emphasis);
  const { left, cellHeight, ys, bottom, full } = place;
  const svg = context.svg(bottom + 44, title);
  if (full > context.width) svg.attr("width", full).attr("viewBox", `0 0 ${full} ${bottom + 44}`);
  drawHead(svg, data, place, emphasis);
  for (const [i, name] of data.rows.entries()) {
    const text = svg
      .append("text")
      .attr("class", place.dense ? "muted-text" : "label-strong")
      .attr("x", left - (place.dense ? 4 : 8))
      .attr("y", ys[i] + cellHeight / 2);
    if (place.dense) text.style("font-size", `${Math.min(12, cellHeight - 1)}px`);
    text
      .attr("dy", "0.34em")
      .attr("text-anchor", "end")
      .text(fit(name, left - 10, { bold: true }))
      .append("title")
      .text(name);
    for (const j of data.cols.keys()) drawCell(svg, data, [i, j], place, context, scale, format);
  }
  legend(svg, context, scale, domain, format, left, bottom + 14);
}

/** Lines for CSV and for the table of numbers. */
export function table(data) {
  return [["", ...data.cols], ...data.rows.map((name, i) => [name, ...data.values[i]])];
}
