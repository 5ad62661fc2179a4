"""gunicorn: threads, because a request mostly waits for the database."""

from __future__ import annotations

import os
import tempfile
from typing import Any

# Each worker counts in a file of its own here; /metrics adds them up.
os.environ.setdefault("PROMETHEUS_MULTIPROC_DIR", tempfile.mkdtemp(prefix="croc-metrics-"))

bind = os.environ.get("GUNICORN_BIND", "127.0.0.1:8000")
workers = int(os.environ.get("WEB_WORKERS", "2"))
threads = int(os.environ.get("WEB_THREADS", "8"))
worker_class = "gthread"
# A worker that is replaced now and then cannot grow for ever.
max_requests = 50_000
max_requests_jitter = 5_000
timeout = 60
graceful_timeout = 30
keepalive = 75
# The heartbeat file in memory: on a slow disk a healthy worker would be killed.
worker_tmp_dir = "/dev/shm"  # noqa: S108  # gunicorn makes a nameless file of its own in it
accesslog = None
forwarded_allow_ips = os.environ.get("FORWARDED_ALLOW_IPS", "127.0.0.1")


def child_exit(server: Any, worker: Any) -> None:
    """Forget the gauges of a worker that ended; its counts stay."""
    from prometheus_client import multiprocess

    multiprocess.mark_process_dead(worker.pid)
