// Tables with data-table="name": sort by head, filter by text, CSV download; the address keeps the state
// (?sort-name=2d&filter-name=words). Sort values may stand in data-value, otherwise the cell's text is used;
// heads with data-nosort have no button. Empty and undefined values always sort last.

import { save, toCsv } from "./csv.js";

function cellValue(row, column) {
  const cell = row.cells[column];
  if (!cell) return "";
  return (cell.dataset.value ?? cell.textContent).trim();
}

function number(text) {
  return text === "" ? NaN : Number(text.replaceAll(/[\s,%]/g, "").replace("−", "-"));
}

/** Order of two cells: numbers by size, texts by language, the empty last whatever the direction. */
export function compare(a, b, sign) {
  if (a === "" || b === "") return (a === "") - (b === "");
  const [x, y] = [number(a), number(b)];
  if (Number.isNaN(x) !== Number.isNaN(y)) return Number.isNaN(x) - Number.isNaN(y);
  const order = Number.isNaN(x) ? a.localeCompare(b, undefined, { numeric: true }) : x - y;
  return sign * order;
}

class LiveTable {
  constructor(table) {
    this.table = table;
    this.name = table.dataset.table || "table";
    this.body = table.tBodies[0];
    this.rows = [...this.body.rows];
    this.heads = [...(table.tHead?.rows[table.tHead.rows.length - 1]?.cells ?? [])];
    this.tools = document.querySelector(`[data-table-tools="${this.name}"]`);
    this.heads.forEach((head, column) => this.makeSortable(head, column));
    this.connectTools();
    this.restore();
  }

  makeSortable(head, column) {
    if ("nosort" in head.dataset || !head.textContent.trim()) return;
    const button = document.createElement("button");
    button.type = "button";
    button.className = "sort";
    button.append(...head.childNodes);
    const helps = [...button.querySelectorAll(".help, [popover]")];
    head.append(button, ...helps);
    button.addEventListener("click", () => {
      const descending = head.getAttribute("aria-sort") === "ascending";
      const first = !head.hasAttribute("aria-sort") && head.classList.contains("num");
      this.sort(column, first || descending ? -1 : 1);
      this.remember();
    });
  }

  sort(column, sign) {
    this.heads.forEach((head) => head.removeAttribute("aria-sort"));
    this.heads[column].setAttribute("aria-sort", sign > 0 ? "ascending" : "descending");
    this.rows = this.rows
      .map((row) => [cellValue(row, column), row])
      .sort((a, b) => compare(a[0], b[0], sign))
      .map((pair) => pair[1]);
    this.body.append(...this.rows);
    this.sorted = [column, sign];
  }

  filter(words) {
    this.words = words;
    const parts = words.toLocaleLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const row of this.rows) {
      const text = row.textContent.toLocaleLowerCase();
      row.hidden = !parts.every((part) => text.includes(part));
      shown += row.hidden ? 0 : 1;
    }
    const count = this.tools?.querySelector("[data-count]");
    if (count) {
      count.textContent = parts.length ? `${shown} of ${this.rows.length}` : `${this.rows.length}`;
    }
  }

  csv() {
    const read = (cell) => (cell.dataset.value ?? cell.innerText).trim().replaceAll(/\s+/g, " ");
    const shown = this.rows.filter((row) => !row.hidden);
    return toCsv([
      this.heads.map((head) => head.innerText.trim()),
      ...shown.map((row) => [...row.cells].map(read)),
    ]);
  }

  connectTools() {
    const input = this.tools?.querySelector("[data-filter]");
    input?.addEventListener("input", () => {
      this.filter(input.value);
      this.remember();
    });
    this.tools?.querySelector("[data-csv]")?.addEventListener("click", () => {
      save(`${this.name}.csv`, this.csv());
    });
  }

  remember() {
    const url = new URL(location.href);
    const put = (key, value) =>
      value ? url.searchParams.set(key, value) : url.searchParams.delete(key);
    put(`filter-${this.name}`, this.words);
    put(`sort-${this.name}`, this.sorted && `${this.sorted[0]}${this.sorted[1] > 0 ? "a" : "d"}`);
    history.replaceState(history.state, "", url);
  }

  restore() {
    const parameters = new URL(location.href).searchParams;
    const sort = /^(\d+)([ad])$/.exec(parameters.get(`sort-${this.name}`) ?? "");
    if (sort && this.heads[Number(sort[1])]) this.sort(Number(sort[1]), sort[2] === "a" ? 1 : -1);
    const words = parameters.get(`filter-${this.name}`) ?? "";
    const input = this.tools?.querySelector("[data-filter]");
    if (input) input.value = words;
    this.filter(words);
  }
}

export function start() {
  document.querySelectorAll("table[data-table]").forEach((table) => new LiveTable(table));
}
