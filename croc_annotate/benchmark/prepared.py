"""Results that are slow to compute and cheap to read, kept in the database between visits.

A leaderboard of a real release takes seconds: half a million scores are read and resampled
10,000 times. It is computed when a run ends and read from here by whoever comes next, also after
a restart, and also where the cache is empty or one of each process.
"""

from __future__ import annotations

import pickle
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.utils import timezone
from django.utils.crypto import constant_time_compare, salted_hmac

from croc_annotate import __version__
from croc_annotate.benchmark.models import PreparedResult
from croc_annotate.lib.hashing import canonical_json, sha256_text

if TYPE_CHECKING:
    from datetime import datetime

    from croc_annotate.releases.models import Release

# Raised when a stored class gets other fields.
_FORMAT = 3
_CODE_DIGITS = 16


@dataclass(frozen=True)
class Prepared:
    """What was stored, when, and whether it was made from what there is now."""

    value: Any
    made_at: datetime
    current: bool


def stamp_of(*parts: Any) -> str:
    """64 digits: a hash of the code that makes a result, then one of what it is made from."""
    return _code() + sha256_text(canonical_json(parts))[_CODE_DIGITS:]


def _code() -> str:
    return sha256_text(canonical_json([__version__, _FORMAT]))[:_CODE_DIGITS]


def read(release: Release, name: str, stamp: str, *, older: bool = False) -> Prepared | None:
    """The stored result; None without one, and unless `older` also for one of another stamp.

    Also with `older` it is of this code: what another version kept may lack what pages show.
    """
    row = PreparedResult.objects.filter(release=release, name=name)
    found = (row.filter(stamp__startswith=_code()) if older else row.filter(stamp=stamp)).first()
    if found is None:
        return None
    value = _opened(bytes(found.data))
    if value is None:
        return None
    return Prepared(value, found.made_at, found.stamp == stamp)


def write(release: Release, name: str, stamp: str, value: Any) -> datetime:
    """Keep a result in place of the one that was there; returns the time that it bears."""
    now = timezone.now()
    PreparedResult.objects.update_or_create(
        release=release,
        name=name,
        defaults={
            "stamp": stamp,
            "data": _sealed(value),
            "made_at": now,
        },
    )
    return now


# A pickle can run code when it is opened. Only what this installation signed with its own
# SECRET_KEY is: a row that came by another way (a backup, a hole in SQL) is computed again.
_SIGNATURE = 32


def _sealed(value: Any) -> bytes:
    # Level 1: draws hardly shrink, and a visitor may be waiting.
    packed = zlib.compress(pickle.dumps(value, protocol=5), 1)
    return _signature(packed) + packed


def _opened(data: bytes) -> Any:
    """The value; None if it is not ours, or of another version of the code."""
    signature, packed = data[:_SIGNATURE], data[_SIGNATURE:]
    if not constant_time_compare(signature.hex(), _signature(packed).hex()):
        return None
    try:
        return pickle.loads(zlib.decompress(packed))  # noqa: S301  (signed, see above)
    except (AttributeError, ImportError, TypeError, ValueError, zlib.error, pickle.PickleError):
        return None


def _signature(packed: bytes) -> bytes:
    return salted_hmac("benchmark.prepared", packed, algorithm="sha256").digest()
