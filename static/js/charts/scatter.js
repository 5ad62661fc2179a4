// Points over two measures, with reference curves; few points carry their labels.

import { bottomAxis, fit, leftAxis, linear, linked, show, textWidth } from "./context.js";
import { d3 } from "./d3.js";
import { dropEmpty } from "./intervals.js";

// A label further from its point than this would be read as another point's.
const FARTHEST = 40;

/**
 * Place labels beside their points, each moved down until it covers none placed before; where a
 * crowd would push one too far, or out of the plot, the point keeps its name for the hover only.
 */
function spread(points, right, bottom, gap = 13) {
  const placed = [];
  for (const point of [...points].sort((a, b) => a.py - b.py)) {
    const width = textWidth(point.name);
    point.before = point.px + 9 + width > right;
    const from = point.before ? point.px - 9 - width : point.px + 9;
    const covers = (other) =>
      from < other.to && other.from < from + width && Math.abs(point.ly - other.y) < gap;
    // A little more than the gap: rounding must not leave the label where it covers `hit` still,
    // or this would never end.
    for (let hit = placed.find(covers); hit; hit = placed.find(covers))
      point.ly = hit.y + gap + 0.25;
    point.crowded = point.ly - point.py > FARTHEST || point.ly > bottom - 4;
    if (!point.crowded) placed.push({ from, to: from + width, y: point.ly });
  }
}

/** Draw; see docs/interface.md for the data. */
export function draw(context, data, title) {
  const known = data.points.filter((p) => p.x !== null && p.y !== null);
  const curves = data.lines || [];
  const height = Math.round(Math.min(420, Math.max(260, context.width * 0.6)));
  const [left, top, right, bottom] = [46, 30, context.width - 22, height - 46];
  const all = (i) => curves.flatMap((c) => c.points.map((p) => p[i]));
  const x = linear([...known.map((p) => p.x), ...all(0)], data.x.domain, [left, right]);
  const y = linear([...known.map((p) => p.y), ...all(1)], data.y.domain, [bottom, top]);
  const svg = context.svg(height, title);

  bottomAxis(svg, x, {
    top,
    bottom,
    ticks: Math.max(2, Math.min(7, Math.floor((right - left) / 90))),
    format: data.x.format,
    label: data.x.label,
    width: right,
  });
  leftAxis(svg, y, { left, right, top, ticks: 5, format: data.y.format, label: data.y.label });
  for (const curve of curves) {
    const path = d3
      .line(
        (p) => x(p[0]),
        (p) => y(p[1]),
      )
      .curve(d3.curveMonotoneX);
    svg
      .append("path")
      .attr("class", "reference")
      .attr("fill", "none")
      .attr("d", path(curve.points));
    const end = curve.points[curve.points.length - 1];
    svg
      .append("text")
      .attr("class", "muted-text")
      .attr("x", x(end[0]) - 4)
      .attr("y", y(end[1]) - 7)
      .attr("text-anchor", "end")
      .text(curve.label);
  }
  const room = (right - left) * 0.48;
  const place = (p) => ({ ...p, name: fit(p.label, room), px: x(p.x), py: y(p.y), ly: y(p.y) });
  const placed = known.map(place);
  const wanted = placed.filter((p) => !p.unnamed);
  const candidates = wanted.length <= 16 ? wanted : [];
  spread(candidates, right);
  // A label far from its point, or on the axis, names the wrong thing: hovering tells it.
  const named = candidates.filter((p) => Math.abs(p.ly - p.py) <= 42 && p.ly < bottom - 4);
  for (const p of placed) {
    const g = linked(svg, p.href, p.label);
    g.append("circle")
      .attr("class", `c-fill ${context.seriesClass(p.series)}`)
      .attr("cx", p.px)
      .attr("cy", p.py)
      .attr("r", placed.length > 200 ? 2.5 : 4.5)
      .attr("fill-opacity", placed.length > 60 ? 0.6 : 1);
    if (named.includes(p) && !p.crowded) {
      g.append("text")
        .attr("x", p.px + (p.before ? -9 : 9))
        .attr("y", p.ly)
        .attr("dy", "0.34em")
        .attr("text-anchor", p.before ? "end" : "start")
        .text(p.name);
    }
    const hit = g
      .append("circle")
      .datum(p)
      .attr("class", "hit")
      .attr("cx", p.px)
      .attr("cy", p.py)
      .attr("r", 12);
    context.hover(hit, (d) => [
      d.label,
      `${data.x.label}: ${show(d.x, data.x.format)}`,
      `${data.y.label}: ${show(d.y, data.y.format)}`,
      d.n === undefined || d.n === null ? null : `n = ${d3.format(",")(d.n)}`,
    ]);
  }
}

/** Lines for CSV and for the table of numbers. */
export function table(data) {
  const head = ["label", "series", data.x.label, data.y.label, "n"];
  return dropEmpty(
    head,
    data.points.map((p) => [p.label, p.series, p.x, p.y, p.n]),
  );
}
