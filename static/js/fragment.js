// data-fragment="url": fills the element once with the HTML that the server renders, and takes the
// mark away. Until then the content stays; when it fails, all but [data-fragment-failed] goes, if
// there is one.

function fail(element) {
  const failed = element.querySelector("[data-fragment-failed]");
  if (!failed) return; // the link inside leads to the same images
  failed.hidden = false;
  element.replaceChildren(failed);
}

for (const element of document.querySelectorAll("[data-fragment]")) {
  try {
    const reply = await fetch(element.dataset.fragment, { credentials: "same-origin" });
    if (!reply.ok || reply.redirected) throw new Error(String(reply.status));
    element.innerHTML = await reply.text();
    element.removeAttribute("data-fragment");
    element.dispatchEvent(new CustomEvent("fragment", { bubbles: true }));
  } catch {
    fail(element);
  }
}
