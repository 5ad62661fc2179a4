"""Send an image to somebody who may see it: by the web server, by S3, or by ourselves.

Whoever calls has decided that the person may see the file. Nothing in the answer (address,
headers, bytes) tells generator or side: even the ETag is the random storage key, because
the hash of the original could be looked up in a published release.
"""

from __future__ import annotations

import logging
from pathlib import PurePosixPath
from typing import TYPE_CHECKING
from urllib.parse import quote, urlsplit

from django.conf import settings
from django.core.files.storage import FileSystemStorage, default_storage
from django.http import Http404, HttpResponse, HttpResponseRedirect
from django.utils.cache import get_conditional_response

from croc_annotate.candidates.storage import read_file
from croc_annotate.lib.imagefiles import MIME_TYPES

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponseBase

logger = logging.getLogger(__name__)

_CACHE_SECONDS = 86_400


def image_response(request: HttpRequest, *, name: str) -> HttpResponseBase:
    """The file under a storage name; raises Http404 when it is not there."""
    if not settings.X_ACCEL_PREFIX and not isinstance(default_storage, FileSystemStorage):
        return _signed(name)
    etag = f'"{PurePosixPath(name).stem}"'
    unchanged = get_conditional_response(request, etag=etag)
    response = unchanged or (_accelerated(name) if settings.X_ACCEL_PREFIX else _ourselves(name))
    response["ETag"] = etag
    # Private: a shared cache must not hand out what needs a log-in.
    response["Cache-Control"] = f"private, max-age={_CACHE_SECONDS}"
    return response


def _signed(name: str) -> HttpResponseBase:
    """To S3 by an address signed now; its answer may be reused for part of its life only."""
    response = HttpResponseRedirect(default_storage.url(name))
    expire = int(getattr(default_storage, "querystring_expire", 900))
    response["Cache-Control"] = f"private, max-age={min(300, expire // 3)}"
    return response


def _accelerated(name: str) -> HttpResponseBase:
    response = HttpResponse(content_type=_mime(name))
    response["X-Accel-Redirect"] = settings.X_ACCEL_PREFIX.rstrip("/") + "/" + _behind(name)
    return response


def _behind(name: str) -> str:
    """Where nginx finds the file: on its disk, or in a store that browsers need not reach."""
    if isinstance(default_storage, FileSystemStorage):
        return quote(name)
    signed = urlsplit(default_storage.url(name))
    return f"{signed.path.lstrip('/')}?{signed.query}"


def _ourselves(name: str) -> HttpResponseBase:
    try:
        return HttpResponse(read_file(name), content_type=_mime(name))
    except FileNotFoundError as error:
        logger.error("The stored file %s is missing; see manage.py check_images", name)  # noqa: TRY400 - no traceback needed
        raise Http404("The image file is missing.") from error


def _mime(name: str) -> str:
    return MIME_TYPES.get(PurePosixPath(name).suffix, "application/octet-stream")
