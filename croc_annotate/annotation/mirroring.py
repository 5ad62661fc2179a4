"""The platform's view of our studies, fetched with the key of the environment."""

from __future__ import annotations

from django.conf import settings
from django.utils import timezone

from croc_annotate.annotation.crowd import mirror_state
from croc_annotate.annotation.models import Study
from croc_annotate.annotation.prolific import PlatformClient


class NotConfiguredError(Exception):
    """There is no key for the platform."""


def mirror_studies(*, study_id: str | None = None) -> tuple[int, int, int]:
    """Note the states of all submissions: (studies, submissions read, states that were news).

    Raises `NotConfiguredError`, `PlatformError`. What was noted before an error stays noted.
    """
    if not settings.PROLIFIC_API_TOKEN:
        raise NotConfiguredError("Set PROLIFIC_API_TOKEN to the platform's API key.")
    client = PlatformClient(url=settings.PROLIFIC_API_URL, token=settings.PROLIFIC_API_TOKEN)
    studies = Study.objects.filter(active=True)
    if study_id is not None:
        studies = studies.filter(study_id=study_id)
    read = news = 0
    for study in studies:
        for row in client.submissions(study.study_id):
            read += 1
            news += mirror_state(session_id=row.session_id, state=row.state, now=timezone.now())
    return len(studies), read, news
