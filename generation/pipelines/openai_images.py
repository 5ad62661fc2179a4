"""Image APIs that speak OpenAI's `POST /images/generations`.

They take no seed: a seed only numbers the images of a text, and asking again gives another
picture. The spending cap and the pace of the settings hold over all workers together
(`generation.budget`, `generation.turns`). Source: platform.openai.com/docs/api-reference/images.
"""

from __future__ import annotations

import base64
import json
import logging
import os
import random
import time
import urllib.error
import urllib.request
from http import HTTPStatus
from http.client import HTTPException, IncompleteRead
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import urlsplit

from generation.pipeline import (
    GeneratorSpec,
    Outcome,
    PipelineError,
    RenderedImage,
    RenderFailure,
    TryLater,
)
from generation.turns import Turns

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

logger = logging.getLogger(__name__)

_DEFAULT_URL = "https://api.openai.com/v1"
_LONGEST_WAIT = 120.0
_LARGEST_ANSWER = 64_000_000
_AGAIN = {408, 409, 425, 429, 500, 502, 503, 504}
# Then the service rests: each further one may be billed too.
_LOST_IN_A_ROW = 3
_NO_MONEY = ("insufficient_quota", "billing_hard_limit_reached")


class _AnswerLostError(Exception):
    """A request was sent and no answer came back, or half of one."""


