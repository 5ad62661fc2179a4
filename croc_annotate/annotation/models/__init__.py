"""Campaigns, what is judged in them, leases, judgements, and how far people are."""

from __future__ import annotations

from croc_annotate.annotation.models.campaigns import Campaign, ConsentText, Guideline
from croc_annotate.annotation.models.choices import (
    AssignmentState,
    CampaignState,
    FlagKind,
    Mode,
    Purpose,
    Redundancy,
    RuleName,
    TextRole,
    Verdict,
)
from croc_annotate.annotation.models.items import WAITING, Assignment, Flag, Item, Judgement
from croc_annotate.annotation.models.people import (
    Consent,
    Invitation,
    Participation,
    Qualification,
)
from croc_annotate.annotation.models.studies import Outcome, Study, Submission

__all__ = [
    "WAITING",
    "Assignment",
    "AssignmentState",
    "Campaign",
    "CampaignState",
    "Consent",
    "ConsentText",
    "Flag",
    "FlagKind",
    "Guideline",
    "Invitation",
    "Item",
    "Judgement",
    "Mode",
    "Outcome",
    "Participation",
    "Purpose",
    "Qualification",
    "Redundancy",
    "RuleName",
    "Study",
    "Submission",
    "TextRole",
    "Verdict",
]
