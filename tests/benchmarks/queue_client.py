"""Run by bench_queue in a process of its own: many clients on one server, ours or Label Studio's.

Each client is handed items, answers them all and goes on, without pausing: nobody judges that
fast. Connections are kept open. The same code drives both servers; what differs is what a
client says (`Desk`). Prints one JSON document.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
import uuid
from dataclasses import dataclass, field
from typing import Any

VERDICT = {"from_name": "verdict", "to_name": "image", "type": "choices"}


@dataclass
class Desk:
    """One client: its connection, its clock, its counts."""

    port: int
    place: str
    session: str
    batch: int
    head: str = ""
    times: dict[str, list[float]] = field(
        default_factory=lambda: {"next": [], "answer": [], "cycle": []}
    )
    items: int = 0
    errors: int = 0

    async def run(self, until: float) -> None:
        """Work until the time is over."""
        self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port)
        await self.open()
        while (start := time.perf_counter()) < until:
            await self.step()
            self.times["cycle"].append(time.perf_counter() - start)
        self.writer.close()

    async def open(self) -> None:
        """Sign in."""

    async def step(self) -> None:
        """Be handed something and answer it."""
        raise NotImplementedError

    async def timed(self, names: tuple[str, ...], good: int, *request: Any) -> Any:
        """One request, its time kept under each name."""
        start = time.perf_counter()
        status, reply = await self.ask(*request)
        for name in names:
            self.times[name].append(time.perf_counter() - start)
        if status != good:
            self.errors += 1
            await asyncio.sleep(0.05)
            return {}
        return reply

    async def ask(self, method: str, path: str, data: object = None) -> tuple[int, Any]:
        """One request on the open connection."""
        body = b"" if data is None else json.dumps(data).encode()
        head = (
            f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\n{self.head}"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        self.writer.write(head.encode() + body)
        raw = (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
        length = int(raw.split("content-length:")[1].split("\r\n")[0])
        reply = await self.reader.readexactly(length)
        return int(raw.split(" ", 2)[1]), json.loads(reply) if b"{" in reply[:1] else reply


class Page(Desk):
    """Our page, asking for items and sending answers in turn."""

    async def open(self) -> None:
        """With the session's cookie; the token comes with the first reply."""
        self.base = f"/api/v1/campaigns/{self.place}/"
        cookie = f"Cookie: sessionid={self.session}"
        self.head = f"{cookie}\r\n"
        _, session = await self.ask("GET", f"{self.base}session")
        token = session["csrf"]
        self.head = f"{cookie}; csrftoken={token}\r\nX-CSRFToken: {token}\r\n"

    async def step(self) -> None:
        """Two requests."""
        claim = await self.timed(("next",), 200, "POST", f"{self.base}claim", {"n": self.batch})
        await self.answer(claim.get("items", []), ("answer",))

    async def answer(self, items: list[Any], names: tuple[str, ...], **more: int) -> dict[str, Any]:
        """Send an answer for each item."""
        rows = [
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
        data = {"answers": rows, **more}
        reply = await self.timed(names, 200, "POST", f"{self.base}answers", data)
        good = sum(r["status"] == "stored" for r in reply.get("results", []))
        self.items += good
        self.errors += len(items) - good
        return reply  # type: ignore[no-any-return]


class ReadyPage(Page):
    """Our page as it is: each request brings answers and takes the next items home."""

    held: list[Any] | None = None

    async def step(self) -> None:
        """One request."""
        if not self.held:
            claim = await self.ask("POST", f"{self.base}claim", {"n": self.batch})
            self.held = claim[1].get("items", [])
        reply = await self.answer(self.held, ("next", "answer"), want=self.batch)
        self.held = reply.get("items")


class LabelStudio(Desk):
    """Label Studio's page: the next task, then its annotation."""

    async def open(self) -> None:
        """With the person's token."""
        self.head = f"Authorization: Token {self.session}\r\n"

    async def step(self) -> None:
        """Two requests."""
        task = await self.timed(("next",), 200, "GET", f"/api/projects/{self.place}/next")
        if not task:
            return
        path = f"/api/tasks/{task['id']}/annotations/?project={self.place}"
        data = {"result": [{**VERDICT, "value": {"choices": ["accept"]}}], "lead_time": 2.5}
        self.items += bool(await self.timed(("answer",), 201, "POST", path, data))


KINDS = {"page": Page, "ready": ReadyPage, "label-studio": LabelStudio}


def percentile(values: list[float], share: float) -> float:
    """Milliseconds at ``share`` of the sorted values."""
    ordered = sorted(values)
    return 1000 * ordered[min(int(share * len(ordered)), len(ordered) - 1)] if ordered else 0.0


async def load(desks: list[Desk], seconds: float) -> dict[str, Any]:
    """All clients at once."""
    start = time.perf_counter()
    await asyncio.gather(*(desk.run(start + seconds) for desk in desks))
    took = time.perf_counter() - start
    report: dict[str, Any] = {
        "clients": len(desks),
        "items": sum(desk.items for desk in desks),
        "cycles_per_s": sum(desk.items for desk in desks) / took,
        "errors": sum(desk.errors for desk in desks),
        "client_cpu_ms": 1000 * time.process_time() / max(sum(desk.items for desk in desks), 1),
    }
    for name in ("next", "answer", "cycle"):
        times = [value for desk in desks for value in desk.times[name]]
        report[name] = {f"p{p}": percentile(times, p / 100) for p in (50, 95, 99)}
        report[name]["n"] = len(times)
    return report


def main() -> None:
    """One load run."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--kind", choices=KINDS, required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--place", required=True, help="the campaign's slug, or the project")
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=8.0)
    given = parser.parse_args()
    desks: list[Desk] = [
        KINDS[given.kind](given.port, given.place, session, given.batch)
        for session in json.load(sys.stdin)
    ]
    print(json.dumps(asyncio.run(load(desks, given.seconds))))


if __name__ == "__main__":
    main()
