"""What a server says once, when it starts."""

from __future__ import annotations

import logging

from django.conf import settings
from django.db import DatabaseError, connection

from croc_annotate.operations.health import WARNING, check_database

logger = logging.getLogger("croc_annotate.startup")


def warn_of_sqlite() -> None:
    """Say so when several people work on SQLite, where all writes share one lock."""
    if not settings.ON_SQLITE:
        return
    try:
        finding = check_database()
    except DatabaseError:  # no tables yet: `migrate` comes first
        return
    finally:
        connection.close()
    if finding.level == WARNING:
        logger.warning("%s. %s", finding.seen, finding.remedy)
