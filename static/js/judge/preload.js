// Items ahead: claimed under short leases, loaded and decoded before they are shown.
// An item is ready when its <img> is decoded; only ready items reach the screen.

import { ApiError } from "./api.js";

const RETRY_FIRST = 1000;
const RETRY_LONGEST = 20_000;

async function decode(item) {
  const image = new Image();
  image.alt = "";
  image.draggable = false;
  image.decoding = "sync";
  image.width = item.width;
  image.height = item.height;
  image.src = item.image;
  await image.decode();
  return image;
}

export class Ahead extends EventTarget {
  /** Keep at least `low` items ready, up to `high`; `waiting()` tells how many answers are unsent. */
  constructor(api, channel, { low, high, most, waiting, idle }) {
    super();
    Object.assign(this, { api, channel, low, high, most, waiting, idle });
    this.queue = [];
    this.taken = new Set();
    this.answered = new Set();
    this.end = null;
    this.wait = RETRY_FIRST;
    channel.on("who", () => this.announce());
    channel.on("answered", ({ item }) => this.drop(item));
  }

  /** Tell the other tabs what is here. */
  announce() {
    const items = [...this.queue.map((entry) => entry.item.item), ...this.taken];
    this.channel.send("held", { items });
  }

  /** Fetch until enough items are ready; safe to call at any time. */
  async fill() {
    if (this.filling) return this.filling;
    this.filling = this.claim().finally(() => {
      this.filling = null;
    });
    return this.filling;
  }

  async claim() {
    this.expire();
    if (this.queue.length >= this.low || this.stopped) return;
    this.left = false;
    let reply;
    try {
      reply = await this.api.post("claim", { n: this.inHand(this.waiting()) });
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      this.failed(error);
      return;
    }
    this.receive(reply.items);
    const nothing = !this.queue.length;
    // All that came is answered here or open in another tab: ask again once that is settled.
    if (nothing && reply.state === "items") this.later();
    this.end = nothing && reply.state !== "items" ? reply : null;
    this.tell("claimed", reply);
  }

  /** What the server should count in this person's hands: what they hold already comes back first. */
  inHand(waiting) {
    const held = this.taken.size + waiting + this.channel.others().size;
    return Math.min(this.most, this.high + held);
  }

  /** How many items an answer should bring back: of the answers that wait, `sent` are on their way. */
  wanted(sent) {
    if (this.filling || this.stopped || this.left || this.queue.length >= this.high) return 0;
    return this.inHand(Math.max(this.waiting() - sent, 0));
  }

  /** Take in what is new: not here, not answered, not in another tab. */
  receive(items) {
    const here = this.queue.map((entry) => entry.item.item);
    const known = new Set([...here, ...this.taken, ...this.answered, ...this.channel.others()]);
    const fresh = items.filter((item) => !known.has(item.item));
    if (fresh.length) {
      this.wait = RETRY_FIRST;
      this.end = null;
    }
    for (const item of fresh) this.prepare(item);
    this.announce();
  }

  prepare(item) {
    const entry = { item, image: null, state: "loading" };
    this.queue.push(entry);
    this.load(entry);
  }

  async load(entry) {
    try {
      entry.image = await decode(entry.item);
      entry.state = "ready";
    } catch {
      await this.renew(entry);
    }
    this.tell("ready", entry);
  }

  /** An address may have expired: ask for a new one once, silently; then say that it is broken. */
  async renew(entry) {
    try {
      const reply = await this.api.post("claim", {
        n: Math.min(this.most, this.high + this.taken.size + this.waiting()),
      });
      const again = reply.items.find((item) => item.item === entry.item.item);
      if (again) entry.item = again;
      entry.image = await decode(entry.item);
      entry.state = "ready";
    } catch {
      entry.state = "broken";
    }
  }

  /** The next item if it is ready (or broken), else null. */
  take() {
    this.expire();
    const [entry] = this.queue;
    if (!entry || entry.state === "loading") return null;
    this.queue.shift();
    this.taken.add(entry.item.item);
    this.announce();
    return entry;
  }

  /**
   * The next items of one text, once every one of them is decoded; for the grid. At most `most`:
   * a text with more comes in screens of about equal size, so that none stands alone at the end.
   */
  takeGroup(most) {
    this.expire();
    const [first] = this.queue;
    if (!first) return null;
    const all = this.queue.filter((entry) => entry.item.group === first.item.group);
    const group = all.slice(0, Math.ceil(all.length / Math.ceil(all.length / most)));
    if (group.some((entry) => entry.state === "loading")) return null;
    this.queue = this.queue.filter((entry) => !group.includes(entry));
    for (const entry of group) this.taken.add(entry.item.item);
    this.announce();
    return group;
  }

  /** Answered or skipped: no longer held. */
  done(item) {
    this.taken.delete(item);
    this.answered.add(item);
    this.channel.send("answered", { item });
  }

  drop(item) {
    this.queue = this.queue.filter((entry) => entry.item.item !== item);
  }

  /** Leases that ran out while waiting go to others: they are not shown. */
  expire(now = Date.now() + this.api.skew) {
    this.queue = this.queue.filter((entry) => Date.parse(entry.item.expires_at) > now + 2000);
  }

  async later() {
    await this.idle();
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.fill(), this.wait);
    this.wait = Math.min(this.wait * 2, RETRY_LONGEST);
  }

  failed(error) {
    this.tell("failed", error);
    if (error.kind === "signed_out" || error.kind === "refused") return;
    const wait = Math.max(error.after, this.wait);
    this.wait = Math.min(this.wait * 2, RETRY_LONGEST);
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.fill(), wait);
  }

  /** Leaving: what nobody has seen is given back at once. */
  giveBack() {
    this.left = true;
    const assignments = this.queue.map((entry) => entry.item.assignment);
    this.queue = [];
    if (assignments.length) this.api.farewell("release", { assignments });
    this.channel.send("bye", {});
  }

  tell(type, detail) {
    this.dispatchEvent(new CustomEvent(type, { detail }));
  }
}
