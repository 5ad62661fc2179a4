"""`vqascore-openai`: P("Yes") from the log-probabilities of an OpenAI-compatible chat API.

The score is the sum over the top tokens of the first position that read "Yes" (white space apart,
capitals as asked for). When "Yes" is not among the top tokens the score is 0, as published: it
was asked and did not come. When the call failed the score is missing, never 0.

A call is repeated after a pause where that can help (429, 5xx, time out, broken connection),
`Retry-After` is obeyed, and no call is made that could exceed the spending cap. Scores already
stored are not asked for again, so a run that stopped at the cap goes on after it is raised.

Options (`--option KEY=VALUE`): base_url, requests_per_minute, max_usd, usd_per_million_input,
usd_per_million_output, parallel, retries, timeout, detail. Environment: OPENAI_API_KEY,
OPENAI_BASE_URL.
"""

from __future__ import annotations

import base64
import json
import math
import os
import threading
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from http.client import HTTPException
from typing import TYPE_CHECKING, Any

from croc_annotate.benchmark.metric import (
    ImageInput,
    ImageNeed,
    MetricError,
    MetricFacts,
    MetricOptions,
    ScoreBatch,
    as_score,
    check_batch,
    check_options,
    nested,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

MODEL = "gpt-4o-2024-08-06"
BASE_URL = "https://api.openai.com/v1"
QUESTION = 'Does this figure show "{text}"? Please answer yes or no.'
ANSWER = "Yes"
TOP = 20  # as many as the API gives
LONGEST_PAUSE = 60.0
TOKENS_OF_A_CALL = 2_000  # reserved for a call before its real use is known

OPTIONS = (
    "base_url", "requests_per_minute", "max_usd", "usd_per_million_input",
    "usd_per_million_output", "parallel", "retries", "timeout", "detail",
)  # fmt: skip

_TYPES = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"RIFF": "image/webp",
}


class CapReachedError(Exception):
    """The next call could exceed the spending cap."""


class CallFailedError(Exception):
    """A call that gave no score, and why; `pause` says how long to wait before another try."""

    def __init__(self, reason: str, *, pause: float | None = None, again: bool = False) -> None:
        super().__init__(reason)
        self.pause = pause
        self.again = again


@dataclass
class Budget:
    """Money spent so far, and what calls under way may still cost. Safe between threads."""

    cap: float | None
    per_input: float
    per_output: float
    spent: float = 0.0
    reserved: float = 0.0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def reserve(self) -> float:
        """Set money aside for one call; CapReachedError if it might not suffice."""
        cost = TOKENS_OF_A_CALL * self.per_input + self.per_output
        with self.lock:
            if self.cap is not None and self.spent + self.reserved + cost > self.cap:
                raise CapReachedError(f"spending cap of {self.cap:g} USD reached")
            self.reserved += cost
        return cost

    def settle(self, reserved: float, usage: Mapping[str, Any]) -> None:
        """Book what the call really used."""
        real = (
            float(usage.get("prompt_tokens", 0)) * self.per_input
            + float(usage.get("completion_tokens", 0)) * self.per_output
        )
        with self.lock:
            self.reserved -= reserved
            self.spent += real


class Pace:
    """Lets calls start at most so often. Safe between threads."""

    def __init__(self, per_minute: float, *, clock: Callable[[], float]) -> None:
        self._gap = 60.0 / per_minute if per_minute > 0 else 0.0
        self._next = 0.0
        self._clock = clock
        self._lock = threading.Lock()

    def wait(self, sleep: Callable[[float], None]) -> None:
        """Wait for this call's turn."""
        with self._lock:
            now = self._clock()
            turn = max(now, self._next)
            self._next = turn + self._gap
        if turn > now:
            sleep(turn - now)

    def hold(self, seconds: float) -> None:
        """Let nobody start before this many seconds have passed (the server asked for it)."""
        with self._lock:
            self._next = max(self._next, self._clock() + seconds)


