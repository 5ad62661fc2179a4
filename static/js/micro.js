// Small plots in a line of text or a table cell; the number stands beside them in words.
// data-spark="1,2,3" data-domain="0,1"       a line with a dot at its end; its own range without a domain
// data-interval="value,low,high" data-domain="-1,1"   a dot with its interval

const NS = "http://www.w3.org/2000/svg";

function make(name, attributes) {
  const node = document.createElementNS(NS, name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  return node;
}

function frame(width, height) {
  return make("svg", { width, height, viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" });
}

function spark(element) {
  const values = element.dataset.spark.split(",").map(Number).filter(Number.isFinite);
  if (values.length < 2) return;
  const [width, height, pad] = [84, 20, 3];
  const own = [Math.min(...values), Math.max(...values)];
  const [low, high] = element.dataset.domain?.split(",").map(Number) ?? own;
  const x = (i) => pad + (i * (width - 2 * pad)) / (values.length - 1);
  const within = (v) => Math.min(high, Math.max(low, v));
  const y = (v) => height - pad - ((within(v) - low) / (high - low || 1)) * (height - 2 * pad);
  const points = values.map((v, i) => `${x(i).toFixed(1)},${y(v).toFixed(1)}`);
  const svg = frame(width, height);
  svg.append(make("polyline", { class: "micro-line", points: points.join(" ") }));
  const last = values.length - 1;
  svg.append(make("circle", { class: "micro-dot", cx: x(last), cy: y(values[last]), r: 2 }));
  element.classList.add("micro");
  element.prepend(svg);
}

function interval(element) {
  const [value, low, high] = element.dataset.interval.split(",").map(Number);
  const [from, to] = (element.dataset.domain || "0,1").split(",").map(Number);
  if (!Number.isFinite(value)) return;
  const width = 110;
  const x = (v) => 4 + ((Math.min(to, Math.max(from, v)) - from) / (to - from)) * (width - 8);
  const svg = frame(width, 16);
  svg.append(make("line", { class: "micro-axis", x1: 4, x2: width - 4, y1: 8, y2: 8 }));
  if (from < 0 && to > 0) {
    svg.append(make("line", { class: "micro-axis", x1: x(0), x2: x(0), y1: 3, y2: 13 }));
  }
  if (Number.isFinite(low) && Number.isFinite(high)) {
    svg.append(make("line", { class: "micro-range", x1: x(low), x2: x(high), y1: 8, y2: 8 }));
  }
  svg.append(make("circle", { class: "micro-dot", cx: x(value), cy: 8, r: 3.5 }));
  element.classList.add("micro");
  element.prepend(svg);
}

export function start(root = document) {
  root.querySelectorAll("[data-spark]").forEach(spark);
  root.querySelectorAll("[data-interval]").forEach(interval);
}
