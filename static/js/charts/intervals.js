// Dots with their intervals, one line per label: "intervals" and the leaderboard's "dots".

import { bottomAxis, fit, linear, linked, show, textWidth } from "./context.js";
import { d3 } from "./d3.js";

function describe(row, format) {
  const range =
    row.low === null || row.low === undefined
      ? null
      : `95 % interval ${show(row.low, format)} … ${show(row.high, format)}`;
  const n = row.n === null || row.n === undefined ? null : `n = ${d3.format(",")(row.n)}`;
  return [
    `${row.label}${row.series ? ` · ${row.series}` : ""}: ${show(row.value, format)}`,
    range,
    n,
    row.note,
  ];
}

function letterColumns(groups) {
  const letters = [
    ...new Set(groups.flatMap((group) => [...(group.rows[0].letters || "")])),
  ].sort();
  return letters.map((letter) => {
    const at = groups.flatMap((group, i) =>
      (group.rows[0].letters || "").includes(letter) ? [i] : [],
    );
    return { letter, from: Math.min(...at), to: Math.max(...at) };
  });
}

function brackets(svg, columns, rowHeight, x) {
  for (const [i, { from, to }] of columns.entries()) {
    const at = x + i * 9 + 6;
    svg
      .append("line")
      .attr("x1", at)
      .attr("x2", at)
      .attr("y1", from * rowHeight + 10)
      .attr("y2", (to + 1) * rowHeight - 10)
      .attr("stroke", "currentColor")
      .attr("stroke-width", 2.5)
      .attr("stroke-linecap", "round");
  }
}

function mark(group, row, x, y, className) {
  const g = group.append("g").attr("class", className);
  if (row.low !== null && row.low !== undefined) {
    g.append("line")
      .attr("class", "c-stroke")
      .attr("x1", x(row.low))
      .attr("x2", x(row.high))
      .attr("y1", y)
      .attr("y2", y);
  }
  const dot = g.append("circle").attr("cx", x(row.value)).attr("cy", y).attr("r", 4.5);
  if (row.kind === "reference") dot.attr("class", "c-stroke hollow").attr("stroke-width", 2);
  else dot.attr("class", "c-fill");
}

const known = (value) => value !== null && value !== undefined;
const nText = (row) => (known(row.n) ? `n ${d3.format(",")(row.n)}` : "");

/** Sizes and scale: how much room labels, values and brackets need, and what is left. */
function layout(context, data, format) {
  const groups = d3.groups(data.rows, (row) => row.label).map(([label, rows]) => ({ label, rows }));
  const several = groups.some((group) => group.rows.length > 1);
  const lanes = d3.max(groups, (group) => group.rows.length) || 1;
  const { narrow, width } = context;
  const widest = (text, bold = false) =>
    d3.max(data.rows, (row) => textWidth(text(row), { bold })) || 0;
  const valueWidth = several ? 0 : widest((row) => valueText(row, format), true);
  const valueRoom = several ? 0 : 12 + valueWidth;
  const nRoom = several || narrow ? 0 : 10 + widest(nText);
  const labelRoom = narrow ? 6 : Math.min(width * 0.34, 14 + widest((row) => row.label, true));
  const columns = letterColumns(groups);
  const bracketRoom = columns.length ? columns.length * 9 + 10 : 0;
  const right = width - Math.max(20, (narrow ? 8 : valueRoom + nRoom) + bracketRoom + 4);
  const rowHeight = Math.max(30, lanes * 13 + 12) + (narrow ? 14 : 0);
  const values = data.rows.flatMap((row) => [row.value, row.low, row.high]);
  const x = linear(values, data.domain, [labelRoom + 6, right]);
  return {
    groups,
    several,
    narrow,
    width,
    valueWidth,
    valueRoom,
    nRoom,
    labelRoom,
    columns,
    bracketRoom,
    right,
    rowHeight,
    x,
  };
}

function valueText(row, format) {
  return known(row.value) ? show(row.value, format) : "";
}

