// Horizontal bars: plain ones with an interval, or stacked parts; and histograms.

import { bottomAxis, fit, leftAxis, linear, linked, show, textWidth } from "./context.js";
import { d3 } from "./d3.js";
import { dropEmpty } from "./intervals.js";

function total(row) {
  return row.parts ? d3.sum(row.parts, (part) => part.value) : row.value;
}

function parts(row, share) {
  const all = share ? total(row) || 1 : 1;
  let from = 0;
  return (row.parts || [{ series: row.series, value: row.value ?? 0 }]).map((part) => {
    const start = from;
    from += part.value / all;
    return { ...part, row, from: start, to: from, share: part.value / (total(row) || 1) };
  });
}

/** Draw; see docs/interface.md for the data. */
export function draw(context, data, title) {
  const format = data.format || ",";
  const narrow = context.narrow;
  const rowHeight = narrow ? 44 : 30;
  const labelRoom = narrow
    ? 4
    : Math.min(
        context.width * 0.34,
        14 + (d3.max(data.rows, (r) => textWidth(r.label, { bold: true })) || 0),
      );
  const valueRoom =
    14 + (d3.max(data.rows, (r) => textWidth(show(total(r), format), { bold: true })) || 0);
  const bottom = data.rows.length * rowHeight + 4;
  const right = context.width - valueRoom;
  const high = data.share ? 1 : d3.max(data.rows, (r) => Math.max(total(r) ?? 0, r.high ?? 0)) || 1;
  const x = linear([0, high], data.domain || [0, high], [labelRoom + 4, right]);
  const svg = context.svg(bottom + (data.x_label ? 42 : 26), title);
  bottomAxis(svg, x, {
    top: 0,
    bottom,
    ticks: narrow ? 4 : 6,
    format: data.share ? ".0%" : data.tick_format || format,
    label: data.x_label,
    width: right,
  });
  for (const [i, row] of data.rows.entries()) {
    const top = i * rowHeight;
    const middle = narrow ? top + 30 : top + rowHeight / 2;
    const g = linked(svg, row.href, row.label);
    g.append("text")
      .attr("class", "label-strong")
      .attr("x", narrow ? 4 : labelRoom - 6)
      .attr("y", narrow ? top + 12 : middle)
      .attr("dy", "0.34em")
      .attr("text-anchor", narrow ? "start" : "end")
      .text(fit(row.label, narrow ? context.width * 0.7 : labelRoom - 8));
    const bars = g.selectAll("rect").data(parts(row, data.share)).join("rect");
    bars
      .attr("class", (p) => `c-fill ${context.seriesClass(p.series)}`)
      .attr("x", (p) => x(p.from))
      .attr("y", middle - 8)
      .attr("width", (p) => Math.max(0, x(p.to) - x(p.from)))
      .attr("height", 16)
      .attr("rx", row.parts ? 0 : 2);
    context.hover(bars, (p) => [
      `${row.label}${p.series ? ` · ${p.series}` : ""}: ${show(p.value, format)}`,
      row.parts ? `${show(p.share, ".1%")} of ${show(total(row), format)}` : null,
      row.n === undefined || row.n === null ? null : `n = ${d3.format(",")(row.n)}`,
    ]);
    if (row.low !== null && row.low !== undefined) {
      g.append("line")
        .attr("stroke", "currentColor")
        .attr("stroke-width", 1.5)
        .attr("x1", x(row.low))
        .attr("x2", x(row.high))
        .attr("y1", middle)
        .attr("y2", middle);
    }
    const end = data.share
      ? right
      : Math.max(x(parts(row, false).at(-1)?.to ?? 0), row.high ? x(row.high) : 0);
    g.append("text")
      .attr("class", row.value === null ? "muted-text" : "label-strong")
      .attr("x", end + 6)
      .attr("y", middle)
      .attr("dy", "0.34em")
      .text(row.value === null ? row.note || "undefined" : show(total(row), format));
  }
}

/** Lines for CSV and for the table of numbers. */
export function table(data) {
  const head = ["label", "series", "value", "low", "high", "n", "note"];
  const lines = data.rows.flatMap((r) =>
    r.parts
      ? r.parts.map((p) => [r.label, p.series, p.value, null, null, r.n, r.note])
      : [[r.label, r.series, r.value, r.low, r.high, r.n, r.note]],
  );
  return dropEmpty(head, lines);
}

function bins(data) {
  if (data.bins) return data.bins;
  return d3
    .bin()
    .thresholds(24)(data.values)
    .map((b) => ({ x0: b.x0, x1: b.x1, n: b.length }));
}

/** Draw a histogram with marks such as the median. */
export function drawHistogram(context, data, title) {
  const all = bins(data);
  const height = Math.round(Math.min(300, Math.max(200, context.width * 0.42)));
  const [left, top, right, bottom] = [50, 34, context.width - 22, height - 46];
  const x = d3.scaleLinear(
    [d3.min(all, (b) => b.x0) ?? 0, d3.max(all, (b) => b.x1) ?? 1],
    [left, right],
  );
  const y = d3.scaleLinear([0, d3.max(all, (b) => b.n) || 1], [bottom, top]).nice();
  const svg = context.svg(height, title);
  bottomAxis(svg, x, {
    top,
    bottom,
    ticks: context.narrow ? 4 : 8,
    format: data.format,
    label: data.x_label,
    width: right,
  });
  leftAxis(svg, y, { left, right, top, ticks: 4, format: ",", label: data.y_label || "" });
  const rects = svg.append("g").attr("class", "series-1").selectAll("rect").data(all).join("rect");
  rects
    .attr("class", "c-fill")
    .attr("x", (b) => x(b.x0) + 0.5)
    .attr("width", (b) => Math.max(0.5, x(b.x1) - x(b.x0) - 1))
    .attr("y", (b) => y(b.n))
    .attr("height", (b) => bottom - y(b.n));
  context.hover(rects, (b) => [
    `${show(b.x0, data.format)} – ${show(b.x1, data.format)}`,
    `${d3.format(",")(b.n)}`,
  ]);
  for (const mark of data.marks || []) {
    svg
      .append("line")
      .attr("class", "reference")
      .attr("x1", x(mark.x))
      .attr("x2", x(mark.x))
      .attr("y1", top - 6)
      .attr("y2", bottom);
    const late = x(mark.x) > (left + right) / 2;
    svg
      .append("text")
      .attr("class", "label-strong")
      .attr("x", x(mark.x) + (late ? -6 : 6))
      .attr("y", top - 2)
      .attr("text-anchor", late ? "end" : "start")
      .text(mark.label);
  }
}

/** Lines for CSV and for the table of numbers. */
export function histogramTable(data) {
  return [["from", "to", "n"], ...bins(data).map((b) => [b.x0, b.x1, b.n])];
}
