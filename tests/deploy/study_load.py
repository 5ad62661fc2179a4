"""Browsers that judge through the whole installation and lose nothing while parts of it fail.

Run in a process of its own. Each browser claims items, fetches their images, thinks, and sends
answers with keys of its own; what fails is sent again under the same keys, as the judging page
does. Prints a line when it begins, then one JSON document with every key that was answered. Moments are those of the
machine's monotonic clock, which all processes share and no jump of the day's time touches.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import sys
import time
import uuid
from collections import Counter
from typing import Any

RETRY_SECONDS = 0.3


class Browser:
    """One signed-in judging page."""

    def __init__(self, port: int, slug: str, session: str, think: float, batch: int) -> None:
        self.port, self.base = port, f"/api/v1/campaigns/{slug}/"
        self.session, self.token, self.think, self.batch = session, "", think, batch
        self.times: dict[str, list[float]] = {"claim": [], "answers": [], "image": []}
        self.failures: Counter[str] = Counter()
        self.bad_moments: list[float] = []
        self.stored_moments: list[float] = []
        self.keys: list[str] = []
        self.outbox: list[dict[str, Any]] = []
        self.statuses: Counter[str] = Counter()
        self.image_bytes = 0
        self.connection: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def run(self, until: float, give_up: float) -> None:
        """Judge until ``until``, then send what is left."""
        while time.perf_counter() < until:
            if not self.token and not await self.fetch_token():
                continue
            reply = await self.call("claim", {"n": self.batch})
            for item in (reply or {}).get("items", []):
                await self.judge(item)
                if time.perf_counter() >= until:
                    break
            await self.send()
            if reply is None or not reply.get("items"):
                await asyncio.sleep(RETRY_SECONDS)
        while self.outbox and time.perf_counter() < give_up:
            await self.send()
            if self.outbox:
                await asyncio.sleep(RETRY_SECONDS)
        self.drop()

    async def judge(self, item: dict[str, Any]) -> None:
        start = time.perf_counter()
        status, body, _ = await self.ask("GET", item["image"], None)
        if status == 200:
            self.times["image"].append(time.perf_counter() - start)
            self.image_bytes += len(body)
        else:
            self.failed(f"image {status}")
        await asyncio.sleep(self.think)
        key = str(uuid.uuid4())
        self.keys.append(key)
        self.outbox.append(
            {
                "client_key": key,
                "assignment": item["assignment"],
                "item": item["item"],
                "verdict": "accept",
                "active_ms": int(self.think * 1000),
                "mode": "focus",
            }
        )

    async def send(self) -> None:
        if not self.outbox:
            return
        reply = await self.call("answers", {"answers": self.outbox[:50]})
        if reply:
            self.stored_moments.append(time.perf_counter())
        for result in (reply or {}).get("results", []):
            self.statuses[result["status"]] += 1
            self.outbox = [a for a in self.outbox if a["client_key"] != result["client_key"]]

    async def fetch_token(self) -> bool:
        status, body, _ = await self.ask("GET", self.base + "session", None)
        if status != 200:
            self.failed(f"session {status}")
            await asyncio.sleep(RETRY_SECONDS)
            return False
        self.token = json.loads(body)["csrf"]
        return True

    async def call(self, name: str, data: object) -> dict[str, Any] | None:
        start = time.perf_counter()
        status, body, _ = await self.ask("POST", self.base + name, data)
        if status != 200:
            self.failed(f"{name} {status}")
            self.token = "" if status == 403 else self.token
            return None
        self.times[name].append(time.perf_counter() - start)
        reply: dict[str, Any] = json.loads(body)
        return reply

    def failed(self, what: str) -> None:
        self.failures[what] += 1
        self.bad_moments.append(time.perf_counter())

    def drop(self) -> None:
        if self.connection:
            self.connection[1].close()
        self.connection = None

    async def ask(self, method: str, path: str, data: object) -> tuple[int, bytes, str]:
        """Status (0: no answer), body and head of one request."""
        try:
            return await asyncio.wait_for(self.exchange(method, path, data), 20)
        except (OSError, asyncio.IncompleteReadError, TimeoutError, asyncio.LimitOverrunError):
            self.drop()
            await asyncio.sleep(RETRY_SECONDS)
            return 0, b"", ""

    async def exchange(self, method: str, path: str, data: object) -> tuple[int, bytes, str]:
        if self.connection is None:
            self.connection = await asyncio.open_connection("127.0.0.1", self.port)
        reader, writer = self.connection
        body = b"" if data is None else json.dumps(data).encode()
        cookie = f"sessionid={self.session}" + (f"; csrftoken={self.token}" if self.token else "")
        head = (
            f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\nCookie: {cookie}\r\n"
            f"X-CSRFToken: {self.token}\r\nContent-Type: application/json\r\n"
            f"Accept: */*\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        writer.write(head.encode() + body)
        raw = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        low = raw.lower()
        if "content-length:" in low:
            length = int(low.split("content-length:")[1].split("\r\n")[0])
            payload = await reader.readexactly(length)
        else:
            payload = await self.read_chunks(reader)
        if "connection: close" in low:
            self.drop()
        return int(raw.split(" ", 2)[1]), payload, raw

    @staticmethod
    async def read_chunks(reader: asyncio.StreamReader) -> bytes:
        parts = []
        while True:
            size = int((await reader.readline()).split(b";")[0], 16)
            parts.append(await reader.readexactly(size))
            await reader.readline()
            if size == 0:
                return b"".join(parts)


def percentile(values: list[float], share: float) -> float:
    ordered = sorted(values)
    return 1000 * ordered[min(int(share * len(ordered)), len(ordered) - 1)] if ordered else 0.0


def longest_gap(moments: list[float]) -> float:
    """The longest time, from the start on, in which no answer of anybody was stored."""
    ordered = sorted(moments)
    return max((b - a for a, b in itertools.pairwise(ordered)), default=0.0)


async def load(given: argparse.Namespace, sessions: list[str]) -> dict[str, Any]:
    """All browsers at once."""
    browsers = [
        Browser(given.port, given.slug, session, given.think, given.batch) for session in sessions
    ]
    print("judging", flush=True)  # from now on faults are felt
    start = time.perf_counter()
    until = start + given.seconds
    await asyncio.gather(*(b.run(until, until + given.grace) for b in browsers))
    moments = sorted(m for b in browsers for m in b.bad_moments)
    report: dict[str, Any] = {
        "browsers": len(browsers),
        "keys": [key for b in browsers for key in b.keys],
        "unsent": sum(len(b.outbox) for b in browsers),
        "statuses": dict(sum((b.statuses for b in browsers), Counter())),
        "failures": dict(sum((b.failures for b in browsers), Counter())),
        "first_failure": moments[0] if moments else None,
        "last_failure": moments[-1] if moments else None,
        "longest_gap": longest_gap([start, *(m for b in browsers for m in b.stored_moments)]),
        "image_bytes": sum(b.image_bytes for b in browsers),
    }
    for name in ("claim", "answers", "image"):
        times = [value for b in browsers for value in b.times[name]]
        report[name] = {f"p{p}": percentile(times, p / 100) for p in (50, 95, 99)}
        report[name]["n"] = len(times)
    return report


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--slug", required=True)
    parser.add_argument("--seconds", type=float, default=8.0)
    parser.add_argument("--grace", type=float, default=120.0)
    parser.add_argument("--think", type=float, default=0.2)
    parser.add_argument("--batch", type=int, default=3)
    given = parser.parse_args()
    print(json.dumps(asyncio.run(load(given, json.load(sys.stdin)))))


if __name__ == "__main__":
    main()
