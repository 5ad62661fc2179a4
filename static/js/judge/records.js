// What the page writes down for each act, in the form in which it is kept and sent.

import { newKey } from "./store.js";

let latest = 0;

/** The time of an answer: later than that of the one before, or a correction could lose against it. */
function nextTime(skew) {
  latest = Math.max(latest + 1, Date.now() + skew);
  return new Date(latest).toISOString();
}

/** A verdict on an item, with the time that it took. */
export function answer(item, verdict, active, mode, { correction = false, skew = 0 } = {}) {
  return {
    kind: "answer",
    correction,
    client_key: newKey(),
    assignment: item.assignment || null,
    item: item.item,
    verdict,
    active_ms: active,
    mode,
    answered_at: nextTime(skew),
  };
}

/** A skip with its reason. */
export function skip(item, reason, remark) {
  const { assignment, item: key } = item;
  return { kind: "skip", client_key: newKey(), assignment, item: key, reason, remark };
}

/** A report about an item. */
export function flag(item, kind, remark) {
  return { kind: "flag", client_key: newKey(), item: item.item, flag: kind, remark };
}
