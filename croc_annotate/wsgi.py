"""WSGI entry point for gunicorn."""

from __future__ import annotations

import os

from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "croc_annotate.settings")

application = get_wsgi_application()

# After Django's set-up: needs the models.
from croc_annotate.operations.startup import warn_of_sqlite  # noqa: E402

warn_of_sqlite()
