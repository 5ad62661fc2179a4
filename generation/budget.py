"""The spending cap of a paid source, over all workers together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db.models import Q
from django.utils import timezone

from croc_annotate.candidates.models import Candidate, CandidateState, Generator
from generation.pipeline import OutOfBudget

if TYPE_CHECKING:
    from generation.render_settings import RenderSettings


def check_budget(generator: Generator, settings: RenderSettings) -> None:
    """Switch a generator off and raise OutOfBudget when its claimed images would exceed its cap.

    Counts what is paid or under way: images made by a pipeline, failures (an image may have
    been billed and then found blank), and everything that any worker holds now.
    """
    if not settings.max_spend:
        return
    rows = Candidate.objects.filter(generator=generator)
    made = Q(state=CandidateState.RENDERED, provenance__has_key="worker")
    held = Q(state=CandidateState.REQUESTED, claimed_until__gte=timezone.now())
    count = rows.filter(made | held | Q(state=CandidateState.FAILED)).count()
    spent = count * settings.price_per_image
    if spent > settings.max_spend + 1e-9:
        Generator.objects.filter(pk=generator.pk).update(active=False)
        raise OutOfBudget(
            f"{generator.slug}: the next images would bring spending to {spent:.2f}, above its "
            f"max_spend of {settings.max_spend:.2f}. The generator is switched off; raise "
            "max_spend and switch it on again to go on."
        )
