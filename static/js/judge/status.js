// The bar: how far, how fast, and whether the last answer is safe.

import { icon, say } from "./view.js";

const ICONS = {
  saved: "cloud-check",
  sending: "cloud-upload",
  waiting: "cloud-upload",
  offline: "wifi-off",
  signed_out: "lock",
};
const QUIET_MS = 600;

export class Status {
  constructor(root, words) {
    this.words = words;
    this.state = root.querySelector("[data-state]");
    this.count = root.querySelector("[data-progress-text]");
    this.meter = root.querySelector("[data-progress]");
    this.all = root.querySelector("[data-progress-all]");
    this.pace = root.querySelector("[data-pace]");
  }

  /** `saved`, `n waiting`, `offline`, `signed out`. A quick send is not shown: nothing flickers. */
  show({ state, waiting, refused, durable }) {
    this.state.dataset.state = state;
    this.state.dataset.waiting = String(waiting);
    clearTimeout(this.timer);
    const paint = () => this.paint(state, waiting, refused, durable);
    if (state === "sending") this.timer = setTimeout(paint, QUIET_MS);
    else paint();
  }

  paint(state, waiting, refused, durable) {
    const name = !durable && waiting ? "fragile" : state;
    const label = document.createElement("span");
    label.textContent = say(this.words, name, { n: waiting });
    const parts = [icon(ICONS[state]), label];
    if (refused) {
      const badge = document.createElement("span");
      badge.className = "badge badge-warn";
      badge.textContent = say(this.words, "refused", { n: refused });
      parts.push(badge);
    }
    this.state.replaceChildren(...parts);
  }

  /** Three counts that are never mixed: my answers, my quota, the campaign's items. */
  progress({ mine, quota, items_complete: done, items_total: total }, waiting) {
    const here = mine + waiting;
    const share = total ? Math.floor((100 * done) / total) : 0;
    this.count.textContent = quota
      ? say(this.words, "of", { n: Math.min(here, quota), all: quota })
      : say(this.words, "done", { n: here });
    this.meter.value = quota ? Math.min(1, here / quota) : share / 100;
    this.meter.setAttribute("aria-label", quota ? this.words.meter_mine : this.words.meter_all);
    this.all.textContent = quota ? "" : say(this.words, "all", { share });
  }

  showPace(ms) {
    this.paceText = ms ? say(this.words, "pace", { s: (ms / 1000).toFixed(1) }) : "";
    this.pace.textContent = [this.paceText, this.endText].filter(Boolean).join(" · ");
  }

  /** A study with a time limit says when it is over. */
  showEnd(iso) {
    const time =
      iso && new Date(iso).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
    this.endText = time ? say(this.words, "until", { time }) : "";
    this.pace.textContent = [this.paceText, this.endText].filter(Boolean).join(" · ");
  }
}
