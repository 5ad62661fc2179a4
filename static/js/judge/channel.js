// Tabs of one person talk, so that two of them never show the same image.

export class Channel {
  constructor(scope) {
    this.tab = Math.random().toString(36).slice(2);
    this.handlers = new Map();
    this.held = new Map();
    this.channel =
      "BroadcastChannel" in window ? new BroadcastChannel(`croc-judge ${scope}`) : null;
    this.channel?.addEventListener("message", (event) => this.receive(event.data));
    this.sign = `judge-tab ${scope} `;
    // Held as long as the page is there, so that others know whose answer they wait for.
    navigator.locks?.request(this.sign + this.tab, () => {
      return new Promise((release) => addEventListener("pagehide", release, { once: true }));
    });
    this.on("held", (data) => this.held.set(data.tab, new Set(data.items)));
    this.on("bye", (data) => this.held.delete(data.tab));
  }

  on(type, handler) {
    this.handlers.set(type, [...(this.handlers.get(type) || []), handler]);
  }

  send(type, data) {
    this.channel?.postMessage({ type, tab: this.tab, ...data });
  }

  receive(data) {
    for (const handler of this.handlers.get(data.type) || []) handler(data);
  }

  /** Ask the other tabs what they hold, and wait for the answers: of each that is known, else a moment. */
  async meet({ moment = 120, longest = 2000 } = {}) {
    if (!this.channel) return;
    const tabs = await this.tabs();
    const pause = (wait) => new Promise((resolve) => setTimeout(resolve, wait));
    this.send("who", {});
    if (!tabs) {
      await pause(moment);
      return;
    }
    const end = performance.now() + longest;
    while (performance.now() < end && tabs.some((tab) => !this.held.has(tab))) await pause(10);
  }

  /** The other tabs with this page; null where the browser cannot tell. */
  async tabs() {
    if (!navigator.locks) return null;
    const { held } = await navigator.locks.query();
    const names = held.map((lock) => lock.name).filter((name) => name.startsWith(this.sign));
    return names.map((name) => name.slice(this.sign.length)).filter((tab) => tab !== this.tab);
  }

  /** Items that other tabs show or have ready. */
  others() {
    return new Set([...this.held.values()].flatMap((items) => [...items]));
  }
}
