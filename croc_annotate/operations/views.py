"""Health and monitoring, for load balancers and Prometheus."""

from __future__ import annotations

import hmac
from typing import TYPE_CHECKING

from django.conf import settings
from django.http import HttpResponse, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from croc_annotate.operations.health import ERROR, NEEDED, examine
from croc_annotate.operations.monitoring import exposition

if TYPE_CHECKING:
    from django.http import HttpRequest


@require_safe
@never_cache
def healthz(request: HttpRequest) -> HttpResponse:
    """This process answers (nothing else is asked: a restart would not mend the database)."""
    return HttpResponse("ok\n", content_type="text/plain")


@require_safe
@never_cache
def readyz(request: HttpRequest) -> HttpResponse:
    """Database, migrations, broker and storage are there: send traffic here."""
    findings = examine(checks=NEEDED)
    bad = [finding for finding in findings if finding.level == ERROR]
    # Names only: what is wrong in detail is for `doctor`, not for strangers.
    body = {"ready": not bad, "checks": {finding.name: finding.level for finding in findings}}
    return JsonResponse(body, status=503 if bad else 200)


@require_safe
@never_cache
def metrics(request: HttpRequest) -> HttpResponse:
    """Prometheus metrics, for whoever holds METRICS_TOKEN."""
    given = request.headers.get("Authorization", "")
    wanted = f"Bearer {settings.METRICS_TOKEN}"
    if not settings.METRICS_TOKEN or not hmac.compare_digest(given.encode(), wanted.encode()):
        return HttpResponse(
            "Set METRICS_TOKEN and send it as a bearer token.\n",
            status=401,
            content_type="text/plain",
            headers={"WWW-Authenticate": "Bearer"},
        )
    return HttpResponse(exposition(), content_type="text/plain; version=0.0.4; charset=utf-8")