class OpenAIImages:
    """One request an image; paced, retried with backoff, refused images told from outages."""

    defaults: ClassVar[Mapping[str, object]] = {"batch_size": 1}

    def __init__(self, spec: GeneratorSpec) -> None:
        self.spec = spec
        self.url = (spec.settings.base_url or _DEFAULT_URL).rstrip("/") + "/images/generations"
        self._key = ""
        self._turns = Turns(spec.slug, spec.settings.requests_per_minute)
        self._lost = 0  # paid requests in a row that nobody answered

    def load(self) -> None:
        """Read the key from the environment; raises PipelineError."""
        name = self.spec.settings.api_key_env
        self._key = os.environ.get(name, "")
        if not self._key:
            raise PipelineError(f"{self.spec.slug} needs its key in the environment: set {name}.")
        parts = urlsplit(self.url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise PipelineError(f"base_url is no http(s) address: {self.spec.settings.base_url!r}")

    def render(self, text: str, seeds: Sequence[int]) -> Iterator[Outcome]:
        """One request a seed; raises TryLater when the other side stays away."""
        for seed in seeds:
            started = time.monotonic()
            outcome = self._one(text, seed)
            if isinstance(outcome, RenderedImage):
                seconds = round(time.monotonic() - started, 3)
                outcome = RenderedImage(
                    seed, data=outcome.data, facts={**outcome.facts, "seconds": seconds}
                )
            yield outcome

    def describe(self) -> dict[str, object]:
        """Model, address and settings; never the key."""
        return {
            "pipeline": "openai-images",
            "model_id": self.spec.model_id,
            "revision": self.spec.revision,
            "settings": self.spec.settings.as_json(),
            "noise": "the service's own; it takes no seed",
            "device": urlsplit(self.url).hostname,
        }

    def close(self) -> None:
        """Nothing is held."""

    # -- one image ------------------------------------------------------------------

    def _one(self, text: str, seed: int) -> Outcome:
        if self._lost >= _LOST_IN_A_ROW:
            self._lost -= 1  # after the pause one more is tried
            raise TryLater(f"{self.spec.slug}: {_LOST_IN_A_ROW} requests in a row had no answer")
        try:
            status, answer, _ = self._ask(text)
        except _AnswerLostError as error:
            self._lost += 1
            return RenderFailure(seed, f"no answer came, and it may be billed: {error}")
        self._lost = 0
        if status != HTTPStatus.OK:
            return RenderFailure(seed, f"refused by the service ({status}): {_message(answer)}")
        try:
            item = answer["data"][0]
            data = self._bytes(item)
        except (LookupError, TypeError, AttributeError, ValueError) as error:
            return RenderFailure(seed, f"an answer without an image: {error!r}")
        except (OSError, HTTPException) as error:
            return RenderFailure(seed, f"the image's address could not be read: {error!r}")
        facts: dict[str, object] = {"cost": self.spec.settings.price_per_image}
        if item.get("revised_prompt"):
            facts["revised_prompt"] = item["revised_prompt"]
        return RenderedImage(seed, data=data, facts=facts)

    def _bytes(self, item: Mapping[str, Any]) -> bytes:
        if item.get("b64_json"):
            return base64.b64decode(item["b64_json"], validate=True)
        # Some services answer with an address instead; only theirs or a public https one.
        parts = urlsplit(item["url"])
        if parts.scheme != "https" and parts.netloc != urlsplit(self.url).netloc:
            raise KeyError("url")
        return self._downloaded(item["url"])

    def _downloaded(self, url: str) -> bytes:
        """A finished image; it is paid for, so a lost connection is met with patience."""
        for attempt in range(self.spec.settings.max_retries):
            try:
                return self._fetched(url)
            except (OSError, HTTPException):
                time.sleep(_wait(attempt, {}))
        return self._fetched(url)

    def _fetched(self, url: str) -> bytes:
        with urllib.request.urlopen(url, timeout=self.spec.settings.timeout) as reply:  # noqa: S310 - scheme checked by the caller
            data = bytes(reply.read(_LARGEST_ANSWER))
            if len(data) < int(reply.headers.get("Content-Length") or 0):
                raise IncompleteRead(data)  # Python tells only who reads without a limit
        return data

    def _ask(self, text: str) -> tuple[int, Any, Mapping[str, str]]:
        """(status, parsed answer, headers), after retries.

        Raises TryLater or PipelineError, and of a paid source _AnswerLostError.
        """
        settings = self.spec.settings
        for attempt in range(settings.max_retries + 1):
            self._turns.wait()
            try:
                status, answer, headers = self._post(text)
            except (OSError, HTTPException, ValueError) as error:  # ValueError: no JSON, no UTF-8
                if settings.price_per_image and not isinstance(error, urllib.error.URLError):
                    # It was sent. To send it again may cost again, which the cap would not see.
                    raise _AnswerLostError(repr(error)) from error
                status, answer, headers = 0, {"error": {"message": repr(error)}}, {}
            _refuse_hopeless(self.spec.slug, status, answer)
            if status and status not in _AGAIN:
                return status, answer, headers
            if attempt < settings.max_retries:
                wait = _wait(attempt, headers)
                logger.warning("%s: %s; again in %.1f s", self.spec.slug, status or answer, wait)
                time.sleep(wait)
        raise TryLater(
            f"{self.spec.slug}: no image after {settings.max_retries + 1} attempts, the last "
            f"answer was {status or 'none'}: {_message(answer)}"
        )

    def _post(self, text: str) -> tuple[int, Any, Mapping[str, str]]:
        request = urllib.request.Request(  # noqa: S310 - scheme checked in load()
            self.url,
            data=json.dumps(self._body(text)).encode(),
            headers={"Content-Type": "application/json"},
        )
        # Not to where a redirect leads: that may be another host.
        request.add_unredirected_header("Authorization", f"Bearer {self._key}")
        try:
            with urllib.request.urlopen(request, timeout=self.spec.settings.timeout) as reply:  # noqa: S310 - as above
                return reply.status, json.loads(reply.read(_LARGEST_ANSWER)), dict(reply.headers)
        except urllib.error.HTTPError as error:
            with error:
                try:
                    answer = json.loads(error.read(_LARGEST_ANSWER))
                except (OSError, HTTPException, ValueError):  # a proxy's own page, or half of it
                    answer = {}
                return error.code, answer, dict(error.headers)

    def _body(self, text: str) -> dict[str, Any]:
        settings = self.spec.settings
        body: dict[str, Any] = {
            "model": self.spec.model_id,
            "prompt": text,
            "n": 1,
            "size": f"{settings.width}x{settings.height}",
        }
        if settings.quality:
            body["quality"] = settings.quality
        return {**body, **settings.extra}


def _wait(attempt: int, headers: Mapping[str, str]) -> float:
    """Seconds to wait: what the service asks for, else doubled each time with some chance."""
    lower = {name.lower(): value for name, value in headers.items()}
    asked = lower.get("retry-after", "")
    if asked.replace(".", "", 1).isdigit():
        return min(float(asked), _LONGEST_WAIT)
    return min(2.0**attempt, _LONGEST_WAIT) * random.uniform(0.5, 1.0)  # noqa: S311 - not a secret


def _refuse_hopeless(slug: str, status: int, answer: Any) -> None:
    """No retry helps against a wrong key or an empty account; no candidate is to blame."""
    error = answer.get("error") if isinstance(answer, dict) else None
    code = error.get("code") if isinstance(error, dict) else ""
    if status in (401, 403, 404) or code in _NO_MONEY:
        raise PipelineError(f"{slug}: the service answered {status}: {_message(answer)}")


def _message(answer: Any) -> str:
    error = answer.get("error") if isinstance(answer, dict) else None
    if isinstance(error, dict):
        return str(error.get("message") or error.get("code") or error)[:300]
    return str(error or answer)[:300]
