"""Sending the archive of a finished export: by the store or nginx where there is one."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote

from django.conf import settings
from django.core.files.storage import FileSystemStorage, default_storage
from django.http import FileResponse, Http404, HttpResponse, HttpResponseRedirect
from django.utils.translation import gettext as _

from croc_annotate.releases.downloads import archive_name

if TYPE_CHECKING:
    from django.http import HttpResponseBase

    from croc_annotate.releases.models import ReleaseExport

TYPE = "application/x-tar"


def archive_response(found: ReleaseExport) -> HttpResponseBase:
    """The archive as a download; raises Http404 when the file is gone from the store."""
    filename = archive_name(found)
    if not isinstance(default_storage, FileSystemStorage):
        return HttpResponseRedirect(default_storage.url(found.file))
    if settings.X_ACCEL_PREFIX:
        response = HttpResponse(content_type=TYPE)
        response["X-Accel-Redirect"] = f"{settings.X_ACCEL_PREFIX.rstrip('/')}/{quote(found.file)}"
        response["Content-Disposition"] = f'attachment; filename="{filename}"'
        return response
    try:
        stream = default_storage.open(found.file)
    except FileNotFoundError as error:
        raise Http404(_("The file is gone; ask for the export again.")) from error
    return FileResponse(stream, as_attachment=True, filename=filename, content_type=TYPE)