class VqaScoreOpenAi:
    """One HTTP request for each pair of image and text, several at once."""

    needs: ImageNeed = "bytes"  # the original file goes out, as published

    def __init__(self, *, options: MetricOptions) -> None:
        extra = options.extra
        self._model = options.model or MODEL
        self._question = check_options(options, "vqascore-openai", *OPTIONS, prompt=QUESTION)
        base = extra.get("base_url") or os.environ.get("OPENAI_BASE_URL") or BASE_URL
        if not base.startswith(("http://", "https://")):
            raise MetricError(f"base_url must begin with http:// or https://, not {base!r}.")
        self._base = base.rstrip("/")
        self._key = os.environ.get("OPENAI_API_KEY", "")
        if not self._key:
            raise MetricError("vqascore-openai needs a key: set OPENAI_API_KEY.")
        self._detail = extra.get("detail", "auto")
        self._retries = int(_number(extra, "retries", 6))
        self._timeout = _number(extra, "timeout", 60)
        self._parallel = max(1, int(_number(extra, "parallel", 4)))
        cap = extra.get("max_usd")
        if cap is not None and "usd_per_million_input" not in extra:
            raise MetricError("max_usd needs the prices: usd_per_million_input and …_output.")
        self._budget = Budget(
            cap=None if cap is None else _number(extra, "max_usd", 0),
            per_input=_number(extra, "usd_per_million_input", 0) / 1e6,
            per_output=_number(extra, "usd_per_million_output", 0) / 1e6,
        )
        self._sleep: Callable[[float], None] = time.sleep
        self._pace = Pace(_number(extra, "requests_per_minute", 0), clock=time.monotonic)

    def describe(self) -> MetricFacts:
        """The model's dated name is all the revision that an API has; the server is named too."""
        return MetricFacts(
            name="vqascore-openai",
            label=f"VQAScore ({self._model})",
            model=self._model,
            revision=self._base,
            prompt=self._question,
            preprocessing=f"original file, detail {self._detail}",
            image_backend="server",
            dtype="server",
            settings={"answer": ANSWER, "top_logprobs": str(TOP), "temperature": "0"},
            deterministic=False,
            source="Lin et al. 2024, arXiv:2404.01291",
        )

    @property
    def spent_usd(self) -> float:
        """What the calls so far have cost, by the prices given."""
        return self._budget.spent

    def score(self, *, images: Sequence[ImageInput], texts: Sequence[Sequence[str]]) -> ScoreBatch:
        """P("Yes") of each pair; missing where the call failed, with the reasons."""
        check_batch(images, texts)
        jobs = [(i, text) for i, own in zip(images, texts, strict=True) for text in own]
        with ThreadPoolExecutor(max_workers=self._parallel) as pool:
            answers = list(pool.map(self._ask, jobs))
        return ScoreBatch(
            scores=nested([value for value, _ in answers], texts),
            reasons=tuple(sorted({reason for _, reason in answers if reason})),
        )

    def close(self) -> None:
        """No connection is kept."""

    def _ask(self, job: tuple[ImageInput, str]) -> tuple[float | None, str]:
        image, text = job
        try:
            body = self._body(image, text)
            for attempt in range(self._retries + 1):
                try:
                    return self._call(body), ""
                except CallFailedError as failure:
                    if not failure.again or attempt == self._retries:
                        return None, str(failure)
                    self._back_off(failure, attempt)
        except CapReachedError as reached:
            return None, str(reached)
        return None, "no try was allowed"

    def _back_off(self, failure: CallFailedError, attempt: int) -> None:
        pause = failure.pause if failure.pause is not None else 2.0**attempt
        pause = min(pause, LONGEST_PAUSE)
        if failure.pause is not None:
            self._pace.hold(pause)
        self._sleep(pause)

    def _call(self, body: bytes) -> float | None:
        reserved = self._budget.reserve()
        usage: Mapping[str, Any] = {}
        try:
            self._pace.wait(self._sleep)
            answer = self._post(body)
            usage = answer.get("usage") or {}
            return probability_of(answer, ANSWER)
        finally:
            self._budget.settle(reserved, usage)

    def _post(self, body: bytes) -> dict[str, Any]:
        request = urllib.request.Request(  # noqa: S310 - the scheme was checked above
            f"{self._base}/chat/completions",
            data=body,
            headers={"Content-Type": "application/json"},
        )
        # Not to where a redirect leads: that may be another host.
        request.add_unredirected_header("Authorization", f"Bearer {self._key}")
        try:
            with urllib.request.urlopen(request, timeout=self._timeout) as response:  # noqa: S310 - checked above
                return dict(json.load(response))
        except urllib.error.HTTPError as error:
            raise _http_failure(error) from error
        except (OSError, HTTPException) as error:
            raise CallFailedError(f"no answer: {type(error).__name__}", again=True) from error
        except ValueError as error:
            raise CallFailedError("the answer is no JSON object", again=True) from error

    def _body(self, image: ImageInput, text: str) -> bytes:
        if image.data is None:
            raise MetricError(f"Image {image.sha256[:12]} came without bytes to a metric of bytes.")
        encoded = base64.b64encode(image.data).decode("ascii")
        url = f"data:{media_type(image.data)};base64,{encoded}"
        content = [
            {"type": "text", "text": self._question.replace("{text}", text)},
            {"type": "image_url", "image_url": {"url": url, "detail": self._detail}},
        ]
        return json.dumps(
            {
                "model": self._model,
                "messages": [{"role": "user", "content": content}],
                "max_tokens": 1,
                "temperature": 0,
                "logprobs": True,
                "top_logprobs": TOP,
            }
        ).encode("utf-8")


