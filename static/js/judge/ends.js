// What stands in the picture's place: a skeleton while something loads, or an end with its next step.

import { say } from "./view.js";

const SKELETON_AFTER = 300;
const WAITS = { offline: "wait_offline", busy: "wait_busy", signed_out: "wait_signed_out" };

export class Ends {
  constructor(page) {
    this.page = page;
    this.root = page.root;
    this.panel = this.root.querySelector("[data-end]");
    this.cover = this.root.querySelector("[data-cover]");
    this.why = null;
  }

  /** Nothing to show yet: after 300 ms a skeleton, and what is waited for in words. */
  wait(on) {
    clearTimeout(this.skeletonTimer);
    if (on) this.skeletonTimer = setTimeout(() => this.showCover(), SKELETON_AFTER);
    else this.cover.hidden = true;
  }

  showCover() {
    const { view, outbox, words } = this.page;
    if (view.current || view.tiles?.length || this.root.classList.contains("has-end")) return;
    const line = this.cover.querySelector("p");
    line.textContent = say(words, WAITS[this.why] || "wait", { n: outbox.waiting });
    view.clear();
    this.cover.hidden = false;
  }

  /** An end or a pause, each with its own words. */
  show({ state, retry_at: retryAt, message }) {
    const { view, progress, outbox } = this.page;
    const template =
      document.getElementById(`end-${state}`) || document.getElementById("end-nothing");
    this.panel.replaceChildren(template.content.cloneNode(true));
    for (const node of this.panel.querySelectorAll("[data-mine]")) {
      node.textContent = String(progress.mine + outbox.fresh);
    }
    if (message) this.panel.querySelector("[data-message]")?.replaceChildren(message);
    if (retryAt) this.retryAt(new Date(retryAt));
    view.clear();
    this.root.classList.add("has-end");
    this.root.dataset.end = state;
    this.panel.hidden = false;
    this.cover.hidden = true;
    clearTimeout(this.skeletonTimer);
  }

  clear() {
    if (!this.root.classList.contains("has-end")) return;
    this.root.classList.remove("has-end");
    delete this.root.dataset.end;
    this.panel.hidden = true;
  }

  /** Look again by itself when the leases of others end. */
  retryAt(date) {
    const time = this.panel.querySelector("[data-retry-at]");
    if (time) {
      time.textContent = date.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
      time.dateTime = date.toISOString();
    }
    clearTimeout(this.retryTimer);
    const wait = Math.max(5000, date.getTime() - Date.now() - this.page.api.skew);
    this.retryTimer = setTimeout(() => this.page.retry(), Math.min(wait, 2 ** 31 - 1));
  }
}
