"""A real S3 endpoint on loopback that can begin to refuse."""

from __future__ import annotations

import hashlib
import threading
import urllib.request
from pathlib import Path

from tests.releases.test_export_crochum import tree


class Bucket:
    """A real S3 endpoint on loopback that can begin to refuse."""

    def __init__(self) -> None:
        import boto3
        from moto.server import DomainDispatcherApplication, create_backend_app
        from werkzeug.serving import make_server

        app = DomainDispatcherApplication(create_backend_app)
        # How many writes still pass, and whether those after the next one pass again.
        self.writes_left: int | None = None
        self.only_once = False
        self.writes = 0

        self.refused_path, self.refused_method, self.then_refuse_all = "", "", False
        self.refused: list[str] = []

        def refusing(environ, start_response):
            writing = environ["REQUEST_METHOD"] in {"PUT", "POST", "DELETE"}
            self.writes += writing
            if writing and self.refuses(environ["REQUEST_METHOD"], environ["PATH_INFO"]):
                start_response("403 Forbidden", [("Content-Type", "text/xml")])
                return [b"<Error><Code>AccessDenied</Code><Message>no</Message></Error>"]
            if writing and self.writes_left is not None:
                self.writes_left -= 1
                if self.writes_left == -1 or (self.writes_left < 0 and not self.only_once):
                    start_response("403 Forbidden", [("Content-Type", "text/xml")])
                    return [b"<Error><Code>AccessDenied</Code><Message>no</Message></Error>"]
            return app(environ, start_response)

        self.server = make_server("127.0.0.1", 0, refusing, threaded=True)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.client = boto3.client(
            "s3", endpoint_url=self.url, aws_access_key_id="k", aws_secret_access_key="s",
            region_name="us-east-1",
        )  # fmt: skip
        # The simulated S3 lives as long as the process: empty it.
        urllib.request.urlopen(f"{self.url}/moto-api/reset", data=b"", timeout=60).close()
        self.client.create_bucket(Bucket="data")

    def refuse(self, path: str, *, method: str = "PUT") -> list[str]:
        """Refuse to write this object from now on, once it was there; returns what was refused."""
        self.refused_path, self.refused_method = path, method
        self.then_refuse_all, self.refused = False, []
        return self.refused

    def refuses(self, method: str, path: str) -> bool:
        name = path.removeprefix("/data/")
        hit = bool(self.refused_path) and (method, name) == (self.refused_method, self.refused_path)
        if hit:
            self.refused.append(name)
        return hit or (self.then_refuse_all and bool(self.refused))

    def hold(self, prefix: str, folder: Path) -> None:
        """Nothing but the files of ``folder``."""
        for item in self.client.list_objects_v2(Bucket="data").get("Contents", []):
            self.client.delete_object(Bucket="data", Key=item["Key"])
        for name in tree(folder):
            data = (folder / name).read_bytes()
            self.client.put_object(Bucket="data", Key=f"{prefix}/{name}", Body=data)

    def tree(self, prefix: str) -> dict[str, str]:
        start = f"{prefix}/" if prefix else ""
        found = self.client.list_objects_v2(Bucket="data", Prefix=start).get("Contents", [])
        return {
            item["Key"].removeprefix(start): hashlib.sha256(
                self.client.get_object(Bucket="data", Key=item["Key"])["Body"].read()
            ).hexdigest()
            for item in found
        }
