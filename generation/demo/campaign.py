"""The demo's campaign: what is judged, by which rules, with gold and practice items."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import transaction

from croc_annotate.annotation.models import Campaign, CampaignState, Purpose
from croc_annotate.annotation.services import (
    create_campaign,
    make_known_item,
    open_items,
    publish_consent_text,
    publish_guideline,
    set_campaign_state,
)
from croc_annotate.candidates.models import Candidate, Generator
from generation.demo import texts
from generation.pipelines.scenes import LABEL, LICENCE, SLUG

if TYPE_CHECKING:
    from datetime import datetime

    from croc_annotate.accounts.models import User

BANK = "demo-scenes"
CAMPAIGN = "demo"
TITLE = "Demo: drawn scenes"
# Two hands that draw the same sentences, one of them more often wrong; and a third whose
# drawings have a known truth that gold and practice items use.
GENERATORS = {
    SLUG: (LABEL, 0.3),
    "scenes_loose": ("Scenes, loose hand (drawn, not generated)", 0.4),
}
KNOWN = "scenes_known"
KNOWN_LABEL = "Scenes with known answers (drawn, not generated)"
SEEDS = "1-2"
KNOWN_SEEDS = "1-2"
KNOWN_PAIRS = (
    "action_scene4", "body_parts_scene3", "counting_scene1", "negation_scene2", "shapes_scene2",
    "size_relation_scene1", "spatial_relation_scene1", "things_parts_scene1",
)  # fmt: skip
GOLD_ITEMS = 20
PRACTICE_ITEMS = 3


def make_generators() -> None:
    """The rows of the demo's generators."""
    for slug, (label, error_rate) in {**GENERATORS, KNOWN: (KNOWN_LABEL, 0.5)}.items():
        Generator.objects.get_or_create(
            slug=slug,
            defaults={
                "label": label,
                "pipeline": "scenes",
                "licence": LICENCE,
                "is_drawn": True,
                "settings": {"error_rate": error_rate},
                # Named by the demo alone; a `generate` without names must not draw gold.
                "active": True,
            },
        )


@transaction.atomic
def make_campaign(*, actor: User, since: datetime) -> Campaign:
    """The campaign, open, with all its items; a second call changes nothing."""
    found = Campaign.objects.filter(slug=CAMPAIGN).first()
    if found is not None:
        return found
    campaign = create_campaign(
        slug=CAMPAIGN,
        title=TITLE,
        actor=actor,
        banks=[BANK],
        generators=list(GENERATORS),
        is_simulated=True,
        # An image needs a held-out vote on both its texts to count in the human row.
        reference_rate=0.7,
        cross_rate=0.7,
        min_distance=12,
        gold_rate=0.15,
        gold_minimum=8,
        gold_threshold=0.55,
        practice_items=PRACTICE_ITEMS,
        guideline=publish_guideline(
            version=texts.GUIDELINE_VERSION, body=texts.GUIDELINE, title="Judging drawn scenes"
        ),
        consent_text=publish_consent_text(version=texts.CONSENT_VERSION, body=texts.CONSENT),
    )
    open_items(campaign=campaign, now=since)
    _make_known_items(campaign, since)
    return set_campaign_state(campaign=campaign, state=CampaignState.OPEN, actor=actor)


def _make_known_items(campaign: Campaign, now: datetime) -> None:
    """Gold from the first of the known drawings, practice from the others."""
    known = Candidate.objects.rendered().filter(generator__slug=KNOWN).select_related("pair")
    for index, candidate in enumerate(known.order_by("seed", "pair__slug", "side")):
        truth = bool(candidate.provenance["image"]["truth"])
        gold = index < GOLD_ITEMS
        make_known_item(
            campaign=campaign,
            candidate=candidate,
            verdict="accept" if truth else "reject",
            purpose=Purpose.GOLD if gold else Purpose.TRAINING,
            explanation="" if gold else texts.PRACTICE[truth],
            now=now,
        )
