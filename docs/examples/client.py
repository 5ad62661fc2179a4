"""A small client of the HTTP API, with the standard library only.

    export CROC_URL=https://croc.example.org CROC_TOKEN=croc_…
    python client.py croc out.tar

lists the campaigns with their agreement, and downloads the newest export of the
release. Import it to judge with a client of your own (`judge_one`).
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sys
import time
import urllib.error
import urllib.request
import uuid
from pathlib import Path
from typing import Any


class Client:
    """Speaks JSON, waits when it is told to, and asks for nothing twice."""

    def __init__(self, url: str, token: str) -> None:
        self.url, self.token = url.rstrip("/"), token
        self.kept: dict[str, tuple[str, Any]] = {}

    def open(self, method: str, url: str, data: Any = None, **headers: str) -> Any:
        """Send one request; wait and send it again on 429 and 503."""
        body = None if data is None else json.dumps(data).encode()
        headers = {"Authorization": f"Bearer {self.token}", **headers}
        if body is not None:
            headers["Content-Type"] = "application/json"
        request = urllib.request.Request(url, body, headers, method=method)
        for _ in range(5):
            try:
                return urllib.request.urlopen(request, timeout=60)
            except urllib.error.HTTPError as error:
                if error.code == 304:
                    return error
                problem = json.load(error)
                if error.code not in (429, 503):
                    raise RuntimeError(f"{problem['code']}: {problem['detail']}") from error
                time.sleep(int(error.headers.get("Retry-After", "1")))
        raise RuntimeError(f"{url}: still busy")

    def get(self, path: str) -> Any:
        """A document; what has not changed is not sent again."""
        url = f"{self.url}/api/v1/{path}"
        tag, kept = self.kept.get(url, ("", None))
        with self.open("GET", url, **({"If-None-Match": tag} if tag else {})) as reply:
            if reply.status == 304:
                return kept
            document = json.load(reply)
            self.kept[url] = (reply.headers["ETag"], document)
            return document

    def post(self, path: str, data: Any) -> Any:
        """Send a document, get the answer's."""
        with self.open("POST", f"{self.url}/api/v1/{path}", data) as reply:
            return json.load(reply)

    def pages(self, path: str) -> Any:
        """All rows of a list that comes in pages."""
        page = 1
        while True:
            found = self.get(f"{path}?page={page}&page_size=500")
            yield from found["results"]
            if found["next"] is None:
                return
            page += 1

    def download(self, url: str, target: Path, sha256: str) -> None:
        """A file, checked against its hash."""
        with self.open("GET", url) as reply, target.open("wb") as out:
            shutil.copyfileobj(reply, out)
        if hashlib.sha256(target.read_bytes()).hexdigest() != sha256:
            raise RuntimeError(f"{target}: not the file that the site has")

    def judge_one(self, campaign: str, verdict: str) -> dict[str, Any]:
        """Claim an item, answer it, and answer it again: the key makes that safe."""
        item = self.post(f"campaigns/{campaign}/claim", {"n": 1})["items"][0]
        answer = {
            "client_key": str(uuid.uuid4()),
            "item": item["item"],
            "assignment": item["assignment"],
            "verdict": verdict,
        }
        self.post(f"campaigns/{campaign}/answers", {"answers": [answer]})
        again = self.post(f"campaigns/{campaign}/answers", {"answers": [answer]})
        result: dict[str, Any] = again["results"][0]
        return result  # status "duplicate": it was stored once


def main(release: str, target: str) -> None:
    """Show what a token can read."""
    client = Client(os.environ["CROC_URL"], os.environ["CROC_TOKEN"])
    for campaign in client.pages("campaigns/"):
        print(campaign["slug"], campaign["state"], campaign["items_complete"])
        found = client.get(f"campaigns/{campaign['slug']}/agreement/")
        print("  Krippendorff α:", found["statistics"]["all"]["krippendorff_alpha"])
    newest = next(row for row in client.pages("releases/") if row["name"] == release)
    files = client.get(f"releases/{release}/{newest['version']}/")["exports"]
    client.download(files[0]["url"], Path(target), files[0]["sha256"])
    print("downloaded", target)


if __name__ == "__main__":
    main(*sys.argv[1:])
