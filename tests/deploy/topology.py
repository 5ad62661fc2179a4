"""The installation of docker-compose.yml as processes on loopback: for tests and load.

nginx → gunicorn → PostgreSQL, Redis (servers of its own), a worker and a scheduler. Image bytes
go to the browser from nginx's own disk (X-Accel-Redirect) or, with ``with_s3``, from an
S3-compatible store.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tests.postgres_server import PostgresServer
from tests.redis_server import RedisServer
from tests.services import free_port

ROOT = Path(__file__).resolve().parents[2]


def find_nginx() -> str | None:
    """The nginx program, where there is one."""
    return shutil.which("nginx") or next(
        (str(p) for p in [Path("/usr/sbin/nginx")] if p.exists()), None
    )


@dataclass
class Topology:
    """All processes of one installation; ``stop`` ends them and removes the database.

    ``postgres_folder``: where the database's files go (default: a new folder of its own).
    ``clock_shim``: the compiled clock_shim.c; `set_clock` then moves the clock of web and workers.
    """

    folder: Path
    web_workers: int = 2
    web_threads: int = 8
    with_nginx: bool = True
    with_s3: bool = False
    postgres_folder: Path | None = None
    clock_shim: Path | None = None
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        # pytest's folders are shut to the account that runs PostgreSQL.
        self.temporary = Path(tempfile.mkdtemp(prefix="croc-topology-"))
        self.temporary.chmod(0o755)
        self.postgres = PostgresServer(folder=self.postgres_folder or self.temporary / "postgres")
        self.redis = RedisServer(folder=self.folder / "redis")
        self.web_port, self.port, self.s3_port = free_port(), free_port(), free_port()
        self.media = self.folder / "media"
        for name in ("redis", "media", "static", "nginx", "logs"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        self.set_clock(0)

    def set_clock(self, seconds: int) -> None:
        """Move the clock of web and workers this far from the machine's (needs ``clock_shim``)."""
        (self.folder / "clock").write_text(f"{seconds:+d}\n")

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port if self.with_nginx else self.web_port}"

    @property
    def environment(self) -> dict[str, str]:
        kept = ("PATH", "HOME", "LANG", "OPENBLAS_CORETYPE", "LD_PRELOAD")
        return {
            **{name: os.environ[name] for name in kept if name in os.environ},
            **self._store(),
            "DATABASE_URL": urlsplit(self.postgres.url)._replace(path="/croc").geturl(),
            "REDIS_URL": self.redis.url,
            "SECRET_KEY": "topology-0123456789-0123456789-0123456789-0123",
            "STATIC_ROOT": str(self.folder / "static"),
            "ALLOWED_HOSTS": "127.0.0.1,localhost",
            "METRICS_TOKEN": "topology",
            "PROXY_COUNT": "1" if self.with_nginx else "0",
            "GUNICORN_BIND": f"127.0.0.1:{self.web_port}",
            "WEB_WORKERS": str(self.web_workers),
            "WEB_THREADS": str(self.web_threads),
            "LOG_FORMAT": "json",
            "LOG_LEVEL": "WARNING",
        }

    def _store(self) -> dict[str, str]:
        if not self.with_s3:
            prefix = "/protected-media/" if self.with_nginx else ""
            return {"MEDIA_ROOT": str(self.media), "X_ACCEL_PREFIX": prefix}
        return {
            "X_ACCEL_PREFIX": "/protected-store/" if self.with_nginx else "",
            "S3_BUCKET": "croc",
            "S3_ENDPOINT_URL": f"http://127.0.0.1:{self.s3_port}",
            "S3_ACCESS_KEY_ID": "topology",
            "S3_SECRET_ACCESS_KEY": "topology",
            "S3_REGION": "us-east-1",
        }

    def _clock(self) -> dict[str, str]:
        if not self.clock_shim:
            return {}
        return {
            "LD_PRELOAD": str(self.clock_shim),
            "CLOCK_SHIM_FILE": str(self.folder / "clock"),
        }

    def manage(self, *arguments: str, may_fail: bool = False) -> str:
        """Run a management command in this installation and return what it printed."""
        run = subprocess.run(
            [sys.executable, "manage.py", *arguments],
            cwd=ROOT,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
        )
        if run.returncode and not may_fail:
            raise RuntimeError(f"{arguments}: {run.stdout}\n{run.stderr}")
        return run.stdout + run.stderr

    def prepare(self) -> None:
        """Database, Redis, store, migrations and static files; no server of ours yet."""
        self.postgres.create()
        self.postgres.start()
        with self.postgres.connect() as connection:
            connection.execute("CREATE DATABASE croc")
        self.redis.start()
        if self.with_s3:
            self.start_store()
        self.manage("prepare_site")

    def start_store(self) -> None:
        """The S3-compatible store; moto forgets what it held, so a restart needs new uploads."""
        program = Path(sys.executable).with_name("moto_server")
        self.spawn("store", [program, "-H", "127.0.0.1", "-p", self.s3_port])

    def put_file(self, name: str, content: bytes) -> None:
        """Put one file where images are."""
        if not self.with_s3:
            (self.media / name).write_bytes(content)
            return
        self.store_client().put_object(
            Bucket="croc", Key=name, Body=content, ContentType="image/png"
        )

    def store_client(self) -> Any:
        """A client of the store."""
        import boto3

        return boto3.client(
            "s3",
            endpoint_url=f"http://127.0.0.1:{self.s3_port}",
            aws_access_key_id="topology",
            aws_secret_access_key="topology",
            region_name="us-east-1",
        )

    def start(self, *, workers: bool = True) -> None:
        """Start the servers (``prepare`` first) and wait until the site is ready."""
        python = Path(sys.executable)
        clock = self._clock()
        self.spawn(
            "web",
            [python.with_name("gunicorn"), "croc_annotate.wsgi", "-c", "deploy/gunicorn.conf.py"],
            **clock,
        )
        if workers:
            celery = [python.with_name("celery"), "-A", "croc_annotate"]
            self.spawn(
                "worker-web", [*celery, "worker", "-Q", "web", "--concurrency", "1"], **clock
            )
            self.spawn("scheduler", [*celery, "beat", "--schedule", self.folder / "beat"], **clock)
        if self.with_nginx:
            self.start_nginx()
        self.wait_ready()

    def start_nginx(self) -> None:
        """nginx with the very template that docker-compose.yml mounts."""
        folder = self.folder / "nginx"
        values = {
            "WEB_UPSTREAM": f"127.0.0.1:{self.web_port}",
            "NGINX_LISTEN": f"127.0.0.1:{self.port}",
            "SERVER_NAME": "_",
            "FORWARDED_PROTO": "http",
            "TRUSTED_PROXIES": "127.0.0.1/32",
            "STATIC_FILES": str(self.folder / "static"),
            "MEDIA_FILES": str(self.media),
            "STORE_UPSTREAM": f"127.0.0.1:{self.s3_port}",
            "ACCESS_LOG": str(folder / "access.log"),
            "ERROR_LOG": str(folder / "error.log"),
        }
        template = (ROOT / "deploy" / "nginx" / "croc.conf.template").read_text()
        site = re.sub(r"\$\{([A-Z_]+)\}", lambda match: values[match[1]], template)
        temp = "\n".join(
            f"  {kind}_temp_path {folder}/{kind};"
            for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        )
        user = "user root;" if os.geteuid() == 0 else ""
        (folder / "nginx.conf").write_text(
            f"{user}\nworker_processes 1;\npid {folder}/pid;\nerror_log {folder}/error.log;\n"
            "events { worker_connections 512; }\n"
            "http {\n  include /etc/nginx/mime.types;\n"
            f"{temp}\n{site}\n}}\n"
        )
        self.spawn(
            "nginx",
            [
                find_nginx() or "nginx",
                "-p",
                folder,
                "-c",
                folder / "nginx.conf",
                "-g",
                "daemon off;",
            ],
        )

    def spawn(self, name: str, command: list[object], **extra: str) -> None:
        """Start one process; its output goes to logs/NAME."""
        with (self.folder / "logs" / name).open("ab") as log:
            self.processes[name] = subprocess.Popen(
                [str(part) for part in command],
                cwd=ROOT,
                env=self.environment | extra,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def wait_ready(self, *, seconds: float = 180) -> float:
        """Wait until /readyz answers 200 and return how long that took."""
        start, said = time.monotonic(), ""
        while time.monotonic() - start < seconds:
            try:
                with urllib.request.urlopen(self.url + "/readyz", timeout=5):
                    return time.monotonic() - start
            except urllib.error.HTTPError as error:
                said = error.read().decode()
                time.sleep(0.2)
            except (urllib.error.URLError, ConnectionError, TimeoutError) as error:
                said = str(error)
                time.sleep(0.2)
        logs = "\n".join(
            f"--- {p.name}\n{p.read_text()[-2000:]}" for p in (self.folder / "logs").iterdir()
        )
        raise TimeoutError(f"The site was not ready after {seconds} s: {said}\n{logs}")

    def kill(self, name: str, how: signal.Signals = signal.SIGKILL) -> None:
        """End one process and its children."""
        process = self.processes.pop(name)
        if process.poll() is None:
            os.killpg(process.pid, how)
            process.wait(timeout=30)

    def stop(self) -> None:
        """End everything and drop the database."""
        with contextlib.ExitStack() as ends:  # each, whatever becomes of the others
            ends.callback(shutil.rmtree, self.temporary, ignore_errors=True)
            ends.callback(self.postgres.stop)
            ends.callback(self.redis.stop)
            for name in list(self.processes):
                ends.callback(
                    self.kill, name, signal.SIGKILL if name != "nginx" else signal.SIGTERM
                )
