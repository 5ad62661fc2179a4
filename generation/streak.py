"""Errors that nobody foresaw: a few fail their images, many in a row mean that nothing can work."""

from __future__ import annotations

import logging

from generation.pipeline import ErrorsInARow

logger = logging.getLogger(__name__)

# A broken installation must not use up all candidates as failures within minutes.
ERRORS_IN_A_ROW = 5


class Streak:
    """Counts unexpected errors until something works again."""

    def __init__(self, what: str) -> None:
        self.what = what  # "batches in a row ended in an error"
        self._errors = 0

    def meet(self, error: Exception) -> str:
        """Return the reason that an error is for its images; raises ErrorsInARow at the fifth."""
        logger.error("An unexpected error", exc_info=error)
        self._errors += 1
        reason = reason_of(error)
        if self._errors >= ERRORS_IN_A_ROW:
            raise ErrorsInARow(f"{self._errors} {self.what}, the last with {reason}") from error
        return reason

    def end(self) -> None:
        """Something worked."""
        self._errors = 0


def reason_of(error: Exception) -> str:
    """An error in the words that stand in a failed candidate's row."""
    return f"{type(error).__name__}: {error}"
