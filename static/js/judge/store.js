// The durable queue: answers are written to IndexedDB before anything else happens to them, and leave it
// only when the server has named them stored. Kept per person and campaign ("scope").

const NAME = "croc-judge";
const KEEP_SENT = 300;

/** A random id in the form of a UUID, also where crypto.randomUUID is missing (plain http). */
export function newKey() {
  if (crypto.randomUUID) return crypto.randomUUID();
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  bytes[6] = (bytes[6] & 0x0f) | 0x40;
  bytes[8] = (bytes[8] & 0x3f) | 0x80;
  const hex = [...bytes].map((b) => b.toString(16).padStart(2, "0")).join("");
  return [8, 12, 16, 20].reduceRight((text, at) => `${text.slice(0, at)}-${text.slice(at)}`, hex);
}

function promised(request) {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}

function openDatabase() {
  const request = indexedDB.open(NAME, 1);
  request.onupgradeneeded = () => {
    const db = request.result;
    const waiting = db.createObjectStore("waiting", { keyPath: "seq", autoIncrement: true });
    waiting.createIndex("scope", "scope");
    const sent = db.createObjectStore("sent", { keyPath: "seq", autoIncrement: true });
    sent.createIndex("scope", "scope");
  };
  return promised(request);
}

export class Store {
  constructor(scope) {
    this.scope = scope;
    this.durable = true;
    this.memory = { waiting: new Map(), sent: new Map() };
    this.count = 0;
  }

  async open() {
    try {
      this.db = await openDatabase();
    } catch {
      this.durable = false; // Private mode or a full disk: said on the page, kept in memory.
    }
    return this;
  }

  transaction(name, mode, work) {
    if (!this.db) return Promise.resolve(work(null));
    return new Promise((resolve, reject) => {
      const transaction = this.db.transaction(name, mode, { durability: "strict" });
      let result;
      transaction.oncomplete = () => resolve(result);
      transaction.onerror = transaction.onabort = () => reject(transaction.error);
      Promise.resolve(work(transaction)).then((value) => {
        result = value;
      }, reject);
    });
  }

  /** Add one record; resolves once it is on the disk. */
  async add(record, name = "waiting") {
    const kept = { ...record, scope: this.scope };
    if (!this.db) {
      this.count += 1;
      this.memory[name].set(this.count, { ...kept, seq: this.count });
      return;
    }
    await this.transaction(name, "readwrite", (t) => {
      const added = promised(t.objectStore(name).add(kept));
      // Not by itself after the reply to "add": a tab that is closed between the two would lose it.
      t.commit();
      return added;
    });
  }

  /** All records of this scope, in the order in which they were added. */
  async all(name = "waiting") {
    if (!this.db) return [...this.memory[name].values()];
    const query = (t) => promised(t.objectStore(name).index("scope").getAll(this.scope));
    return (await this.transaction(name, "readonly", query)).sort((a, b) => a.seq - b.seq);
  }

  async remove(seqs, name = "waiting") {
    if (!this.db) {
      for (const seq of seqs) this.memory[name].delete(seq);
      return;
    }
    await this.transaction(name, "readwrite", (t) => {
      for (const seq of seqs) t.objectStore(name).delete(seq);
    });
  }

  async update(record) {
    if (!this.db) this.memory.waiting.set(record.seq, record);
    else
      await this.transaction("waiting", "readwrite", (t) =>
        promised(t.objectStore("waiting").put(record)),
      );
  }

  /** Move records that the server has to the list that is compared with it later. */
  async settle(records) {
    if (!records.length) return;
    for (const { seq, scope, ...record } of records) await this.add(record, "sent");
    await this.remove(records.map((record) => record.seq));
    const sent = await this.all("sent");
    if (sent.length > KEEP_SENT) {
      await this.remove(
        sent.slice(0, sent.length - KEEP_SENT).map((record) => record.seq),
        "sent",
      );
    }
  }
}
