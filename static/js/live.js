// data-live="url" data-every="seconds": replaces the element's content by the fragment that the server
// renders, while the page is visible. A failed fetch keeps what is shown and marks it as stale.

function watch(element) {
  const every = Math.max(2, Number(element.dataset.every) || 10) * 1000;
  let failures = 0;

  async function refresh() {
    if (document.hidden || element.contains(document.activeElement)) return;
    try {
      const reply = await fetch(element.dataset.live, {
        headers: { "X-Requested-With": "fetch" },
        credentials: "same-origin",
      });
      if (!reply.ok || reply.redirected) throw new Error(String(reply.status));
      element.innerHTML = await reply.text();
      element.removeAttribute("data-stale");
      failures = 0;
      element.dispatchEvent(new CustomEvent("fragment", { bubbles: true }));
    } catch {
      failures += 1;
      element.dataset.stale = String(failures);
    }
  }

  function next() {
    // Back off while the server does not answer, at most to eight times the interval.
    setTimeout(
      async () => {
        if (!element.isConnected) return;
        await refresh();
        next();
      },
      every * 2 ** Math.min(failures, 3),
    );
  }

  document.addEventListener("visibilitychange", refresh);
  next();
}

export function start() {
  document.querySelectorAll("[data-live]").forEach(watch);
}
