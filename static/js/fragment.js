// data-fragment="url": fills the element once with the HTML that the server renders. Until then, and
// when it fails, the link inside stays.

for (const element of document.querySelectorAll("[data-fragment]")) {
  try {
    const reply = await fetch(element.dataset.fragment, { credentials: "same-origin" });
    if (!reply.ok || reply.redirected) continue;
    element.innerHTML = await reply.text();
    element.dispatchEvent(new CustomEvent("fragment", { bubbles: true }));
  } catch {
    // The link inside leads to the same images.
  }
}
