// Grid mode: the pictures of one text together. The text is read once; each picture gets its own
// judgement with its own time, by keys (arrows, verdict keys) or by touch.

import { announce, icon, markedText, plain, say, tint } from "./view.js";

const REMEMBERED = 10; // judgements, as in focus mode
const LEAST_WIDTH = 180; // px: below this a picture is too small to be judged; the page scrolls instead
const BAR = 44;
const VERDICTS = [
  ["reject", "x"],
  ["unsure", "circle-help"],
  ["accept", "check"],
];

export class GridView {
  constructor(page) {
    this.page = page;
    this.root = page.root;
    this.text = this.root.querySelector("[data-text]");
    this.stage = this.root.querySelector("[data-stage]");
    this.category = this.root.querySelector("[data-category]");
    this.earlier = this.root.querySelector("[data-earlier]");
    this.tiles = [];
    this.at = 0;
    this.locked = false;
    this.undone = [];
    this.past = []; // Texts finished lately: undo reaches back into them.
    this.later = []; // Texts that wait while an earlier one is looked at again.
    addEventListener("resize", () => this.fit());
    this.root.addEventListener("click", (event) => this.click(event));
    page.ahead.addEventListener("ready", () => this.next());
    page.ahead.addEventListener("claimed", () => this.next());
    addEventListener("popstate", () => {
      if (history.state?.judge === "top") return;
      if (this.undo()) page.armBack();
      else history.back();
    });
  }

  click(event) {
    const button = event.target.closest("[data-act]");
    if (!button || button.disabled) return;
    if (event.detail > 0) button.blur();
    const tile = this.tiles.find((one) => one.node.contains(button));
    if (tile) this.select(this.tiles.indexOf(tile), false);
    this.act(button.dataset.act);
  }

  act(action) {
    if (action in { accept: 1, reject: 1, unsure: 1 }) return this.judge(action);
    const acts = {
      next: () => this.finish(),
      undo: () => this.undo(),
      left: () => this.step(-1),
      right: () => this.step(1),
      up: () => this.step(-this.columns()),
      down: () => this.step(this.columns()),
      zoom_in: () => this.enlarge(),
      skip: () => this.skip(),
      flag: () => this.flag(),
    };
    return acts[action] ? acts[action]() : this.page.act(action);
  }

  get tile() {
    return this.tiles[this.at];
  }

  columns() {
    return getComputedStyle(this.stage).gridTemplateColumns.split(" ").length;
  }

  step(by) {
    const to = this.at + by;
    if (to < 0 || to >= this.tiles.length) return false;
    this.select(to);
    return true;
  }

  select(index, scroll = true) {
    this.at = index;
    for (const [i, tile] of this.tiles.entries()) {
      if (i === index) tile.node.setAttribute("aria-current", "true");
      else tile.node.removeAttribute("aria-current");
    }
    if (scroll) this.tile?.node.scrollIntoView({ block: "nearest" });
  }

  /** Set a picture's verdict ("set to", never "flip"); go on to the next without one. */
  judge(verdict) {
    const tile = this.tile;
    if (!tile || this.locked || tile.entry.state !== "ready") return false;
    const active = this.page.clock.lap();
    if (tile.verdict !== verdict) {
      const correction = Boolean(tile.verdict);
      if (!correction) this.page.ahead.done(tile.entry.item.item);
      tile.verdict = verdict;
      this.undone.push(tile);
      this.page.armBack();
      this.page.record(tile.entry.item, verdict, active, "grid", { correction });
    }
    this.paint(tile);
    tint(verdict);
    announce(
      say(this.page.words, "tile_done", {
        n: this.at + 1,
        all: this.tiles.length,
        verdict: this.page.words[verdict],
      }),
    );
    if (this.page.feedback) this.locked = true;
    this.onward();
    return true;
  }

  onward() {
    const open = (tile) => !tile.verdict && tile.entry.state === "ready";
    const later = this.tiles.findIndex((tile, i) => i > this.at && open(tile));
    const any = later >= 0 ? later : this.tiles.findIndex(open);
    if (any >= 0) this.select(any);
    this.showCount();
  }

  showCount() {
    const done = this.tiles.filter((tile) => tile.verdict || tile.skipped).length;
    const all = this.tiles.length;
    this.earlier.textContent = all
      ? say(this.page.words, done === all ? "grid_done" : "grid_count", { done, all })
      : "";
    const next = this.root.querySelector('[data-act="next"]');
    next.disabled = !all || done < all;
    next.classList.toggle("button-primary", !next.disabled);
    this.root.querySelector('[data-act="undo"]').disabled =
      !(this.undone.length || this.past.length) || !this.page.mayUndo;
  }

  /** Back to the picture judged last: it is selected with its verdict shown, to be set anew. */
  undo() {
    if (!this.page.mayUndo || this.locked) return false;
    const tile = this.undone.pop();
    if (!tile) return this.earlierText();
    this.select(this.tiles.indexOf(tile));
    this.showCount();
    return true;
  }

  /** The text before this one, with its verdicts. */
  earlierText() {
    const before = this.past.pop();
    if (!before) return false;
    if (this.tiles.length) this.later.push({ tiles: this.tiles, undone: this.undone });
    this.present(before);
    const last = this.undone.pop();
    this.select(last ? this.tiles.indexOf(last) : 0);
    this.showCount();
    return true;
  }

  /** All judged: the next text. */
  finish() {
    if (this.root.querySelector('[data-act="next"]').disabled || this.locked) return false;
    this.remember();
    const waiting = this.later.pop();
    if (waiting) {
      this.present(waiting);
      this.onward();
      return true;
    }
    this.tiles = [];
    this.undone = [];
    this.next();
    return true;
  }

