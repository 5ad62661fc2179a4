"""Take pictures of every page of the demo: light and dark, 360 and 1280 px (`make pictures`).

Needs a database that `manage.py demo` has filled. All pictures go to .local/pictures/; those
that the documentation shows are written to docs/images/ as WebP.
"""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

ROOT = Path(__file__).resolve().parents[1]
OUT = ROOT / ".local" / "pictures"
DOCS = ROOT / "docs" / "images"
LOOKS = [(1280, "light"), (1280, "dark"), (360, "light"), (360, "dark")]
ADMIN_PAGES = {
    "overview": "/agreement/",
    "agreement": "/agreement/report/",
    "annotators": "/agreement/annotators/",
    "rules": "/agreement/rules/",
    "review": "/review/",
    "wall": "/images/",
    "prompts": "/prompts/",
    "campaigns": "/campaigns/",
    "generation": "/generation/",
    "releases": "/releases/",
    "leaderboard": "/leaderboard/",
    "runs": "/leaderboard/runs/",
    "profile": "/accounts/profile/",
}
IN_DOCS = ("judge", "agreement", "leaderboard")


def password_of(role: str) -> tuple[str, str]:
    """The demo's own log-in for a role, as `demo --check` prints it."""
    out = subprocess.run(
        [sys.executable, "manage.py", "demo", "--check"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    found = re.search(rf"^\s*(demo-{role})\s+(\S+)\s", out, flags=re.MULTILINE)
    if not found:
        raise SystemExit(f"The demo printed no log-in for {role}")
    return found[1], found[2]


def serve() -> tuple[subprocess.Popen[bytes], str]:
    """The site on a free port."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
    process = subprocess.Popen(
        [Path(sys.executable).with_name("gunicorn"), "croc_annotate.wsgi", "-b",
         f"127.0.0.1:{port}", "--threads", "4", "--log-level", "error"],
        cwd=ROOT, env={**os.environ, "LOG_LEVEL": "WARNING"},
    )  # fmt: skip
    url = f"http://127.0.0.1:{port}"
    for _ in range(100):
        try:
            urllib.request.urlopen(url + "/healthz", timeout=5).close()
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            time.sleep(0.2)
        else:
            return process, url
    process.terminate()
    raise SystemExit("The site did not start")


def sign_in(browser: Browser, url: str, who: tuple[str, str]) -> dict[str, object]:
    """Sign in and return the browser's storage."""
    context = browser.new_context()
    page = context.new_page()
    page.goto(url + "/accounts/login/")
    page.fill("[name=username]", who[0])
    page.fill("[name=password]", who[1])
    page.press("[name=password]", "Enter")
    page.wait_for_url(lambda address: "login" not in address)
    state = context.storage_state()
    context.close()
    return dict(state)


def shoot(page: Page, name: str, look: tuple[int, str], *, whole: bool = True) -> None:
    """One picture, after fonts, images and charts are there."""
    # Not "networkidle": live pages and the judging page never stop asking.
    page.wait_for_load_state("load")
    # What a page fetches by itself belongs into its picture.
    page.wait_for_selector("[data-fragment]", state="detached")
    page.evaluate("document.fonts.ready")
    page.wait_for_timeout(900)
    page.screenshot(path=OUT / f"{name}-{look[0]}-{look[1]}.png", full_page=whole)


def context_of(browser: Browser, look: tuple[int, str], state: object = None) -> BrowserContext:
    """A context of one width and theme."""
    height = 800 if look[0] > 600 else 740
    return browser.new_context(
        viewport={"width": look[0], "height": height},
        color_scheme="dark" if look[1] == "dark" else "light",
        storage_state=state,  # type: ignore[arg-type]
    )


def annotator_pages(browser: Browser, url: str, state: object, look: tuple[int, str]) -> None:
    """What an annotator meets on the way to work, and the judging page itself."""
    context = context_of(browser, look, state)
    page = context.new_page()
    page.goto(url + "/annotate/")
    shoot(page, "campaigns-mine", look)
    page.goto(url + "/annotate/demo/consent/")
    shoot(page, "consent", look)
    page.goto(url + "/annotate/demo/guideline/")
    shoot(page, "guideline", look)
    page.goto(url + "/annotate/demo/")
    if page.locator("main form").count() and "demo/consent" in page.url:
        for box in page.locator("main input[type=checkbox]").all():
            box.check()
        page.locator("main form button[type=submit]").first.click()
        page.wait_for_load_state("load")
    # What a page fetches by itself belongs into its picture.
    page.wait_for_selector("[data-fragment]", state="detached")
    if "guideline" in page.url:
        page.locator("main form button[type=submit]").first.click()
    page.goto(url + "/annotate/demo/")
    page.wait_for_timeout(1500)
    shoot(page, "judge", look, whole=False)
    page.goto(url + "/annotate/demo/me/")
    shoot(page, "me", look)
    page.goto(url + "/annotate/demo/end/")
    shoot(page, "end", look)
    context.close()


def admin_pages(browser: Browser, url: str, state: object, look: tuple[int, str]) -> None:
    """All pages of the admin, and the first release and metric."""
    context = context_of(browser, look, state)
    page = context.new_page()
    for name, path in ADMIN_PAGES.items():
        page.goto(url + path)
        shoot(page, name, look, whole=name != "wall")
    for name, start, link in (
        (
            "release",
            "/releases/",
            "main a[href^='/releases/']:not([href*='compare']):not([href*='new'])",
        ),
        ("metric", "/leaderboard/", "main a[href*='/leaderboard/metric']"),
        ("pair", "/prompts/", "main table a[href^='/prompts/']"),
    ):
        page.goto(url + start)
        target = page.locator(link).first
        if target.count():
            page.goto(url + str(target.get_attribute("href")))
            shoot(page, name, look)
    context.close()


def main() -> None:
    """Take all pictures; with ``--docs`` only those that the documentation shows."""
    looks = LOOKS[:1] if "--docs" in sys.argv else LOOKS
    shutil.rmtree(OUT, ignore_errors=True)
    OUT.mkdir(parents=True)
    DOCS.mkdir(parents=True, exist_ok=True)
    people = {role: password_of(role) for role in ("admin", "annotator")}
    server, url = serve()
    try:
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(
                executable_path=os.environ.get("CHROMIUM") or shutil.which("chromium"),
                args=["--no-sandbox", "--disable-gpu", "--no-first-run"],
            )
            states = {role: sign_in(browser, url, who) for role, who in people.items()}
            for look in looks:
                visitor = context_of(browser, look)
                page = visitor.new_page()
                page.goto(url + "/accounts/login/")
                shoot(page, "login", look, whole=False)
                visitor.close()
                annotator_pages(browser, url, states["annotator"], look)
                admin_pages(browser, url, states["admin"], look)
            browser.close()
    finally:
        server.terminate()
        server.wait()
    for name in IN_DOCS:
        source = OUT / f"{name}-1280-light.png"
        if source.exists():
            picture = Image.open(source).convert("RGB")
            picture.crop((0, 0, picture.width, min(picture.height, 1000))).save(
                DOCS / f"{name}.webp", quality=80, method=6
            )
    print(f"{len(list(OUT.glob('*.png')))} pictures in {OUT.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
