// The judging page: wires the queue of items, the outbox of answers, the view, keys and dialogs together.

import { Api } from "./api.js";
import { Channel } from "./channel.js";
import { Dialogs } from "./dialogs.js";
import { Ends } from "./ends.js";
import { FocusView } from "./focus.js";
import { GridView } from "./grid.js";
import { Keys } from "./keys.js";
import { Outbox } from "./outbox.js";
import { Ahead } from "./preload.js";
import * as records from "./records.js";
import { Status } from "./status.js";
import { Store } from "./store.js";
import { ActiveClock } from "./timing.js";

const RECONCILE_EVERY = 5 * 60_000;

class Page {
  constructor(root) {
    this.root = root;
    const data = root.dataset;
    this.words = document.getElementById("judge-words").dataset;
    this.scope = `${data.user}:${data.campaign}`;
    this.stage = data.stage;
    this.api = new Api({
      base: data.api,
      csrfUrl: data.csrfUrl,
      loginUrl: data.loginUrl,
      shortcutsUrl: data.shortcutsUrl,
      user: data.user,
      csrf: root.querySelector("[name=csrfmiddlewaretoken]").value,
    });
    this.channel = new Channel(this.scope);
    this.store = new Store(this.scope);
    this.clock = new ActiveClock();
    this.status = new Status(root, this.words);
    this.ends = new Ends(this);
    this.progress = { mine: 0, quota: null, items_complete: 0, items_total: 0 };
  }

  get feedback() {
    return this.stage === "practice";
  }

  get mayUndo() {
    return this.stage === "work";
  }

  async start() {
    await this.store.open();
    this.outbox = new Outbox(this.store, this.api, this.channel, (sent) =>
      this.ahead ? this.ahead.wanted(sent) : 0,
    );
    const size = this.root.dataset.mode === "grid" ? Number(this.root.dataset.gridSize) || 12 : 3;
    const grid = this.root.dataset.mode === "grid";
    this.ahead = new Ahead(this.api, this.channel, {
      low: grid ? size + 1 : 3,
      high: grid ? size * 2 : 6,
      most: 60,
      waiting: () => this.outbox.waiting,
      idle: () => this.outbox.kick(),
    });
    for (const record of await this.store.all()) {
      if (record.kind !== "flag") this.ahead.answered.add(record.item);
    }
    this.view = grid ? new GridView(this) : new FocusView(this);
    this.keys = new Keys(
      JSON.parse(document.getElementById("judge-shortcuts").textContent),
      (action) => this.view.act(action),
    );
    this.dialogs = new Dialogs(this);
    this.listen();
    history.replaceState({ judge: "base" }, "");
    await this.outbox.start();
    await this.channel.meet();
    await this.openSession();
    this.outbox.reconcile().catch(() => {});
    setInterval(() => this.outbox.reconcile().catch(() => {}), RECONCILE_EVERY);
  }

  async openSession() {
    try {
      const session = await this.api.get("session");
      if (session.csrf) this.api.csrf = session.csrf;
      this.useSession(session);
    } catch (error) {
      if (error.kind === "signed_out") this.signedOut({ code: error.code });
      else if (error.kind === "refused") this.end({ state: "refused", message: error.message });
      else setTimeout(() => this.openSession(), 3000);
      this.ends.wait(true);
      return;
    }
    this.view.next();
    await this.ahead.fill();
    this.recall();
  }

  useSession(session) {
    this.stage = session.stage;
    this.showProgress(session);
    this.status.showEnd(session.ends_at);
    if (session.shortcuts) this.useShortcuts(session.shortcuts);
    if (session.stage === "paused" || session.stage === "ended") this.end({ state: session.stage });
    if (session.stage === "consent" || session.stage === "guideline") this.reloadWhenSaved();
  }

  async recall() {
    if (!this.mayUndo) return;
    try {
      const { judgements } = await this.api.get("history?limit=10");
      this.view.recall(judgements);
    } catch {
      // Undo reaches back to this visit only.
    }
  }

  listen() {
    this.outbox.addEventListener("change", ({ detail }) => {
      this.status.show({ ...detail, durable: this.store.durable });
      this.status.progress(this.progress, this.outbox.fresh);
      if (detail.state === "signed_out" && !this.signedOutBy) this.signedOut({ code: detail.code });
      if (detail.state === "saved" && this.reloading) location.reload();
    });
    this.outbox.addEventListener("reply", ({ detail }) => {
      this.showProgress(detail);
      if (detail.items?.length) this.ahead.receive(detail.items);
      this.follow(detail.stage);
    });
    this.outbox.addEventListener("result", ({ detail }) => this.result(detail));
    this.ahead.addEventListener("claimed", ({ detail }) => this.claimed(detail));
    this.ahead.addEventListener("failed", ({ detail }) => this.claimFailed(detail));
    document.addEventListener("click", (event) => {
      const button = event.target.closest("[data-page-act]");
      if (!button) return;
      const menu = button.closest("details.menu");
      if (menu) menu.open = false;
      this.act(button.dataset.pageAct);
    });
    addEventListener("pagehide", () => this.ahead.giveBack());
    addEventListener("pageshow", (event) => event.persisted && location.reload());
    addEventListener("beforeunload", (event) => {
      const { adding, waiting } = this.outbox;
      if (adding.size || (waiting && !this.store.durable)) event.preventDefault();
    });
    addEventListener("online", () => this.ahead.fill());
    document.addEventListener("visibilitychange", () => this.wake());
  }