  /** Keep what was just judged, as far as undo reaches. */
  remember() {
    const judged = this.tiles.filter((tile) => tile.verdict);
    this.past.push({ tiles: this.tiles, undone: judged });
    while (this.past.slice(1).reduce((sum, one) => sum + one.undone.length, 0) >= REMEMBERED) {
      this.past.shift();
    }
  }

  recall() {}

  next() {
    if (this.tiles.length || this.locked) return;
    const group = this.page.ahead.takeGroup(Number(this.root.dataset.gridSize) || 12);
    this.page.ahead.fill();
    if (group) this.show(group);
    else this.wait();
  }

  show(group) {
    this.present({
      tiles: group.map((entry, i) => this.build(entry, i, group.length)),
      undone: [],
    });
    const all = group.length;
    announce(`${group[0].item.text} ${say(this.page.words, "grid_count", { done: 0, all })}`);
  }

  /** Put a text and its pictures on the screen. */
  present({ tiles, undone }) {
    const { item } = tiles[0].entry;
    this.page.ends.wait(false);
    this.page.ends.clear();
    this.text.replaceChildren(...markedText(item.text, item.spans));
    this.text.dir = item.dir || "auto";
    this.text.classList.toggle("is-long", item.text.length > 110);
    this.category.textContent = plain(item.category || "");
    this.tiles = tiles;
    this.undone = undone;
    this.fit();
    this.stage.replaceChildren(...tiles.map((tile) => tile.node));
    this.stage.scrollTop = 0;
    this.select(0, false);
    this.showCount();
    this.enable(true);
    this.page.clock.lap();
  }

  /** All pictures of the text at once, as large as they then can be, unless that is too small. */
  fit() {
    const { clientWidth, clientHeight } = this.stage;
    const count = this.tiles.length;
    const style = getComputedStyle(this.stage);
    const gap = parseFloat(style.columnGap) || 0;
    const [width, height] = [
      clientWidth - 2 * parseFloat(style.paddingLeft),
      clientHeight - 2 * parseFloat(style.paddingTop),
    ];
    const sizes = Array.from({ length: count }, (_, i) => {
      const rows = Math.ceil(count / (i + 1));
      return Math.min((width - gap * i) / (i + 1), (height - gap * (rows - 1)) / rows - BAR);
    });
    const best = Math.floor(Math.max(...sizes, 0));
    const fits = best >= LEAST_WIDTH;
    const columns = sizes.findIndex((size) => Math.floor(size) === best) + 1;
    this.stage.style.gridTemplateColumns = fits ? `repeat(${columns}, ${best}px)` : "";
    this.stage.classList.toggle("is-fitting", fits);
  }

  build(entry, index, all) {
    const node = document.createElement("article");
    node.className = "tile";
    const label = say(this.page.words, "tile", { n: index + 1, all });
    node.setAttribute("aria-label", label);
    const frame = document.createElement("div");
    frame.className = "tile-image";
    if (entry.image) {
      entry.image.alt = label;
      frame.append(entry.image);
    } else {
      frame.append(icon("image"));
    }
    const bar = document.createElement("div");
    bar.className = "tile-bar";
    const buttons = VERDICTS.map(([verdict, sign]) => this.button(verdict, sign, label));
    bar.append(...buttons);
    node.append(frame, bar);
    frame.addEventListener("dblclick", () => this.enlarge());
    const tile = { entry, node, buttons, verdict: null };
    node.addEventListener("pointerdown", () => this.select(this.tiles.indexOf(tile), false));
    if (entry.state !== "ready") tile.skipped = true;
    if (tile.skipped) for (const button of buttons) button.disabled = true;
    return tile;
  }

  button(verdict, sign, label) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = `tile-button tile-${verdict}`;
    button.dataset.act = verdict;
    button.setAttribute("aria-pressed", "false");
    button.setAttribute("aria-label", `${this.page.words[verdict]}: ${label}`);
    button.append(icon(sign));
    return button;
  }

  paint(tile) {
    tile.node.dataset.verdict = tile.verdict || "";
    for (const button of tile.buttons) {
      button.setAttribute("aria-pressed", String(button.dataset.act === tile.verdict));
    }
  }

  enlarge() {
    if (!this.tile?.entry.image) return false;
    this.page.dialogs.enlarge(this.tile.entry.item);
    return true;
  }

  skip() {
    const tile = this.tile;
    if (!tile || tile.verdict || tile.skipped || this.locked) return false;
    this.page.dialogs.skip((reason, remark) => {
      this.page.recordSkip(tile.entry.item, reason, remark);
      this.page.ahead.done(tile.entry.item.item);
      tile.skipped = true;
      tile.node.dataset.skipped = "";
      for (const button of tile.buttons) button.disabled = true;
      announce(this.page.words.skipped);
      this.onward();
    });
    return true;
  }

  flag() {
    const tile = this.tile;
    if (!tile) return false;
    this.page.dialogs.flag((kind, remark) => {
      this.page.recordFlag(tile.entry.item, kind, remark);
      this.earlier.textContent = this.page.words.flagged;
    });
    return true;
  }

  enable(on) {
    for (const act of ["skip", "flag"])
      this.root.querySelector(`[data-act="${act}"]`).disabled = !on;
    if (!on) this.showCount();
  }

  wait() {
    this.enable(false);
    this.page.ends.wait(true);
  }

  clear() {
    this.tiles = [];
    this.undone = [];
    this.text.replaceChildren();
    this.stage.replaceChildren();
    this.category.textContent = "";
    this.enable(false);
  }

  unlock() {
    this.locked = false;
  }
}