function drawLabel(g, group, at, place) {
  const { narrow, labelRoom, width, valueWidth, bracketRoom } = place;
  const room = narrow ? width - 24 - valueWidth - bracketRoom : labelRoom - 10;
  g.append("text")
    .attr("x", narrow ? 6 : labelRoom - 8)
    .attr("y", at)
    .attr("dy", "0.34em")
    .attr("text-anchor", narrow ? "start" : "end")
    .attr("class", group.rows[0].kind === "reference" ? "muted-text" : "label-strong")
    .text(fit(group.label, room, { bold: true }))
    .append("title")
    .text(group.label);
}

function drawMarks(g, group, middle, place, context) {
  const { x, right, labelRoom } = place;
  for (const [lane, row] of group.rows.entries()) {
    const y = middle + (lane - (group.rows.length - 1) / 2) * 13;
    const className = context.seriesClass(row.series);
    if (known(row.value)) {
      mark(g, row, x, y, className);
    } else {
      const why = fit(row.note || "undefined", right - labelRoom);
      g.append("text")
        .attr("class", "muted-text")
        .attr("x", x.range()[0])
        .attr("y", y)
        .attr("dy", "0.34em")
        .text(why);
    }
  }
}

function drawValue(g, row, y, place, format) {
  const { narrow, width, bracketRoom, right, valueRoom, nRoom } = place;
  const at = narrow ? width - 8 - bracketRoom : right + valueRoom;
  const write = (x, className, text) =>
    g
      .append("text")
      .attr("class", className)
      .attr("x", x)
      .attr("y", y)
      .attr("dy", "0.34em")
      .attr("text-anchor", "end")
      .text(text);
  write(at, "label-strong", valueText(row, format));
  if (!narrow) write(at + nRoom, "muted-text", nText(row));
}

function drawRow(svg, group, top, place, context, format) {
  const { narrow, rowHeight, several, width } = place;
  const [first] = group.rows;
  const middle = narrow ? top + 14 + (rowHeight - 14) / 2 : top + rowHeight / 2;
  const labelY = narrow ? top + 14 : middle;
  const g = linked(svg, first.href, `${group.label}: ${show(first.value, format)}`);
  drawLabel(g, group, labelY, place);
  drawMarks(g, group, middle, place, context);
  if (!several && known(first.value)) drawValue(g, first, labelY, place, format);
  const hit = g
    .append("rect")
    .datum(group)
    .attr("class", "hit")
    .attr("y", top)
    .attr("width", width)
    .attr("height", rowHeight);
  context.hover(hit, (d) => d.rows.flatMap((row) => describe(row, format)));
}

/** Draw; see docs/interface.md for the data. */
export function draw(context, data, title) {
  const format = data.format || ".2f";
  const place = layout(context, data, format);
  const { groups, rowHeight, x, right, columns, bracketRoom, narrow } = place;
  const bottom = groups.length * rowHeight + 4;
  const svg = context.svg(bottom + (data.x_label ? 42 : 26), title);
  bottomAxis(svg, x, {
    top: 0,
    bottom,
    ticks: narrow ? 4 : 6,
    format: data.tick_format || format,
    label: data.x_label,
    width: right,
  });
  if (known(data.reference)) {
    const at = x(data.reference);
    svg
      .append("line")
      .attr("class", "reference")
      .attr("x1", at)
      .attr("x2", at)
      .attr("y1", 0)
      .attr("y2", bottom);
  }
  for (const [i, group] of groups.entries())
    drawRow(svg, group, i * rowHeight, place, context, format);
  if (columns.length) {
    const g = svg.append("g").attr("color", context.colour("--text-faint"));
    brackets(g, columns, rowHeight, context.width - bracketRoom + 4);
  }
}

/** Lines for CSV and for the table of numbers. */
export function table(data) {
  const head = ["label", "series", "value", "low", "high", "n", "groups", "note"];
  const lines = data.rows.map((r) => [
    r.label,
    r.series,
    r.value,
    r.low,
    r.high,
    r.n,
    r.letters,
    r.note,
  ]);
  return dropEmpty(head, lines);
}

/** Leave out columns in which nothing stands. */
export function dropEmpty(head, lines) {
  const keep = head.map((_, i) =>
    lines.some((line) => line[i] !== null && line[i] !== undefined && line[i] !== ""),
  );
  return [head, ...lines].map((line) => line.filter((_, i) => keep[i]));
}
