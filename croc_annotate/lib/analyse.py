"""Telling the database how large a table has become."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import connection

if TYPE_CHECKING:
    from django.db.models import Model

MANY = 2_000
"""Rows written at once from which it is worth while."""


def analyse(model: type[Model]) -> None:
    """Statistics of a table that has just grown much; PostgreSQL's own turn may be a minute away.

    It also ends the plans that connections keep of statements on that table. Nothing elsewhere.
    """
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute(f"ANALYZE {connection.ops.quote_name(model._meta.db_table)}")
