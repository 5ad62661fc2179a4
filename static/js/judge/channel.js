// Tabs of one person talk, so that two of them never show the same image.

export class Channel {
  constructor(scope) {
    this.tab = Math.random().toString(36).slice(2);
    this.handlers = new Map();
    this.held = new Map();
    this.channel =
      "BroadcastChannel" in window ? new BroadcastChannel(`croc-judge ${scope}`) : null;
    this.channel?.addEventListener("message", (event) => this.receive(event.data));
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

  /** Ask the other tabs what they hold, and wait a moment for their answers. */
  async meet(wait = 120) {
    if (!this.channel) return;
    this.send("who", {});
    await new Promise((resolve) => setTimeout(resolve, wait));
  }

  /** Items that other tabs show or have ready. */
  others() {
    return new Set([...this.held.values()].flatMap((items) => [...items]));
  }
}
