"""The Celery application: queue ``web`` for the web machines, ``gpu`` for the GPU workers."""

from __future__ import annotations

import os

from celery import Celery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "croc_annotate.settings")

app = Celery("croc_annotate")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
