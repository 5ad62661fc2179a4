"""The rows of this room in Django's own admin: to look at; acts go through the campaign pages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import admin

from croc_annotate.annotation.models import (
    Assignment,
    Campaign,
    Consent,
    ConsentText,
    Flag,
    Guideline,
    Invitation,
    Item,
    Judgement,
    Participation,
    Qualification,
    Study,
    Submission,
)

if TYPE_CHECKING:
    from django.db.models import Model
    from django.http import HttpRequest


class ReadOnly(admin.ModelAdmin[Any]):
    """Counters and history are kept by services: a hand that writes here would make them lie."""

    show_full_result_count = False

    def has_add_permission(self, _request: HttpRequest) -> bool:
        """Nobody."""
        return False

    def has_change_permission(self, _request: HttpRequest, _row: Model | None = None) -> bool:
        """Nobody."""
        return False

    def has_delete_permission(self, _request: HttpRequest, _row: Model | None = None) -> bool:
        """Nobody."""
        return False


@admin.register(Campaign)
class CampaignAdmin(ReadOnly):
    """Campaigns."""

    list_display = ["slug", "title", "state", "mode", "redundancy", "min_judgements"]
    list_filter = ["state", "mode"]


@admin.register(Item)
class ItemAdmin(ReadOnly):
    """Items with their counters."""

    list_display = ["id", "campaign", "text_role", "purpose", "needed", "leased", "closed_at"]
    list_filter = ["campaign", "purpose"]
    raw_id_fields = ["candidate", "pair"]


@admin.register(Judgement)
class JudgementAdmin(ReadOnly):
    """Answers and their history."""

    list_display = ["id", "campaign", "verdict", "purpose", "surplus", "set_aside_at", "created_at"]
    list_filter = ["campaign", "verdict", "purpose", "surplus"]


@admin.register(Assignment)
class AssignmentAdmin(ReadOnly):
    """Leases and skips."""

    list_display = ["id", "campaign", "state", "skip_reason", "created_at", "expires_at"]
    list_filter = ["campaign", "state", "skip_reason"]


@admin.register(Participation)
class ParticipationAdmin(ReadOnly):
    """How far people are."""

    list_display = ["id", "campaign", "annotator", "answered", "gold_seen", "gold_correct"]
    list_filter = ["campaign"]


@admin.register(Flag)
class FlagAdmin(ReadOnly):
    """Problems that people reported."""

    list_display = ["id", "item", "kind", "remark", "created_at", "resolved_at"]
    list_filter = ["kind"]


@admin.register(Submission)
class SubmissionAdmin(ReadOnly):
    """Submissions: our outcome beside the platform's state."""

    list_display = ["id", "study", "outcome", "platform_state", "started_at"]
    list_filter = ["study", "outcome", "platform_state"]


for model in (Consent, ConsentText, Guideline, Invitation, Qualification, Study):
    admin.site.register(model, ReadOnly)
