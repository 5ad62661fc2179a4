"""Names and one-sentence explanations of the numbers, in one place for pages and API."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.utils.translation import gettext_lazy as _
from django.utils.translation import gettext_noop

from croc_annotate.annotation.models import Mode, RuleName, TextRole
from croc_annotate.prompts.models import Side

if TYPE_CHECKING:
    from collections.abc import Mapping

    from django.utils.functional import _StrOrPromise as StrOrPromise

# name, short title, what it means
NUMBERS = {
    "raw_agreement": (
        _("Raw agreement"),
        _("How often two people give the same verdict on an image, averaged over images."),
    ),
    "krippendorff_alpha": (
        _("Krippendorff's α"),
        _(
            "Agreement beyond chance: 1 is perfect, 0 is chance; it falls when nearly all images"
            " get the same verdict, so read it beside AC1 and the share of accepts."
        ),
    ),
    "gwet_ac1": (
        _("Gwet's AC1"),
        _(
            "Agreement beyond chance that stays readable when nearly all images get the same"
            " verdict."
        ),
    ),
    "fleiss_kappa": (
        _("Fleiss' κ"),
        _("Agreement beyond chance where every image has equally many votes."),
    ),
    "cohen_kappa": (
        _("Cohen's κ"),
        _("Agreement beyond chance between two people, each with their own share of accepts."),
    ),
    "prevalence_accept": (
        _("Accepts"),
        _("Share of accepts among the votes on images with at least two votes."),
    ),
    "unsure_share": (
        _("Unsure"),
        _("Share of answers that could not tell; they use a place and are no vote."),
    ),
}
COUNTS = {
    "items": (_("Items"), _("Images with a text that have any judgement.")),
    "items_with_two": (_("With two"), _("Items with at least two votes: only these count.")),
    "raters": (_("People"), _("Annotators with a judgement.")),
    "judgements": (_("Judgements"), _("Counted answers, with those that could not tell.")),
}
DIMENSIONS = {
    "category": _("Category"),
    "side": _("Side"),
    "generator": _("Generator"),
    "week": _("Week"),
    "guideline_version": _("Guideline version"),
    "mode": _("Mode"),
    "text_role": _("Text"),
}
# Parts that are named in the data by a word of ours.
_PARTS: dict[str, dict[str, StrOrPromise]] = {
    "side": dict(Side.choices),
    "mode": dict(Mode.choices),
    "text_role": dict(TextRole.choices),
    "guideline_version": {"none": _("none")},
}


def part_label(dimension: str, name: str) -> str:
    """A part of a table as a reader calls it: the data names some in English."""
    return str(_PARTS.get(dimension, {}).get(name, name))


def rule_label(row: Mapping[str, Any]) -> str:
    """A rule in a few words, from its parameters."""
    label = str(RuleName(row["rule"]).label)
    return f"{label} ≥ {row['threshold']:g}" if row["rule"] == RuleName.POSTERIOR else label


PEOPLE = {
    "judgements": _("Counted judgements in this campaign."),
    "share": _("Share of accepts, and in brackets what others gave the same items."),
    "gold": _("Share of right answers on items whose truth is known, with its interval."),
    "others": _("How often the vote equals the majority of the others on the same item."),
    "sensitivity": _("Estimated share of matching images that this person accepts."),
    "specificity": _("Estimated share of images without a match that this person rejects."),
    "pace": _("Median visible, active time for one answer."),
    "run": _("Longest run of equal answers."),
    "trend": _("Agreement with the others in ten equal parts of the person's work, first to last."),
}

# Why a number is undefined, as the arithmetic says it, which knows no languages: pages translate.
REASONS = (
    gettext_noop("no item has two votes"),
    gettext_noop("all votes are equal, so chance agreement cannot be told from real agreement"),
    gettext_noop("items have different numbers of votes"),
    gettext_noop("needs exactly two raters"),
    gettext_noop("the model needs at least three annotators"),
    gettext_noop("no judgement"),
    gettext_noop("no vote"),
    gettext_noop("no gold item answered"),
    gettext_noop("no accepted item"),
    gettext_noop("no accepted item with a posterior"),
    gettext_noop("fewer than five gold votes of a kind"),
    gettext_noop("an interval needs at least two contrast pairs"),
    gettext_noop("nothing is decided yet"),
    gettext_noop("nobody else has a majority on the same items"),
    gettext_noop("no answer with a measured time"),
    gettext_noop("not asked for"),
)
