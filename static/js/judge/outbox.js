// Sends what waits in the store, in order, in the background, from one tab at a time.
// Emits "change" with its state: saved | sending | waiting | offline | signed_out, and how many wait.

import { ApiError } from "./api.js";

const BATCH = 50;
const FIRST_WAIT = 1000;
const LONGEST_WAIT = 30_000;

function wire(record) {
  const { client_key, assignment, item, verdict, active_ms, mode, answered_at } = record;
  const reason = record.reason || "";
  const remark = record.remark || "";
  return { client_key, assignment, item, verdict, active_ms, mode, reason, remark, answered_at };
}

function isFresh(record) {
  return record.kind === "answer" && !record.correction;
}

/** Runs of equal kind at the head of the queue: answers go together, the rest one by one. */
export function nextBatch(records) {
  const [first] = records;
  if (!first) return [];
  if (first.kind !== "answer") return [first];
  const end = records.findIndex((record) => record.kind !== "answer");
  return records.slice(0, Math.min(end < 0 ? records.length : end, BATCH));
}

export class Outbox extends EventTarget {
  /** `wanted(n)` tells how many items a reply to n answers should bring. */
  constructor(store, api, channel, wanted) {
    super();
    Object.assign(this, { store, api, channel, wanted });
    this.state = "saved";
    this.waiting = 0;
    this.fresh = 0; // Of those, answers to items that the server counts as open still.
    this.refused = [];
    this.adding = new Set(); // On their way into the store: who reads it meanwhile does not see them.
    this.wait = FIRST_WAIT;
    addEventListener("online", () => this.kick());
    document.addEventListener("visibilitychange", () => document.hidden || this.kick());
    channel.on("queued", () => this.refresh());
  }

  async start() {
    await this.refresh();
    this.kick();
  }

  /** Keep a record and send it soon. Resolves when it is safe on this machine. */
  async add(record) {
    this.waiting += 1;
    if (isFresh(record)) this.fresh += 1;
    this.show(this.state === "saved" ? "sending" : this.state);
    this.adding.add(record);
    try {
      await this.store.add(record);
    } finally {
      this.adding.delete(record);
    }
    this.kick();
  }

  async refresh() {
    const records = await this.store.all();
    this.refused = records.filter((record) => record.refused);
    this.count(records.filter((record) => !record.refused));
    if (!this.waiting && this.state !== "signed_out") this.show("saved");
    else this.show(this.state === "saved" ? "waiting" : this.state);
  }

  /** What waits: in the store, and on its way there. */
  count(stored) {
    const all = [...stored, ...this.adding];
    this.waiting = all.length;
    this.fresh = all.filter(isFresh).length;
  }

  /** Try now, whatever was planned. */
  kick() {
    clearTimeout(this.timer);
    this.timer = null;
    if (!this.running) {
      this.running = this.run();
    } else {
      this.again = true;
    }
    return this.running;
  }

  async run() {
    try {
      do {
        this.again = false;
        await this.alone(() => this.drain());
      } while (this.again);
    } finally {
      this.running = null; // With the look at `again`, or a kick between the two would be lost.
    }
  }

  /** Only one tab sends. (Without the lock the server's client keys still stop doubles.) */
  alone(work) {
    if (!navigator.locks) return work();
    return navigator.locks.request(`outbox ${this.store.scope}`, work);
  }

  async drain() {
    for (;;) {
      const records = (await this.store.all()).filter((record) => !record.refused);
      this.count(records);
      if (!records.length) {
        this.wait = FIRST_WAIT;
        // What is on its way into the store is not saved yet; it kicks again when it is there.
        if (!this.adding.size) this.show("saved");
        return;
      }
      this.show(this.state === "saved" ? "sending" : this.state);
      try {
        await this.send(nextBatch(records));
        this.wait = FIRST_WAIT;
      } catch (error) {
        if (!(error instanceof ApiError)) throw error;
        this.hold(error);
        return;
      }
    }
  }

  async send(batch) {
    if (batch[0].kind === "answer") {
      const reply = await this.guard(batch, () =>
        this.api.post("answers", { answers: batch.map(wire), want: this.wanted(batch.length) }),
      );
      if (reply) await this.sort(batch, reply);
      return;
    }
    const { client_key, assignment, item, reason, remark, flag } = batch[0];
    const call =
      batch[0].kind === "skip"
        ? () => this.api.post("skip", { client_key, assignment, reason, remark })
        : () => this.api.post("flag", { client_key, item, kind: flag, remark });
    const reply = await this.guard(batch, call);
    if (reply) {
      await this.store.settle(batch);
      this.tell("reply", reply);
    }
  }

  /** A whole batch that the server will never take is set aside with the reason, not thrown away. */
  async guard(batch, call) {
    try {
      return await call();
    } catch (error) {
      if (!(error instanceof ApiError) || error.kind !== "refused") throw error;
      if (batch.length > 1) {
        for (const record of batch) await this.send([record]);
        return null;
      }
      await this.refuse(batch[0], error.message);
      return null;
    }
  }

  async sort(batch, reply) {
    const results = new Map(reply.results.map((result) => [result.client_key, result]));
    const done = [];
    for (const record of batch) {
      const result = results.get(record.client_key);
      if (!result) continue;
      if (result.status === "stored" || result.status === "duplicate") done.push(record);
      else await this.refuse(record, result.message);
      this.tell("result", { record, result });
    }
    if (!results.size) throw new ApiError("busy");
    await this.store.settle(done);
    this.fresh -= done.filter(isFresh).length;
    this.tell("reply", reply);
  }

  async refuse(record, message) {
    // An error without words bears its kind as message: the page then says it in its own.
    const refused = { ...record, refused: message && message !== "refused" ? message : true };
    await this.store.update(refused);
    this.refused.push(refused);
    this.tell("refused", refused);
  }

  /** The person has read about the refused ones: they need not be kept. */
  async dismiss() {
    await this.store.remove(this.refused.map((record) => record.seq));
    await this.refresh();
  }

  hold(error) {
    if (error.kind === "signed_out") {
      this.show("signed_out", error.code);
      return;
    }
    this.show(error.kind === "offline" ? "offline" : "waiting");
    const wait = Math.max(error.after, this.wait * (0.8 + Math.random() * 0.4));
    this.wait = Math.min(this.wait * 2, LONGEST_WAIT);
    this.timer = setTimeout(() => this.kick(), wait);
  }

  show(state, code = "") {
    this.state = state;
    this.tell("change", { state, waiting: this.waiting, refused: this.refused.length, code });
    if (this.told !== this.waiting) {
      this.told = this.waiting;
      this.channel.send("queued", {});
    }
  }

  tell(type, detail) {
    this.dispatchEvent(new CustomEvent(type, { detail }));
  }

  /** Compare with the server what it said it had; send again what it lacks. */
  async reconcile() {
    const sent = (await this.store.all("sent")).filter((record) => record.kind === "answer");
    const recent = sent.slice(-200);
    const reply = await this.api.post("reconcile", {
      client_keys: recent.map((r) => r.client_key),
    });
    const missing = new Set(reply.missing);
    const lost = recent.filter((record) => missing.has(record.client_key));
    for (const { seq, ...record } of lost) await this.store.add(record);
    await this.store.remove(
      lost.map((record) => record.seq),
      "sent",
    );
    if (lost.length) await this.kick();
    return { mine: reply.mine, compared: recent.length, missing: lost.length };
  }
}
