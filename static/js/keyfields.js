// [data-key-input]: a field that takes the next key pressed in it as its value.
// Tab, Enter and Escape keep their use, so that the form can be left by keyboard.

const PASS = new Set(["Tab", "Enter", "Escape", "Shift", "Control", "Alt", "Meta"]);

/** The name of a key as the server keeps it. */
export function keyName(key) {
  return key === " " ? "space" : key.toLowerCase();
}

/** Make the key fields below an element take keys. */
export function connectKeyFields(root) {
  root.addEventListener("keydown", (event) => {
    const input = event.target.closest("[data-key-input]");
    if (!input || PASS.has(event.key) || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.isComposing || event.key === "Dead" || event.key === "Unidentified") return;
    event.preventDefault();
    input.value = keyName(event.key);
    input.dispatchEvent(new Event("input", { bubbles: true }));
  });
  root.addEventListener(
    "focusin",
    (event) => event.target.matches("[data-key-input]") && event.target.select(),
  );
}

for (const form of document.querySelectorAll("[data-keys-form]")) {
  connectKeyFields(form);
  form.querySelector("[data-keys-reset]")?.addEventListener("click", () => {
    for (const input of form.querySelectorAll("[data-key-input]"))
      input.value = input.dataset.default;
  });
}
