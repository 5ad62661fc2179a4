"""The installation of docker-compose.yml as processes on loopback: for tests and load.

nginx → gunicorn → PostgreSQL (a database of its own), Redis (a server of its own), workers and
a scheduler. Image bytes go from nginx's own disk to the browser (X-Accel-Redirect).
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import psycopg

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
    """All processes of one installation; ``stop`` ends them and drops the database."""

    folder: Path
    admin_url: str
    web_workers: int = 2
    web_threads: int = 8
    with_nginx: bool = True
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.database = f"croc_topology_{os.getpid()}_{free_port()}"
        self.redis = RedisServer(folder=self.folder / "redis")
        self.web_port, self.port = free_port(), free_port()
        self.media = self.folder / "media"
        for name in ("redis", "media", "static", "nginx", "logs"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port if self.with_nginx else self.web_port}"

    @property
    def environment(self) -> dict[str, str]:
        kept = ("PATH", "HOME", "LANG", "OPENBLAS_CORETYPE", "LD_PRELOAD")
        return {
            **{name: os.environ[name] for name in kept if name in os.environ},
            "DATABASE_URL": urlsplit(self.admin_url)._replace(path=f"/{self.database}").geturl(),
            "REDIS_URL": self.redis.url,
            "SECRET_KEY": "topology-0123456789-0123456789-0123456789-0123",
            "MEDIA_ROOT": str(self.media),
            "STATIC_ROOT": str(self.folder / "static"),
            "X_ACCEL_PREFIX": "/protected-media/" if self.with_nginx else "",
            "ALLOWED_HOSTS": "127.0.0.1,localhost",
            "METRICS_TOKEN": "topology",
            "PROXY_COUNT": "1" if self.with_nginx else "0",
            "GUNICORN_BIND": f"127.0.0.1:{self.web_port}",
            "WEB_WORKERS": str(self.web_workers),
            "WEB_THREADS": str(self.web_threads),
            "LOG_FORMAT": "json",
            "LOG_LEVEL": "WARNING",
        }

    def manage(self, *arguments: str) -> str:
        """Run a management command in this installation and return what it printed."""
        run = subprocess.run(
            [sys.executable, "manage.py", *arguments],
            cwd=ROOT,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
        )
        if run.returncode:
            raise RuntimeError(f"{arguments}: {run.stdout}\n{run.stderr}")
        return run.stdout

    def prepare(self) -> None:
        """Database, Redis, migrations and static files; no server yet."""
        with psycopg.connect(self.admin_url, autocommit=True) as connection:
            connection.execute(f'CREATE DATABASE "{self.database}"')
        self.redis.start()
        self.manage("migrate", "-v0")
        self.manage("collectstatic", "--noinput", "-v0")

    def start(self, *, workers: bool = True) -> None:
        """Start the servers (``prepare`` first) and wait until the site is ready."""
        python = Path(sys.executable)
        self.spawn(
            "web",
            [python.with_name("gunicorn"), "croc_annotate.wsgi", "-c", "deploy/gunicorn.conf.py"],
        )
        if workers:
            celery = [python.with_name("celery"), "-A", "croc_annotate"]
            self.spawn("worker-web", [*celery, "worker", "-Q", "web", "--concurrency", "1"])
            self.spawn("scheduler", [*celery, "beat", "--schedule", self.folder / "beat"])
        if self.with_nginx:
            self.start_nginx()
        self.wait_ready()

    def start_nginx(self) -> None:
        """nginx with the very template that docker-compose.yml mounts."""
        values = {
            "WEB_UPSTREAM": f"127.0.0.1:{self.web_port}",
            "NGINX_LISTEN": f"127.0.0.1:{self.port}",
            "SERVER_NAME": "_",
            "FORWARDED_PROTO": "http",
            "STATIC_FILES": str(self.folder / "static"),
            "MEDIA_FILES": str(self.media),
        }
        template = (ROOT / "deploy" / "nginx" / "croc.conf.template").read_text()
        site = re.sub(r"\$\{([A-Z_]+)\}", lambda match: values[match[1]], template)
        folder = self.folder / "nginx"
        temp = "\n".join(
            f"  {kind}_temp_path {folder}/{kind};"
            for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        )
        user = "user root;" if os.geteuid() == 0 else ""
        (folder / "nginx.conf").write_text(
            f"{user}\nworker_processes 1;\npid {folder}/pid;\nerror_log {folder}/error.log;\n"
            "events { worker_connections 512; }\n"
            "http {\n  include /etc/nginx/mime.types;\n  access_log off;\n"
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

    def spawn(self, name: str, command: list[object]) -> None:
        """Start one process; its output goes to logs/NAME."""
        with (self.folder / "logs" / name).open("ab") as log:
            self.processes[name] = subprocess.Popen(
                [str(part) for part in command],
                cwd=ROOT,
                env=self.environment,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def wait_ready(self, *, seconds: float = 60) -> float:
        """Wait until /readyz answers 200 and return how long that took."""
        start = time.monotonic()
        while time.monotonic() - start < seconds:
            try:
                with urllib.request.urlopen(self.url + "/readyz", timeout=5):
                    return time.monotonic() - start
            except (urllib.error.URLError, ConnectionError, TimeoutError):
                time.sleep(0.2)
        logs = "\n".join(
            f"--- {p.name}\n{p.read_text()[-2000:]}" for p in (self.folder / "logs").iterdir()
        )
        raise TimeoutError(f"The site was not ready after {seconds} s\n{logs}")

    def kill(self, name: str, how: signal.Signals = signal.SIGKILL) -> None:
        """End one process and its children."""
        process = self.processes.pop(name)
        if process.poll() is None:
            os.killpg(process.pid, how)
            process.wait(timeout=30)

    def stop(self) -> None:
        """End everything and drop the database."""
        for name in list(self.processes):
            self.kill(name, signal.SIGTERM if name == "nginx" else signal.SIGKILL)
        self.redis.stop()
        with psycopg.connect(self.admin_url, autocommit=True) as connection:
            connection.execute(f'DROP DATABASE IF EXISTS "{self.database}" WITH (FORCE)')
