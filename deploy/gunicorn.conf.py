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
# Connections of nginx that stay open are not shared out evenly over the processes. That was looked
# at on two cores with 100 simulated people (8 ms of work, 4 ms of waiting a request): a fresh
# connection for each request, alone or with a worker that accepts no more than it has threads for,
# gave no shorter slowest hundredth (0.5-0.6 and 0.9-1.1 s beside 0.3-0.9 s), nor did 4 threads
# (0.3-0.6 s) or 2 (0.7 s). reuse_port would share by a hash of the address, also to a process that
# is busy or ending. What helps is a core for each process: WEB_WORKERS.
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
