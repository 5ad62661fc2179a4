"""The judging page in Chromium: from a key press to the next picture on the screen, and items per minute.

Pictures of 1024 × 1024, gunicorn and the browser on the same cores. The time runs from the
key's own time stamp to the first task after the frame that shows the next picture and text.
The scripted person has no thoughts: the items per minute are what the page allows.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.benchmarks.frame import Row
from tests.services import free_port

ROOT = Path(__file__).resolve().parents[2]
LIMIT_MS = 50.0
WATCH = """() => {
    window.times = [];
    let pressed = 0;
    addEventListener("keydown", (event) => { pressed = event.timeStamp; }, { capture: true });
    new MutationObserver(() => {
        const start = pressed;
        requestAnimationFrame(() => {
            const channel = new MessageChannel();
            channel.port1.onmessage = () => window.times.push(performance.now() - start);
            channel.port2.postMessage(0);
        });
    }).observe(document.querySelector(".judge-stage"), { childList: true });
}"""
READY = "() => !document.querySelector('[data-act=accept]')?.disabled"


def run(quick: bool) -> list[Row]:
    """200 items in each mode (40 when quick)."""
    items = 40 if quick else 200
    with tempfile.TemporaryDirectory(prefix="croc-bench-") as folder:
        env = _environment(Path(folder))
        _manage(env, "migrate", "--verbosity", "0")
        facts = json.loads(_python(env, "-m", "tests.benchmarks.judging_world", str(items)))
        with _server(env) as url, _browser(url, facts["session"]) as page:
            times, focus_minutes = _focus(page, url, items)
            grid_minutes = _grid(page, url, items)
    return [_key_row(times), *_pace_rows(items, focus_minutes, grid_minutes)]


def _key_row(times: list[float]) -> Row:
    middle = statistics.median(times)
    last = statistics.quantiles(times, n=20)[-1]
    return Row(
        "key press to next picture, median",
        middle,
        LIMIT_MS,
        unit="ms",
        ratio=LIMIT_MS / middle,
        n=len(times),
        note=f"p95 {last:.1f} ms, most {max(times):.1f} ms; limit 50 ms; 1024 px pictures",
    )


def _pace_rows(items: int, focus: float, grid: float) -> list[Row]:
    note = "a script without thinking time: what the page allows"
    return [
        Row("focus mode", items / focus, unit="items/min", n=items, note=note),
        Row(
            "grid mode",
            items / grid,
            items / focus,
            unit="items/min",
            ratio=focus / grid,
            n=items,
            note=f"{note}; peer: focus mode",
        ),
    ]


def _focus(page: Any, url: str, items: int) -> tuple[list[float], float]:
    page.goto(f"{url}/annotate/focus/")
    page.wait_for_selector("[data-act=accept]:not([disabled])")
    page.evaluate(WATCH)
    page.wait_for_timeout(1500)  # the pictures ahead are decoded
    start = time.perf_counter()
    for i in range(items):
        page.wait_for_function(READY)
        page.keyboard.press("jf"[i % 2])
    page.wait_for_selector("#judge[data-end=finished]")
    page.wait_for_selector(".judge-state[data-state=saved]")
    minutes = (time.perf_counter() - start) / 60
    return page.evaluate("() => window.times")[: items - 1], minutes


def _grid(page: Any, url: str, items: int) -> float:
    page.goto(f"{url}/annotate/grid/")
    page.wait_for_selector(".tile [data-act=accept]:not([disabled])")
    start = time.perf_counter()
    for _ in range(items):
        if page.evaluate("() => Boolean(document.querySelector('#judge[data-end]'))"):
            break
        page.wait_for_selector(".tile")
        for i in range(page.locator(".tile").count()):
            page.keyboard.press("jf"[i % 2])
        page.keyboard.press("Enter")
        page.wait_for_function(
            "() => document.querySelector('#judge[data-end]')"
            " || document.querySelector('.tile:not([data-verdict=accept], [data-verdict=reject])')"
        )
    page.wait_for_selector("#judge[data-end=finished]")
    page.wait_for_selector(".judge-state[data-state=saved]")
    return (time.perf_counter() - start) / 60


def _environment(folder: Path) -> dict[str, str]:
    return {
        **os.environ,
        "DATABASE_URL": f"sqlite:///{folder / 'bench.sqlite3'}",
        "MEDIA_ROOT": str(folder / "media"),
        "REDIS_URL": "",
        "STATIC_ROOT": str(folder / "static"),
        "LOG_LEVEL": "WARNING",
    }


def _python(env: dict[str, str], *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT,
        env=env,
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    return done.stdout


def _manage(env: dict[str, str], *arguments: str) -> str:
    return _python(env, "manage.py", *arguments)


@contextlib.contextmanager
def _server(env: dict[str, str]) -> Iterator[str]:
    port = free_port()
    command = [
        sys.executable,
        "-m",
        "gunicorn",
        "croc_annotate.wsgi",
        "--bind",
        f"127.0.0.1:{port}",
    ]
    process = subprocess.Popen([*command, "--workers", "1", "--threads", "4"], cwd=ROOT, env=env)
    url = f"http://127.0.0.1:{port}"
    try:
        _wait(f"{url}/accounts/login/")
        yield url
    finally:
        process.terminate()
        process.wait(20)


def _wait(url: str, seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while True:
        try:
            with urllib.request.urlopen(url, timeout=10):
                return
        except (urllib.error.URLError, OSError):
            if time.monotonic() > end:
                raise
            time.sleep(0.2)


@contextlib.contextmanager
def _browser(url: str, session: str) -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    chromium = os.environ.get("CHROMIUM") or shutil.which("chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=chromium, args=["--no-sandbox", "--disable-gpu"]
        )
        context = browser.new_context(viewport={"width": 1280, "height": 800})
        context.add_cookies([{"name": "sessionid", "value": session, "url": url}])
        page = context.new_page()
        yield page
        browser.close()
