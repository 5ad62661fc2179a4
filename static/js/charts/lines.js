// Lines over time or order, each labelled at its end, with a band where intervals are given.

import { bottomAxis, fit, leftAxis, linear, show, textWidth } from "./context.js";
import { d3 } from "./d3.js";
import { dropEmpty } from "./intervals.js";

function xScale(data, range) {
  const values = data.series.flatMap((s) => s.points.map((p) => p.x));
  if (data.x.type === "time")
    return d3.scaleUtc(
      d3.extent(values, (v) => new Date(v)),
      range,
    );
  if (data.x.type === "number") return d3.scaleLinear(data.x.domain || d3.extent(values), range);
  return d3.scalePoint([...new Set(values)], range).padding(0.2);
}

/** Few dates, each short: with the year only where several years are shown. */
function sparseDates(axis, x, count, height) {
  const [from, to] = x.domain();
  const format = d3.utcFormat(to - from > 400 * 86_400_000 ? "%b %Y" : "%-d %b");
  axis.call(d3.axisBottom(x).ticks(count).tickFormat(format).tickPadding(8).tickSize(-height));
  axis.select(".domain").remove();
}

/** Draw; see docs/interface.md for the data. */
export function draw(context, data, title) {
  const height = Math.round(Math.min(360, Math.max(240, context.width * 0.5)));
  const labelRoom = context.narrow
    ? 24
    : Math.min(150, 24 + (d3.max(data.series, (s) => textWidth(s.label, { bold: true })) || 0));
  const [left, top, right, bottom] = [50, 30, context.width - labelRoom, height - 46];
  const x = xScale(data, [left, right]);
  const at = (v) => x(data.x.type === "time" ? new Date(v) : v);
  const values = data.series.flatMap((s) => s.points.flatMap((p) => [p.y, p.low, p.high]));
  const y = linear([0, ...values], data.y.domain, [bottom, top]);
  const svg = context.svg(height, title);
  const axis = bottomAxis(svg, x, {
    top,
    bottom,
    ticks: context.narrow ? 4 : 7,
    format: data.x.type === "number" ? data.x.format : null,
    label: data.x.label,
    width: right,
  });
  if (data.x.type === "time")
    sparseDates(axis, x, Math.max(2, Math.floor((right - left) / 90)), bottom - top);
  if (data.x.type === "ordinal" && data.series[0]?.points.length > 8) {
    axis.selectAll(".tick text").attr("transform", "rotate(-35)").attr("text-anchor", "end");
  }
  leftAxis(svg, y, { left, right, top, ticks: 5, format: data.y.format, label: data.y.label });
  const labels = [];
  for (const series of data.series) {
    const known = series.points.filter((p) => p.y !== null && p.y !== undefined);
    const className = context.seriesClass(series.label);
    const g = svg.append("g").attr("class", className);
    const banded = known.filter((p) => p.low !== null && p.low !== undefined);
    if (banded.length > 1) {
      g.append("path")
        .attr("class", "c-band")
        .attr(
          "d",
          d3.area(
            (p) => at(p.x),
            (p) => y(p.low),
            (p) => y(p.high),
          )(banded),
        );
    }
    g.append("path")
      .attr("class", "c-stroke")
      .attr(
        "d",
        d3.line(
          (p) => at(p.x),
          (p) => y(p.y),
        )(known),
      );
    if (known.length <= 40) {
      g.selectAll("circle")
        .data(known)
        .join("circle")
        .attr("class", "c-fill")
        .attr("cx", (p) => at(p.x))
        .attr("cy", (p) => y(p.y))
        .attr("r", 3);
    }
    const hits = g
      .selectAll(".hit")
      .data(known)
      .join("circle")
      .attr("class", "hit")
      .attr("cx", (p) => at(p.x))
      .attr("cy", (p) => y(p.y))
      .attr("r", 12);
    context.hover(hits, (p) => [
      `${series.label}: ${show(p.y, data.y.format)}`,
      String(p.x),
      p.low === null || p.low === undefined
        ? null
        : `${show(p.low, data.y.format)} … ${show(p.high, data.y.format)}`,
      p.n === null || p.n === undefined ? null : `n = ${d3.format(",")(p.n)}`,
    ]);
    if (known.length)
      labels.push({ text: series.label, y: y(known[known.length - 1].y), className });
  }
  if (context.narrow) return;
  labels.sort((a, b) => a.y - b.y);
  labels.forEach((label, i) => {
    if (i && label.y - labels[i - 1].y < 14) label.y = labels[i - 1].y + 14;
    svg
      .append("text")
      .attr("class", `label-strong c-text ${label.className}`)
      .attr("x", right + 10)
      .attr("y", label.y)
      .attr("dy", "0.34em")
      .text(fit(label.text, labelRoom - 12));
  });
  context.labelled = true;
}

/** Lines for CSV and for the table of numbers. */
export function table(data) {
  const head = ["series", data.x.label || "x", data.y.label || "y", "low", "high", "n"];
  const lines = data.series.flatMap((s) =>
    s.points.map((p) => [s.label, p.x, p.y, p.low, p.high, p.n]),
  );
  return dropEmpty(head, lines);
}