def media_type(data: bytes) -> str:
    """The media type by the first bytes; what the API does not take is an error in words."""
    for start, kind in _TYPES.items():
        if data.startswith(start):
            return kind
    raise MetricError("The API takes PNG, JPEG and WebP files only; one image is something else.")


def probability_of(answer: Mapping[str, Any], word: str) -> float | None:
    """Sum of the probabilities of the first position's top tokens that read as the word."""
    try:
        first = answer["choices"][0]["logprobs"]["content"][0]
        top = first["top_logprobs"]
        found = [float(token["logprob"]) for token in top if str(token["token"]).strip() == word]
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise CallFailedError("the answer holds no log-probabilities") from error
    return as_score(math.fsum(math.exp(value) for value in found))


def _http_failure(error: urllib.error.HTTPError) -> CallFailedError:
    code = error.code
    if code == 401:
        raise MetricError("The API refused the key (401): check OPENAI_API_KEY.")
    if code == 404:
        raise MetricError("The API does not know this model or address (404).")
    detail = _message(error)
    if code == 429 and "insufficient_quota" in detail:
        raise MetricError("The API account has no credit left (429 insufficient_quota).")
    reason = f"HTTP {code}"
    if code == 429 or code >= 500 or code == 408:
        return CallFailedError(reason, pause=_retry_after(error), again=True)
    return CallFailedError(f"{reason}: {detail[:120]}" if detail else reason)


def _message(error: urllib.error.HTTPError) -> str:
    try:
        body = json.loads(error.read(10_000))
        return " ".join(str(body["error"].get(key) or "") for key in ("code", "message")).strip()
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return ""


def _retry_after(error: urllib.error.HTTPError) -> float | None:
    """Seconds that the server asks to wait: a number or a date."""
    stated = error.headers.get("Retry-After")
    if not stated:
        return None
    try:
        return max(0.0, float(stated))
    except ValueError:
        pass
    try:
        return max(0.0, parsedate_to_datetime(stated).timestamp() - time.time())
    except ValueError:
        return None


def _number(extra: Mapping[str, str], name: str, default: float) -> float:
    stated = extra.get(name)
    if stated is None:
        return float(default)
    try:
        value = float(stated)
    except ValueError as error:
        raise MetricError(f"{name}={stated!r} is no number.") from error
    if value < 0:
        raise MetricError(f"{name} must not be negative.")
    return value
