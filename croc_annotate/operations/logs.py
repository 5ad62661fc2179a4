"""Log lines as JSON, with the request they belong to and without personal data."""

from __future__ import annotations

import json
import logging
from contextvars import ContextVar
from datetime import UTC, datetime

request_id: ContextVar[str] = ContextVar("request_id", default="")

EXTRA = ("method", "route", "status", "ms", "task")


class RouteOnly(logging.Filter):
    """Puts the route's pattern in place of the address, which may hold a secret or an id.

    Django's own loggers write "Not Found: /join/<secret>" and the like.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        """Change the record; every record passes."""
        request = getattr(record, "request", None)
        path = getattr(request, "path", "")
        if path and isinstance(record.args, tuple):
            match = getattr(request, "resolver_match", None)
            route = f"/{match.route}" if match else "(no such page)"
            record.args = tuple(route if value == path else value for value in record.args)
        return True


class JsonFormatter(logging.Formatter):
    """One JSON object a line: time (UTC), level, logger, message, request id, named extras."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as one line of JSON."""
        line = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        if request_id.get():
            line["request"] = request_id.get()
        line.update({name: getattr(record, name) for name in EXTRA if hasattr(record, name)})
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False)
