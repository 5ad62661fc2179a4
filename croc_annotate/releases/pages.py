"""What the release pages show, as plain values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.utils.translation import gettext_noop

from croc_annotate.candidates.models import Candidate
from croc_annotate.lib.hashing import stable_unit
from croc_annotate.lib.reasons import reason_text
from croc_annotate.prompts.models import Category
from croc_annotate.prompts.selectors import category_titles
from croc_annotate.releases.models import MemberReason, Release
from croc_annotate.releases.reasons import REASONS
from croc_annotate.releases.selectors import in_order, verified

if TYPE_CHECKING:
    from croc_annotate.accounts.models import User
    from croc_annotate.releases.models import ReleaseQuerySet

WALL = 24
MEASURES = (
    ("raw_agreement", gettext_noop("Raw agreement")),
    ("krippendorff_alpha", gettext_noop("Krippendorff’s α")),
    ("gwet_ac1", gettext_noop("Gwet’s AC1")),
)


def visible_releases(user: User | None) -> ReleaseQuerySet:
    """The releases that a person may see: all for reviewers, the public ones for others."""
    releases = Release.objects.newest_first()
    return releases if user is not None and user.may_review else releases.public()


def reason_rows(release: Release) -> list[dict[str, Any]]:
    """The counts by reason with their share of all candidates."""
    total = sum(release.counts.values()) or 1
    return [
        {
            "reason": reason,
            "label": MemberReason(reason).label,
            "n": number,
            "share": number / total,
        }
        for reason, number in in_order(release.counts, REASONS).items()
    ]


def category_rows(release: Release) -> list[dict[str, Any]]:
    """Verified images and candidates of each category."""
    labels = dict(category_titles())
    order = list(Category.objects.order_by("position").values_list("slug", flat=True))
    found = in_order(release.manifest.get("by_category", {}), order)
    return [
        {
            "slug": slug,
            "label": labels.get(slug, slug),
            "verified": counts.get("verified", 0),
            "candidates": sum(counts.values()),
            "share": counts.get("verified", 0) / (sum(counts.values()) or 1),
        }
        for slug, counts in found.items()
    ]


def agreement_rows(release: Release) -> list[dict[str, Any]]:
    """The headline coefficients with intervals, or the words for what is undefined."""
    found = release.agreement.get("all") or {}
    rows = []
    for name, label in MEASURES:
        interval = (found.get("intervals") or {}).get(name) or {}
        rows.append(
            {
                "label": label,
                "value": found.get(name),
                "low": interval.get("low"),
                "high": interval.get("high"),
                "reason": reason_text((found.get("undefined") or {}).get(name, "")),
            }
        )
    return rows if found else []


def agreement_chart(release: Release) -> dict[str, Any] | None:
    """Raw agreement and α by category for the interval plot."""
    by = (release.agreement.get("by") or {}).get("category") or {}
    order = category_titles()
    rows = []
    for slug, label in order:
        for name, series in (
            ("raw_agreement", "raw"),
            ("krippendorff_alpha", "α"),
            ("gwet_ac1", "AC1"),
        ):
            found = by.get(slug)
            if found is not None:
                interval = (found.get("intervals") or {}).get(name) or {}
                rows.append(
                    {
                        "label": label, "series": series, "value": found.get(name),
                        "low": interval.get("low"), "high": interval.get("high"),
                        "n": found.get("items_with_two"),
                        "note": (found.get("undefined") or {}).get(name),
                    }
                )  # fmt: skip
    if not rows:
        return None
    return {
        "x_label": "Agreement",
        "domain": [-1, 1],
        "reference": 0,
        "format": ".2f",
        "rows": rows,
    }


def sample_wall(release: Release, number: int = WALL) -> list[Candidate]:
    """A few verified images, the same ones at each visit, spread over the release."""
    keys = list(verified(release).values_list("candidate_id", flat=True))
    chosen = sorted(range(len(keys)), key=lambda place: stable_unit(release.sha256, place))[:number]
    rows = Candidate.objects.select_related("pair", "generator").in_bulk(
        [keys[place] for place in sorted(chosen)]
    )
    return [rows[keys[place]] for place in sorted(chosen)]


def images_of(keys: list[int], number: int = WALL) -> list[Candidate]:
    """The first images of a list, in its order."""
    rows = Candidate.objects.select_related("pair", "generator").in_bulk(keys[:number])
    return [rows[key] for key in keys[:number]]
