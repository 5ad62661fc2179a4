"""A second HTTP server, to which another one redirects: what does a client tell it?"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Elsewhere(ThreadingHTTPServer):
    """Answers every GET with an empty object and keeps the headers it got."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.headers: list[dict[str, str]] = []
        self.url = f"http://127.0.0.1:{self.server_port}/elsewhere"


class _Handler(BaseHTTPRequestHandler):
    server: Elsewhere

    def do_GET(self) -> None:
        self.server.headers.append({name.lower(): value for name, value in self.headers.items()})
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *_args: object) -> None:
        """Quiet."""


@contextmanager
def elsewhere() -> Iterator[Elsewhere]:
    """The server, while the block runs."""
    server = Elsewhere()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
