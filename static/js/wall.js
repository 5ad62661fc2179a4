// data-wall: a thumbnail wall that fetches its next page when its end comes near.
// The link [data-wall-next] inside or after it leads to the next page, and works without this file.

function watch(wall) {
  const scope = wall.parentElement;
  let busy = false;

  async function more(link) {
    busy = true;
    link.setAttribute("aria-busy", "true");
    try {
      const reply = await fetch(link.href, { credentials: "same-origin" });
      if (!reply.ok) throw new Error(String(reply.status));
      const page = new DOMParser().parseFromString(await reply.text(), "text/html");
      wall.append(...page.querySelectorAll("[data-wall] > *"));
      const following = page.querySelector("[data-wall-next]");
      if (following) {
        link.href = following.href;
        link.removeAttribute("aria-busy");
        // On a tall screen the link may still be near: only a fresh look tells so again.
        observer.unobserve(link);
        observer.observe(link);
      } else {
        observer.disconnect();
        link.remove();
      }
    } catch {
      observer.disconnect(); // The link stays, to be followed by hand.
      link.removeAttribute("aria-busy");
    }
    busy = false;
  }

  const observer = new IntersectionObserver(
    (entries) => {
      if (!busy && entries.some((entry) => entry.isIntersecting)) more(entries[0].target);
    },
    { rootMargin: "800px" },
  );
  const link = scope.querySelector("[data-wall-next]");
  if (link) observer.observe(link);
}

export function start() {
  document.querySelectorAll("[data-wall]").forEach(watch);
}
