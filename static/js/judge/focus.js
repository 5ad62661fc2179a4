// Focus mode: one text, one picture, one key.

import { announce, icon, markedText, plain, say, tint } from "./view.js";
import { Zoom } from "./zoom.js";

const REMEMBERED = 10;

export class FocusView {
  constructor(page) {
    this.page = page;
    this.root = page.root;
    this.text = this.root.querySelector("[data-text]");
    this.stage = this.root.querySelector("[data-stage]");
    this.category = this.root.querySelector("[data-category]");
    this.earlier = this.root.querySelector("[data-earlier]");
    this.zoom = new Zoom(this.stage);
    this.past = [];
    this.back = null;
    this.current = null;
    this.locked = false;
    this.root.addEventListener("click", (event) => this.click(event));
    page.ahead.addEventListener("ready", () => this.next());
    page.ahead.addEventListener("claimed", () => this.next());
    addEventListener("popstate", () => this.browserBack());
  }

  /** Buttons do what keys do; a button clicked by pointer gives the focus back, lest space press it again. */
  click(event) {
    const button = event.target.closest("[data-act]");
    if (!button || button.disabled) return;
    if (event.detail > 0) button.blur();
    this.act(button.dataset.act, event);
  }

  /** One act by name. Returns false when it means nothing now. */
  act(action) {
    if (action in { accept: 1, reject: 1, unsure: 1 }) return this.judge(action);
    const acts = {
      undo: () => this.undo(),
      next: () => this.forward(),
      back: () => this.forward(),
      right: () => this.turn(1, 0),
      left: () => this.turn(-1, 0),
      up: () => this.turn(0, -1),
      down: () => this.turn(0, 1),
      zoom_in: () => this.zoom.by(1.4),
      zoom_out: () => this.zoom.by(1 / 1.4),
      zoom_reset: () => this.zoom.reset(),
      skip: () => this.skip(),
      flag: () => this.flag(),
    };
    return acts[action] ? acts[action]() : this.page.act(action);
  }

  /** The entry on the screen: an earlier one while correcting, else the current one. */
  get shown() {
    return this.back === null ? this.current : this.past[this.back];
  }

  turn(x, y) {
    if (this.zoom.scale > 1) this.zoom.pan(-x * 60, -y * 60);
    else if (x > 0 && this.back !== null) this.forward();
    else return false;
    return true;
  }

  judge(verdict) {
    const entry = this.shown;
    if (!entry || this.locked || entry.state !== "ready") return false;
    const active = this.page.clock.lap();
    if (this.back !== null) this.correct(entry, verdict, active);
    else this.answer(entry, verdict, active);
    tint(verdict);
    return true;
  }

  answer(entry, verdict, active) {
    this.current = null;
    this.page.ahead.done(entry.item.item);
    this.remember({ ...entry, verdict });
    this.page.record(entry.item, verdict, active, "focus");
    if (this.page.feedback) this.lock();
    else this.next(verdict);
  }

  correct(entry, verdict, active) {
    if (entry.verdict !== verdict) {
      entry.verdict = verdict;
      this.page.record(entry.item, verdict, active, "focus", { correction: true });
    }
    this.forward();
  }

  remember(entry) {
    this.past.push(entry);
    if (this.past.length > REMEMBERED) this.past.shift();
    this.page.armBack();
    this.showUndo();
  }

  /** Judgements of an earlier visit, newest first, as the server tells them. */
  recall(judgements) {
    const known = new Set(this.past.map((entry) => entry.item.item));
    const older = judgements.filter((judgement) => !known.has(judgement.item)).reverse();
    const entries = older.map((item) => ({
      item,
      verdict: item.verdict,
      image: null,
      state: "unloaded",
    }));
    this.past = [...entries, ...this.past].slice(-REMEMBERED);
    this.showUndo();
  }

  async undo() {
    const index = this.back === null ? this.past.length - 1 : this.back - 1;
    if (index < 0 || this.locked || !this.page.mayUndo) return false;
    const entry = this.past[index];
    if (!entry.image) await this.page.load(entry);
    this.back = index;
    this.show(entry);
    return true;
  }

