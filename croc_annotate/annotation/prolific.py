"""The crowd platform's API (Prolific, version 1): states of submissions, and signed messages from it."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import urllib.error
import urllib.request
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urljoin, urlsplit

if TYPE_CHECKING:
    from collections.abc import Iterator

TIMEOUT_SECONDS = 20
MOST_PAGES = 1000
MESSAGE_SECONDS = 300


class PlatformError(Exception):
    """The platform did not answer as it should. The message holds no id and no key."""


@dataclass(frozen=True, slots=True)
class PlatformSubmission:
    """One submission as the platform sees it."""

    session_id: str
    state: str


class PlatformClient:
    """Reads from the platform's API with a key."""

    def __init__(self, *, url: str, token: str) -> None:
        self._url = url.rstrip("/") + "/"
        self._token = token

    def submissions(self, study_id: str) -> Iterator[PlatformSubmission]:
        """All submissions of a study, page by page. Raises `PlatformError`."""
        path: str | None = f"api/v1/studies/{quote(study_id, safe='')}/submissions/"
        for _ in range(MOST_PAGES):
            if path is None:
                return
            page = self._get(path)
            for row in page.get("results", []):
                yield PlatformSubmission(str(row["id"]), str(row["status"]))
            path = (page.get("_links", {}).get("next") or {}).get("href")
        raise PlatformError("The platform's list does not end.")

    def _get(self, path: str) -> dict[str, Any]:
        address = urljoin(self._url, path)
        # The key goes to the configured host only, whatever address a page names.
        if urlsplit(address)[:2] != urlsplit(self._url)[:2]:
            raise PlatformError("The platform named a page on another host.")
        request = urllib.request.Request(  # noqa: S310  # scheme and host are the configured ones
            address, headers={"Accept": "application/json"}
        )
        # Not to where a redirect leads: that may be another host.
        request.add_unredirected_header("Authorization", f"Token {self._token}")
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS) as answer:  # noqa: S310  # as above
                found = json.load(answer)
        except urllib.error.HTTPError as error:
            error.close()
            raise PlatformError(f"The platform answered {error.code}.") from None
        except (urllib.error.URLError, TimeoutError, ValueError) as error:
            raise PlatformError(f"The platform cannot be read ({type(error).__name__}).") from None
        if not isinstance(found, dict):
            raise PlatformError("The platform's answer is not an object.")
        return found


def signature(*, secret: str, timestamp: str, body: bytes) -> str:
    """What the platform puts into ``X-Prolific-Request-Signature``."""
    digest = hmac.new(secret.encode(), timestamp.encode() + body, hashlib.sha256).digest()
    return base64.b64encode(digest).decode()


def message_is_genuine(*, secret: str, timestamp: str, given: str, body: bytes, now: float) -> bool:
    """True for a message signed with our secret within the last minutes: a copy of an old one is not."""
    if not secret or not timestamp.isdecimal() or abs(now - int(timestamp)) > MESSAGE_SECONDS:
        return False
    wanted = signature(secret=secret, timestamp=timestamp, body=body)
    return hmac.compare_digest(wanted.encode(), given.encode())
