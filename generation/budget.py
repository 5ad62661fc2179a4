"""The spending cap of a paid source, over all workers together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from croc_annotate.candidates.attempts import times_held
from croc_annotate.candidates.models import Generator
from generation.pipeline import OutOfBudget

if TYPE_CHECKING:
    from generation.render_settings import RenderSettings


def check_budget(generator: Generator, settings: RenderSettings) -> None:
    """Switch a generator off and raise OutOfBudget when its claimed images would exceed its cap.

    Counts what may have been billed: every time that a worker held a candidate and did not
    give it back unasked for. So images, failures (one may be billed and then found blank) and
    those before they were asked for again, what a worker died with, and what any worker holds
    now, the asking one included.
    """
    if not settings.max_spend:
        return
    spent = times_held(generator=generator) * settings.price_per_image
    if spent > settings.max_spend + 1e-9:
        Generator.objects.filter(pk=generator.pk).update(active=False)
        raise OutOfBudget(
            f"{generator.slug}: the next images would bring spending to {spent:.2f}, above its "
            f"max_spend of {settings.max_spend:.2f}. The generator is switched off; raise "
            "max_spend and switch it on again to go on."
        )
