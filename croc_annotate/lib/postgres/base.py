"""Django's PostgreSQL backend, and two things that a judging request gains most by.

*Prepared statements.* PostgreSQL takes longer to plan the queue's queries than to run them.
Django binds values on the client, so that every statement is new to the server. The cursor
here binds them on the server and has each text prepared at its first use on a connection.

*A look at the socket.* Django asks ``SELECT 1`` at the start of each request to see whether
the connection is alive. A server that went away has closed its end, which the socket tells
without a round trip. One that vanished without a word is found by the first query, as it
would be by ``SELECT 1``.
"""

from __future__ import annotations

import select
from typing import TYPE_CHECKING, Any

import psycopg
from django.db.backends.postgresql import base, operations
from psycopg.pq import TransactionStatus
from psycopg.types.numeric import Int8Dumper

if TYPE_CHECKING:
    from collections.abc import Sequence

    from django.db.backends.utils import CursorWrapper


# More than the shapes that the queue's statements come in, kept by each connection.
MOST_PREPARED = 300


class PreparingCursor(psycopg.RawCursor[Any]):
    """Statements with ``$1``-style places, prepared on the server; several go in one round trip."""

    def __init__(self, connection: psycopg.Connection[Any], *, prepare: bool) -> None:
        super().__init__(connection)
        self._prepare = prepare
        # By default the type depends on the size of the number, and each mix of types would
        # be a statement of its own.
        self.adapters.register_dumper(int, Int8Dumper)
        # A cursor holds the result of one statement: each further one of a round trip has its own.
        self._siblings: list[psycopg.RawCursor[Any]] = []

    def execute(  # type: ignore[override]  # several statements at once
        self, query: str | Sequence[str], params: Sequence[Any] | None = None, **_: Any
    ) -> PreparingCursor:
        """One statement with its values, or a sequence of statements with a sequence of values."""
        if isinstance(query, str):
            if not self._opens_transaction():
                super().execute(query, params, prepare=self._prepare)
                return self
            query, params = [query], [params]
        for _missing in range(len(self._siblings), len(query) - 1):
            sibling = psycopg.RawCursor(self.connection)
            sibling.adapters.register_dumper(int, Int8Dumper)
            self._siblings.append(sibling)
        first, *others = zip(query, params or (), strict=True)
        with self.connection.pipeline():
            super().execute(*first, prepare=self._prepare)
            for sibling, other in zip(self._siblings, others, strict=False):
                sibling.execute(*other, prepare=self._prepare)
        return self

    def _opens_transaction(self) -> bool:
        """True if the driver is about to send BEGIN, which then need not wait for its own answer."""
        connection = self.connection
        status = connection.pgconn.transaction_status
        return status == TransactionStatus.IDLE and not connection.autocommit

    def fetch_each(self, count: int) -> list[list[Any]]:
        """The rows of each of the ``count`` statements of the last round trip."""
        return [cursor.fetchall() for cursor in (self, *self._siblings[: count - 1])]


class DatabaseOperations(operations.DatabaseOperations):
    """For the log of queries: prepared statements are shown without their values."""

    def last_executed_query(self, cursor: Any, sql: Any, params: Any) -> str:
        """The text of what was executed last."""
        if isinstance(cursor, PreparingCursor):
            return sql if isinstance(sql, str) else "; ".join(sql)
        return super().last_executed_query(cursor, sql, params)


class DatabaseWrapper(base.DatabaseWrapper):
    """One connection."""

    ops_class = DatabaseOperations
    _preparing: PreparingCursor | None = None

    def init_connection_state(self) -> None:
        """As always; and what is prepared is planned once, not at each use.

        Left alone PostgreSQL plans a statement for its values each time when that looks cheaper.
        Ours find their rows by keys: the plan is the same for all values, and to join five
        tables takes longer to plan than to do. Other statements are not prepared, and not
        touched by this.
        """
        super().init_connection_state()
        if self.settings_dict.get("PREPARED_STATEMENTS", True):
            with self.cursor() as cursor:
                cursor.execute("SET plan_cache_mode = force_generic_plan")

    def preparing_cursor(self) -> CursorWrapper:
        """The connection's cursor for prepared statements; read its rows before its next use."""
        self.close_if_health_check_failed()
        self.ensure_connection()
        raw = self._preparing
        if raw is None or raw.connection is not self.connection:
            with self.wrap_database_errors:
                prepare = self.settings_dict.get("PREPARED_STATEMENTS", True)
                # Django forbids preparing; its own cursors bind on the client and never do.
                self.connection.prepare_threshold = 1 if prepare else None
                self.connection.prepared_max = MOST_PREPARED
                raw = self._preparing = PreparingCursor(self.connection, prepare=prepare)
        wrapped: CursorWrapper = self._prepare_cursor(raw)  # type: ignore[attr-defined]  # of BaseDatabaseWrapper
        return wrapped

    def is_usable(self) -> bool:
        """False if the server has closed the connection; a live idle one has nothing to say."""
        if self.connection is None or self.connection.closed:
            return False
        poll = select.poll()
        poll.register(self.connection.fileno(), select.POLLIN)
        return not poll.poll(0) or super().is_usable()