  /** Back from another tab: signed in there perhaps, or leases ran out meanwhile. */
  async wake() {
    if (document.hidden) return;
    if (this.outbox.state === "signed_out" || this.signedOutBy) {
      try {
        await this.api.renew();
        document.getElementById("signin-dialog").close();
        this.signedIn();
      } catch {
        return;
      }
    }
    this.ahead.fill();
  }

  /** Acts of the page itself, by key or button. */
  act(action) {
    const acts = {
      guide: () => this.dialogs.guide(this.category()),
      keys: () => this.dialogs.keys(),
      state: () => (this.signedOutBy ? this.signedOut({ ask: true }) : this.dialogs.state()),
      retry: () => this.retry(),
    };
    if (!acts[action]) return false;
    acts[action]();
    return true;
  }

  category() {
    return (this.view.shown || this.view.tile?.entry)?.item.category || "";
  }

  useShortcuts(shortcuts) {
    this.keys.use(shortcuts);
  }

  record(item, verdict, active, mode, options = {}) {
    this.outbox.add(
      records.answer(item, verdict, active, mode, { skew: this.api.skew, ...options }),
    );
  }

  recordSkip(item, reason, remark) {
    this.outbox.add(records.skip(item, reason, remark));
  }

  recordFlag(item, kind, remark) {
    this.outbox.add(records.flag(item, kind, remark));
  }

  async load(entry) {
    const image = new Image();
    image.decoding = "sync";
    image.draggable = false;
    image.src = entry.item.image;
    try {
      await image.decode();
      Object.assign(entry, { image, state: "ready" });
    } catch {
      entry.state = "broken";
    }
  }

  claimed(reply) {
    this.showProgress(reply);
    if (this.ahead.end && !this.busy()) this.end(this.ahead.end);
  }

  busy() {
    return Boolean(
      this.view.current || this.view.tiles?.length || this.ahead.queue.length || this.view.locked,
    );
  }

  claimFailed(error) {
    if (error.kind === "signed_out") this.signedOut({ code: error.code, ask: !this.busy() });
    if (error.kind === "refused") this.end({ state: "refused", message: error.message });
    this.ends.why = error.kind === "refused" ? null : error.kind;
    if (!this.busy()) this.ends.wait(true);
  }

  showProgress(reply) {
    if (reply.progress) this.progress = { ...reply.progress };
    this.status.progress(this.progress, this.outbox.fresh);
    if ("pace_ms" in reply) this.status.showPace(reply.pace_ms);
  }

  /** The server may move a person on (quiz, work) or stop them (pause, cap): the page follows. */
  follow(stage) {
    if (!stage || stage === this.stage) return;
    const dialog = document.getElementById("feedback-dialog");
    if (dialog.open) {
      dialog.addEventListener("close", () => this.follow(stage), { once: true });
    } else if (stage === "paused" || stage === "ended") {
      this.ahead.giveBack();
      this.end({ state: stage });
    } else {
      this.reloadWhenSaved();
    }
  }

  result({ record, result }) {
    if (result.feedback && this.feedback) {
      this.dialogs.feedback(result.feedback, () => this.view.unlock());
    } else if (this.view.locked) {
      this.view.unlock();
    }
    if (result.status === "duplicate" && record.item)
      this.channel.send("answered", { item: record.item });
  }

  /** The session is gone: say so, keep everything, and offer to sign in here. */
  signedOut({ code = "", ask = false }) {
    const first = !this.signedOutBy;
    this.signedOutBy = code || "session";
    if (this.outbox.state !== "signed_out") this.outbox.show("signed_out");
    if (first || ask) this.dialogs.signIn(this.outbox.waiting, code);
  }

  signedIn() {
    this.signedOutBy = null;
    this.ends.why = null;
    this.outbox.show("waiting");
    this.outbox.kick();
    if (this.progress.items_total) this.ahead.fill();
    else this.openSession();
  }

  /** Back within the page shows the earlier answer: one entry above the page's own is kept for it. */
  armBack() {
    if (history.state?.judge !== "top") history.pushState({ judge: "top" }, "");
  }

  /** An end, unless it is only the end of this stage: then the page of the next one comes. */
  end(reply) {
    const over = reply.stage === "ended" || reply.stage === "paused";
    const moved = reply.stage && reply.stage !== this.stage && reply.state !== "items";
    if (over && (reply.state === "stage" || moved)) this.ends.show({ ...reply, state: reply.stage });
    else if (reply.state === "stage" || moved) this.reloadWhenSaved();
    else this.ends.show(reply);
  }

  retry() {
    this.ahead.end = null;
    this.outbox.kick();
    return this.ahead.fill();
  }

  reloadWhenSaved() {
    this.reloading = true;
    if (!this.outbox.waiting) location.reload();
  }
}

const root = document.getElementById("judge");
const page = new Page(root);
root.dataset.started = "no";
page.start().then(() => {
  root.dataset.started = "yes";
  root.setAttribute("aria-busy", "false");
});

export { page };
