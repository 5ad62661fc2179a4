"""Run by bench_queue in a process of its own: many judging pages on one server.

Each client claims items, answers them all and claims again, without pausing: nobody judges
that fast. Connections are kept open. Prints one JSON document.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
import uuid


class Page:
    """One signed-in page."""

    def __init__(self, port: int, slug: str, session: str, batch: int) -> None:
        self.port, self.base, self.batch = port, f"/api/v1/campaigns/{slug}/", batch
        self.cookie, self.token = f"sessionid={session}", ""
        self.times: dict[str, list[float]] = {"claim": [], "answers": []}
        self.items = self.errors = self.empty = 0

    async def run(self, until: float) -> None:
        self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port)
        _, session = await self.ask("GET", "session", None)
        self.token = session["csrf"]
        self.cookie += f"; csrftoken={self.token}"
        while time.perf_counter() < until:
            claim = await self.timed("claim", {"n": self.batch})
            items = claim.get("items", [])
            if not items:
                self.empty += 1
                await asyncio.sleep(0.01)
                continue
            answers = [
                {
                    "client_key": str(uuid.uuid4()),
                    "assignment": item["assignment"],
                    "item": item["item"],
                    "verdict": "accept",
                    "active_ms": 2500,
                    "mode": "focus",
                }
                for item in items
            ]
            reply = await self.timed("answers", {"answers": answers})
            good = sum(r["status"] == "stored" for r in reply.get("results", []))
            self.items += good
            self.errors += len(items) - good
        self.writer.close()

    async def timed(self, name: str, data: object) -> dict:
        start = time.perf_counter()
        status, reply = await self.ask("POST", name, data)
        self.times[name].append(time.perf_counter() - start)
        self.errors += status != 200
        return reply

    async def ask(self, method: str, name: str, data: object) -> tuple[int, dict]:
        body = b"" if data is None else json.dumps(data).encode()
        head = (
            f"{method} {self.base}{name} HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\n"
            f"Cookie: {self.cookie}\r\nX-CSRFToken: {self.token}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        self.writer.write(head.encode() + body)
        raw = (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
        length = int(raw.split("content-length:")[1].split("\r\n")[0])
        reply = await self.reader.readexactly(length)
        if method == "GET" and "set-cookie: csrftoken=" not in raw:
            raise RuntimeError(f"no token: {raw}\n{reply[:200]!r}")
        return int(raw.split(" ", 2)[1]), json.loads(reply)


def percentile(values: list[float], share: float) -> float:
    """Milliseconds at ``share`` of the sorted values."""
    ordered = sorted(values)
    return 1000 * ordered[min(int(share * len(ordered)), len(ordered) - 1)] if ordered else 0.0


async def load(port: int, slug: str, sessions: list[str], batch: int, seconds: float) -> dict:
    pages = [Page(port, slug, session, batch) for session in sessions]
    start = time.perf_counter()
    await asyncio.gather(*(page.run(start + seconds) for page in pages))
    took = time.perf_counter() - start
    report: dict[str, object] = {
        "clients": len(pages),
        "batch": batch,
        "cycles_per_s": sum(page.items for page in pages) / took,
        "items": sum(page.items for page in pages),
        "errors": sum(page.errors for page in pages),
        "empty": sum(page.empty for page in pages),
    }
    for name in ("claim", "answers"):
        times = [value for page in pages for value in page.times[name]]
        report[name] = {f"p{p}": percentile(times, p / 100) for p in (50, 95, 99)}
        report[name]["n"] = len(times)
    return report


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--slug", required=True)
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=8.0)
    given = parser.parse_args()
    sessions = json.load(sys.stdin)
    print(
        json.dumps(asyncio.run(load(given.port, given.slug, sessions, given.batch, given.seconds)))
    )


if __name__ == "__main__":
    main()
