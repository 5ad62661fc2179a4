// data-copy="text" (or data-copy-from="#id"): copies, and says so on the button for two seconds.

export function start() {
  document.addEventListener("click", async (event) => {
    const button = event.target.closest("[data-copy], [data-copy-from]");
    if (!button) return;
    const from = button.dataset.copyFrom && document.querySelector(button.dataset.copyFrom);
    const text = from ? (from.value ?? from.textContent) : button.dataset.copy;
    await navigator.clipboard.writeText(text.trim());
    const label = button.querySelector("[data-copy-label]") || button;
    const before = label.textContent;
    label.textContent = button.dataset.copied || "Copied";
    button.setAttribute("aria-live", "polite");
    setTimeout(() => {
      label.textContent = before;
    }, 2000);
  });
}
