"""Releases that are asked for on the page: frozen in the background, once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.core.cache import cache
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from croc_annotate.accounts.services import record_audit
from croc_annotate.releases.models import UNDER_WAY, JobState, ReleaseFreeze
from croc_annotate.releases.services import (
    STEPS,
    ReleaseRefusedError,
    check_wishes,
    freeze_release,
    next_version,
    one_snapshot,
)

if TYPE_CHECKING:
    from croc_annotate.accounts.models import User
    from croc_annotate.annotation.models import Campaign

_SHOWN_SECONDS = 600


def request_freeze(
    *, name: str, campaign: Campaign, version: str = "", actor: User | None = None, **wishes: Any
) -> ReleaseFreeze:
    """Ask for a release; ``wishes`` are those of ``freeze_release``.

    The same wish again answers with the one that is under way. What can be refused at once is:
    raises ReleaseRefusedError.
    """
    from croc_annotate.releases.tasks import freeze

    version = version or next_version(name)
    check_wishes(name=name, version=version, campaign=campaign, **wishes)
    options = {"campaign": campaign.slug, **wishes}
    with transaction.atomic():
        asked, created = ReleaseFreeze.objects.filter(state__in=UNDER_WAY).get_or_create(
            name=name,
            version=version,
            defaults={
                "campaign": campaign, "options": options, "requested_by": actor,
                "created_at": timezone.now(),
            },
        )  # fmt: skip
        if created:
            record_audit(
                actor=actor, action="release.freeze_asked", subject_type="campaign",
                subject_id=campaign.pk, details={"name": name, "version": version},
            )  # fmt: skip
        elif asked.options != options:
            raise ReleaseRefusedError(
                _(
                    "%(release)s is being frozen with other settings;"
                    " wait for it, or take another version"
                )
                % {"release": asked}
            )
    # Also for one that is under way: its message may have been lost with a worker.
    transaction.on_commit(lambda: freeze.delay(asked.pk))
    return asked


def run_freeze(*, freeze_id: int) -> bool:
    """Freeze one release; False when another worker is at it or it is settled.

    Safe to run twice: the release and the end of the wish are one transaction, in which the
    wish's row is locked. A worker that is killed leaves neither.
    """
    waiting = ReleaseFreeze.objects.filter(pk=freeze_id, state=JobState.WAITING)
    waiting.update(state=JobState.RUNNING)
    try:
        with one_snapshot():
            return _freeze(freeze_id)
    except ReleaseRefusedError as error:
        _fail(freeze_id, str(error))
    except Exception:
        _fail(freeze_id, "an unexpected error; the log of the worker has the details")
        raise
    return True


def steps_done(asked: ReleaseFreeze) -> int:
    """How many of ``STEPS`` are behind it."""
    return int(cache.get(_key(asked.pk)) or 0)


def _freeze(freeze_id: int) -> bool:
    running = ReleaseFreeze.objects.select_for_update(skip_locked=True, of=("self",))
    asked = running.select_related("campaign", "requested_by").filter(
        pk=freeze_id, state=JobState.RUNNING
    ).first()  # fmt: skip
    if asked is None:
        return False

    def step(name: str) -> None:
        # Not in the database: from inside the transaction nobody would see it.
        cache.set(_key(freeze_id), STEPS.index(name), _SHOWN_SECONDS)

    wishes = {name: value for name, value in asked.options.items() if name != "campaign"}
    try:
        release = freeze_release(
            name=asked.name, version=asked.version, campaign=asked.campaign,
            actor=asked.requested_by, step=step, **wishes,
        )  # fmt: skip
    finally:
        # Only by the one that froze: a second worker must not wipe the first one's progress.
        cache.delete(_key(freeze_id))
    asked.state, asked.release, asked.finished_at = JobState.DONE, release, timezone.now()
    asked.save(update_fields=["state", "release", "finished_at"])
    return True


def _fail(freeze_id: int, reason: str) -> None:
    ReleaseFreeze.objects.filter(pk=freeze_id, state=JobState.RUNNING).update(
        state=JobState.FAILED, error=reason[:2_000], finished_at=timezone.now()
    )


def _key(freeze_id: int) -> str:
    return f"release-freeze-{freeze_id}"
