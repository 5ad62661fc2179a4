// What both views share: building the text with its marks, the tint, what a screen reader hears.

/**
 * Text in quotation marks with the differing words marked; offsets count JavaScript code units.
 * All of it is new at each change (no ::before stays behind): what is replaced cannot move.
 */
export function markedText(text, spans) {
  const nodes = ["“"];
  let at = 0;
  for (const [start, end] of spans || []) {
    if (start > at) nodes.push(text.slice(at, start));
    const mark = document.createElement("mark");
    mark.textContent = text.slice(start, end);
    nodes.push(mark);
    at = end;
  }
  nodes.push(text.slice(at), "”");
  return nodes;
}

/** "three_parts" as people read it. */
export function plain(category) {
  const words = category.replaceAll("_", " ");
  return words.charAt(0).toUpperCase() + words.slice(1);
}

export function icon(name) {
  const sprite = document.querySelector("[data-sprite]").dataset.sprite;
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("class", "icon");
  svg.setAttribute("aria-hidden", "true");
  const use = document.createElementNS("http://www.w3.org/2000/svg", "use");
  use.setAttribute("href", `${sprite}#${name}`);
  svg.append(use);
  return svg;
}

/** Show words from the page's list with values put in for {name}. */
export function say(words, name, values = {}) {
  return (words[name] || name).replaceAll(/\{(\w+)\}/g, (_, key) => values[key] ?? "");
}

let tintTimer;

/** A tint at the edge of the screen for 150 ms confirms the verdict. */
export function tint(verdict) {
  const edge = document.getElementById("judge-tint");
  edge.dataset.verdict = verdict;
  clearTimeout(tintTimer);
  tintTimer = setTimeout(() => {
    edge.dataset.verdict = "";
  }, 150);
}

let spoken = 0;

/** Tell a screen reader; two regions in turn, so that the same words are heard twice too. */
export function announce(text) {
  const regions = document.querySelectorAll("[data-announce]");
  regions[spoken % 2].textContent = "";
  spoken += 1;
  regions[spoken % 2].textContent = text;
}
