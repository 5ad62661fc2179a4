// Keys of the judging page: one press, one act; never while typing, in a dialog, or on repeat.

import { keyName } from "../keyfields.js";

const TYPING = "input, textarea, select, [contenteditable]:not([contenteditable=false])";
const PRESSED_BY_KEY = "button, a[href], summary, [role=button]";

/** True where a key belongs to something else than the page. */
export function isElsewhere(event) {
  if (event.repeat || event.isComposing || event.keyCode === 229) return true;
  if (event.ctrlKey || event.metaKey || event.altKey) return true;
  if (document.querySelector("dialog[open], [popover]:popover-open, details.menu[open]"))
    return true;
  const target = event.target;
  if (!(target instanceof Element)) return false;
  if (target.closest(TYPING)) return true;
  // Space and Enter press the button that has the focus; they are no verdict then.
  return (event.key === " " || event.key === "Enter") && Boolean(target.closest(PRESSED_BY_KEY));
}

export class Keys {
  constructor(shortcuts, act) {
    this.act = act;
    this.use(shortcuts);
    addEventListener("keydown", (event) => this.press(event));
  }

  use(shortcuts) {
    this.shortcuts = { ...shortcuts };
    this.byKey = new Map(Object.entries(shortcuts).map(([action, key]) => [key, action]));
    for (const node of document.querySelectorAll("[data-key-of]")) {
      node.textContent = keyLabel(this.shortcuts[node.dataset.keyOf] || "");
    }
  }

  press(event) {
    if (isElsewhere(event)) return;
    const key = keyName(event.key);
    const action = this.byKey.get(key) || FIXED[key];
    if (!action) return;
    if (this.act(action, event) !== false) event.preventDefault();
  }
}

// Work whatever the person's table says; tables cannot use them for something else by accident,
// as the person's own keys come first.
const FIXED = {
  "?": "guide",
  "=": "zoom_in",
  enter: "next",
  escape: "back",
  arrowleft: "left",
  arrowright: "right",
  arrowup: "up",
  arrowdown: "down",
};

/** A key as it is printed on its cap. */
export function keyLabel(key) {
  const space = document.getElementById("judge-words")?.dataset.key_space || "space";
  const names = { space, arrowleft: "←", arrowright: "→", arrowup: "↑", arrowdown: "↓" };
  return names[key] || (key.length === 1 ? key.toUpperCase() : key);
}
