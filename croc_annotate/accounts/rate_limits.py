"""Rate limits: enough for people, too slow for guessing and for emptying the site.

Four classes of requests, each with a limit of its own (settings ``RATE_LIMIT_…``):

- *sign-in*: attempts to sign in or to open an invitation, by network address;
- *visitors*: all other requests without a session or token, by network address;
- *people*: requests of a signed-in person, by person: many may sit behind one address;
- *tokens*: requests to the API with a valid token, by token: so may a laboratory's scripts. A token
  that is not valid counts as a visitor's: made-up ones must not each have a limit of their own.

Counts live in the cache, in windows of a minute. Without Redis each process counts for itself.
A cache that is down lets everybody through: a limit must never be what stops a study.
"""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING, NamedTuple

from django.conf import settings
from django.core.cache import cache
from django.http import HttpResponse, JsonResponse
from django.template.loader import render_to_string
from redis.exceptions import RedisError

from croc_annotate.accounts.tokens import token_of
from croc_annotate.accounts.visitors import visitor
from croc_annotate.lib.addresses import client_network
from croc_annotate.lib.hashing import sha256_text
from croc_annotate.lib.problems import CONTENT_TYPE, problem

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.http import HttpRequest

    from croc_annotate.accounts.models import ApiToken

WINDOW = 60
# What monitors ask every few seconds must answer whatever else goes on.
EXEMPT = ("/healthz", "/readyz", "/metrics", "/static/")
SIGN_IN = ("/accounts/login/", "/join/", "/django-admin/login/")


class Bucket(NamedTuple):
    """Who is counted, and how many requests a minute are theirs."""

    name: str
    key: str
    limit: int


def bucket_of(request: HttpRequest) -> Bucket | None:
    """The bucket that a request is counted in; None when it is not counted (limit 0)."""
    if request.path.startswith(EXEMPT):
        return None
    if request.path.startswith(SIGN_IN) and request.method == "POST":
        found = Bucket("sign-in", client_network(request), settings.RATE_LIMIT_SIGN_IN)
    elif (token := _api_token(request)) is not None:
        found = Bucket("tokens", str(token.pk), settings.RATE_LIMIT_TOKENS)
    elif (who := visitor(request)) is not None:
        # Not ``request.user``: that would read the person's row for the sake of counting.
        found = Bucket("people", str(who.pk), settings.RATE_LIMIT_PEOPLE)
    else:
        found = Bucket("visitors", client_network(request), settings.RATE_LIMIT_VISITORS)
    return found if found.limit else None


def _api_token(request: HttpRequest) -> ApiToken | None:
    """The valid token of a request to the API; pages know no tokens."""
    return token_of(request) if request.path.startswith("/api/") else None


def count(bucket: Bucket, *, now: float) -> int:
    """Count one request; how many there were in this window, 0 when nobody can tell."""
    window = int(now // WINDOW)
    # Addresses are personal data: the cache holds a hash that is gone after two minutes.
    who = sha256_text(f"{settings.SECRET_KEY}:{window}:{bucket.key}")[:32]
    key = f"rate:{bucket.name}:{who}"
    with contextlib.suppress(RedisError):
        try:
            return int(cache.incr(key))
        except ValueError:  # the first of its window
            return 1 if cache.add(key, 1, 2 * WINDOW) else int(cache.incr(key))
    return 0


class RateLimitMiddleware:
    """Answer 429 with ``Retry-After`` to whoever asks more than their share."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Count the request, then answer or refuse it."""
        bucket, now = bucket_of(request), time.time()
        if bucket is None or count(bucket, now=now) <= bucket.limit:
            return self.get_response(request)
        return _refusal(request, bucket, seconds=max(1, int(WINDOW - now % WINDOW)))


def _refusal(request: HttpRequest, bucket: Bucket, *, seconds: int) -> HttpResponse:
    response: HttpResponse
    if request.path.startswith("/api/"):
        text = f"More than {bucket.limit} requests in a minute; ask again in {seconds} s."
        body = problem(status=429, code="too_many_requests", detail=text)
        response = JsonResponse(body, status=429, content_type=CONTENT_TYPE)
    else:
        page = render_to_string("too_many_requests.html", {"seconds": seconds}, request)
        response = HttpResponse(page, status=429)
    response["Retry-After"] = str(seconds)
    response["Cache-Control"] = "no-store"
    return response