  /** From an earlier judgement towards the current picture. */
  forward() {
    if (this.back === null) return false;
    this.back = this.back + 1 < this.past.length ? this.back + 1 : null;
    if (this.back !== null && !this.past[this.back].image) this.back = null;
    if (this.shown) this.show(this.shown);
    else this.next();
    return true;
  }

  /** The browser's Back shows the earlier answer; with nothing earlier it leaves. */
  async browserBack() {
    if (history.state?.judge === "top") return;
    if (await this.undo()) this.page.armBack();
    else history.back();
  }

  /** Put the next item on the screen if there is none. */
  next(verdict) {
    if (this.current || this.locked) return;
    const entry = this.page.ahead.take();
    this.page.ahead.fill();
    if (entry) {
      this.current = entry;
      if (this.back === null) this.show(entry, verdict);
    } else if (this.back === null) {
      if (verdict) announce(`${this.page.words[verdict]}.`);
      this.wait();
    }
  }

  /** Text and picture change in one go; the picture is decoded already. */
  show(entry, verdict) {
    const { item } = entry;
    this.page.ends.wait(false);
    this.page.ends.clear();
    this.text.replaceChildren(...markedText(item.text, item.spans));
    this.text.dir = item.dir || "auto";
    this.text.classList.toggle("is-long", item.text.length > 110);
    if (entry.state === "broken") {
      this.stage.replaceChildren(this.broken());
      this.zoom.attach(null);
    } else {
      entry.image.alt = this.page.words.picture;
      this.stage.replaceChildren(entry.image);
      this.zoom.attach(entry.image);
    }
    this.category.textContent = plain(item.category || "");
    this.showEarlier(entry);
    this.enable(entry.state === "ready");
    this.page.clock.lap();
    const said = verdict ? `${this.page.words[verdict]}. ` : "";
    announce(`${said}${item.text}`);
  }

  showEarlier(entry) {
    const earlier = this.back !== null;
    this.root.classList.toggle("is-earlier", earlier);
    for (const button of this.root.querySelectorAll("[data-verdict]")) {
      button.setAttribute(
        "aria-pressed",
        String(earlier && entry.verdict === button.dataset.verdict),
      );
    }
    this.earlier.textContent = earlier
      ? say(this.page.words, "earlier", { verdict: this.page.words[entry.verdict] })
      : "";
    this.showUndo();
  }

  showUndo() {
    const left = this.back === null ? this.past.length : this.back;
    const button = this.root.querySelector('[data-act="undo"]');
    button.disabled = !left || !this.page.mayUndo;
  }

  broken() {
    const box = document.createElement("div");
    box.className = "judge-broken";
    const words = document.createElement("p");
    words.textContent = this.page.words.broken;
    box.append(icon("image"), words);
    return box;
  }

  enable(on) {
    for (const button of this.root.querySelectorAll("[data-verdict]")) button.disabled = !on;
    for (const act of ["skip", "flag"]) {
      this.root.querySelector(`[data-act="${act}"]`).disabled = !this.shown || this.back !== null;
    }
  }

  /** Nothing is ready: keys are dead, and after 300 ms the page says what it waits for. */
  wait() {
    this.enable(false);
    this.page.ends.wait(true);
  }

  /** The stage is empty, as the end or a pause takes its place. */
  clear() {
    this.text.replaceChildren();
    this.stage.replaceChildren();
    this.zoom.attach(null);
    this.category.textContent = "";
    this.enable(false);
  }

  lock() {
    this.locked = true;
    this.enable(false);
  }

  unlock() {
    this.locked = false;
    this.next();
  }

  skip() {
    const entry = this.shown;
    if (!entry || this.back !== null || this.locked) return false;
    this.page.dialogs.skip((reason, remark) => {
      this.page.recordSkip(entry.item, reason, remark);
      this.page.ahead.done(entry.item.item);
      this.current = null;
      announce(this.page.words.skipped);
      this.next();
    }, entry.state === "broken");
    return true;
  }

  flag() {
    const entry = this.shown;
    if (!entry) return false;
    this.page.dialogs.flag((kind, remark) => {
      this.page.recordFlag(entry.item, kind, remark);
      this.earlier.textContent = this.page.words.flagged;
    });
    return true;
  }
}
