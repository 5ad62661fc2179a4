// What every drawing needs: its width, the theme's colours, number formats, text widths, hover values.

import { d3 } from "./d3.js";

const NAMED = ["accept", "reject", "unsure"];
const pencil = document.createElement("canvas").getContext("2d");

/** Width in pixels of a text at the charts' size. */
export function textWidth(text, { bold = false } = {}) {
  // The page's own list: while the font is not there, text is set in what stands in for it.
  const family = getComputedStyle(document.body).fontFamily;
  pencil.font = `${bold ? 600 : 400} 12px ${family}`;
  return pencil.measureText(text).width;
}

/** A text shortened to a width, with an ellipsis. */
export function fit(text, width, { bold = false } = {}) {
  if (textWidth(text, { bold }) <= width) return text;
  let shorter = text;
  while (shorter.length > 1 && textWidth(`${shorter}…`, { bold }) > width) shorter = shorter.slice(0, -1);
  return `${shorter}…`;
}

/** A number in words: its format, or the sign for "undefined". */
export function show(value, format = ".2f") {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  return d3.format(format)(value).replace("-", "−");
}

/** One drawing in one element: `stage` holds the svg, `figure` the tip. */
export class Context {
  constructor(stage, figure, width) {
    this.stage = stage;
    this.figure = figure;
    this.width = width;
    this.narrow = width < 520;
    this.series = [];
    this.probe = document.createElement("span");
    this.probe.hidden = true;
    stage.append(this.probe);
  }

  /** The colour of a token such as "--scale-high", as the browser resolves it here. */
  colour(token) {
    this.probe.style.color = `var(${token})`;
    return getComputedStyle(this.probe).color;
  }

  /** The class that colours a series; series get theirs by order of first appearance. */
  seriesClass(name) {
    if (name === undefined || name === null) return "series-1";
    if (!this.series.includes(name)) this.series.push(name);
    if (NAMED.includes(name)) return `series-${name}`;
    const others = this.series.filter((one) => !NAMED.includes(one));
    return `series-${(others.indexOf(name) % 8) + 1}`;
  }

  svg(height, title) {
    return d3
      .select(this.stage)
      .append("svg")
      .attr("width", this.width)
      .attr("height", height)
      .attr("viewBox", `0 0 ${this.width} ${height}`)
      .attr("role", "img")
      .attr("aria-label", title);
  }

  /** Show values beside the pointer: `lines(datum)` gives the texts, the first one strong. */
  hover(selection, lines) {
    const tip = this.figure.querySelector(".chart-tip");
    if (!tip) return;
    selection
      .on("pointerenter pointermove", (event, datum) => {
        const [first, ...rest] = lines(datum).filter(Boolean);
        const strong = document.createElement("strong");
        strong.textContent = first;
        tip.replaceChildren(
          strong,
          ...rest.flatMap((line) => [line, document.createElement("br")]),
        );
        tip.hidden = false;
        const frame = this.figure.getBoundingClientRect();
        const x = event.clientX - frame.left + 14;
        tip.style.left = `${Math.max(4, Math.min(x, frame.width - tip.offsetWidth - 4))}px`;
        tip.style.top = `${event.clientY - frame.top + 16}px`;
      })
      .on("pointerleave", () => {
        tip.hidden = true;
      });
  }

  /** Scale from low over middle to high in the theme's colours. */
  scale(kind, domain) {
    if (kind === "sequential") {
      const ends = [this.colour("--scale-low"), this.colour("--scale-high")];
      return d3.scaleLinear(domain, ends).interpolate(d3.interpolateLab).clamp(true);
    }
    const [low, high] = domain;
    const stops = ["--diverge-low", "--diverge-mid", "--diverge-high"].map((t) => this.colour(t));
    return d3
      .scaleLinear([low, (low + high) / 2, high], stops)
      .interpolate(d3.interpolateLab)
      .clamp(true);
  }

  /** Black or white, whichever is read more easily on a colour. */
  ink(background) {
    const { r, g, b } = d3.rgb(background);
    const light = (v) =>
      v / 255 <= 0.03928 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4;
    const y = 0.2126 * light(r) + 0.7152 * light(g) + 0.0722 * light(b);
    return y > 0.19 ? "#141815" : "#ffffff";
  }
}

/** A linear scale over values, with room, unless the domain is given. */
export function linear(values, domain, range) {
  if (domain) return d3.scaleLinear(domain, range);
  const known = values.filter((v) => v !== null && v !== undefined);
  const [low = 0, high = 1] = d3.extent(known);
  const room = (high - low || Math.abs(high) || 1) * 0.06;
  const from = low >= 0 && low < 3 * room ? 0 : low - room; // Counts start at nought.
  return d3.scaleLinear([from, high + room], range).nice();
}

/** Axis at the bottom, with grid lines upwards. */
export function bottomAxis(svg, scale, { top, bottom, ticks, format, label, width }) {
  const axis = d3
    .axisBottom(scale)
    .ticks(ticks)
    .tickSize(-(bottom - top))
    .tickPadding(8);
  if (format) axis.tickFormat((v) => show(v, format));
  const group = svg.append("g").attr("class", "axis").attr("transform", `translate(0,${bottom})`);
  group.call(axis).select(".domain").remove();
  if (label) {
    svg
      .append("text")
      .attr("class", "muted-text")
      .attr("x", width)
      .attr("y", bottom + 34)
      .attr("text-anchor", "end")
      .text(label);
  }
  return group;
}

/** Axis at the left, with grid lines to the right and its label on top. */
export function leftAxis(svg, scale, { left, right, top, ticks, format, label }) {
  const axis = d3
    .axisLeft(scale)
    .ticks(ticks)
    .tickSize(-(right - left))
    .tickPadding(8);
  if (format) axis.tickFormat((v) => show(v, format));
  const group = svg.append("g").attr("class", "axis").attr("transform", `translate(${left},0)`);
  group.call(axis).select(".domain").remove();
  if (label) {
    svg
      .append("text")
      .attr("class", "muted-text")
      .attr("x", 0)
      .attr("y", top - 12)
      .text(label);
  }
  return group;
}

/** A group, inside a link where the datum has one. */
export function linked(parent, href, label) {
  if (!href) return parent.append("g");
  // A picture has no parts to a screen reader; what holds links is a group.
  const node = parent.node();
  (node.ownerSVGElement ?? node).setAttribute("role", "group");
  return parent.append("a").attr("href", href).attr("aria-label", label).attr("class", "focusable");
}
