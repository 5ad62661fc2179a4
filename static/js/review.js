// Keys of the review page: every element with data-key reacts to its key. Dead while somebody types,
// in an open dialog, with a modifier, on key repeat and until the image is there.

const page = document.querySelector("[data-review]");
const image = page?.querySelector(".review-image img");
let ready = !image || image.complete;
image?.addEventListener("load", () => {
  ready = true;
});
image?.addEventListener("error", () => {
  ready = true;
});

function typing(target) {
  return target.closest?.(
    "input:not([type=radio]):not([type=checkbox]), textarea, select, [contenteditable]",
  );
}

function act(element) {
  if (element.matches("input[type=radio]")) {
    element.checked = true;
    element.focus();
  } else if (element.matches("input")) {
    element.focus();
  } else if (element.matches("summary")) {
    element.parentElement.open = !element.parentElement.open;
    element.parentElement.querySelector("input:not([type=hidden]), select")?.focus();
  } else {
    element.click();
  }
}

function pressed(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || event.repeat || event.isComposing) return;
  if (event.key === "Escape" && typing(event.target)) {
    event.target.blur();
    return;
  }
  if (typing(event.target) || document.querySelector("dialog[open]")) return;
  const key = event.key.toLowerCase();
  const element = [...page.querySelectorAll("[data-key]")].find((e) => e.dataset.key === key);
  if (!element) return;
  // A verdict must not fall on an image that is not seen yet.
  if (!ready && element.name === "verdict") return;
  event.preventDefault();
  act(element);
}

// That a form is sent once only is seen to by form.js.
if (page) document.addEventListener("keydown", pressed);
