"""The list of campaigns, for scripts and other clients."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from django.db.models import Count, Q
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.generics import ListAPIView

from croc_annotate.accounts.access import person
from croc_annotate.annotation.models import Campaign, Mode, Purpose
from croc_annotate.annotation.selectors import campaigns_for

if TYPE_CHECKING:
    from django.db.models import QuerySet
    from rest_framework.request import Request
    from rest_framework.response import Response


class CampaignSerializer(serializers.ModelSerializer[Campaign]):
    """A campaign in the list."""

    mode = serializers.ChoiceField(Mode.values)
    items_total = serializers.IntegerField()
    items_complete = serializers.IntegerField(help_text="Items that need no more judgements.")

    class Meta:
        model = Campaign
        fields: ClassVar[list[str]] = [
            "slug", "title", "state", "mode", "rule", "min_judgements", "max_judgements",
            "is_simulated", "created_at", "items_total", "items_complete",
        ]  # fmt: skip


class CampaignList(ListAPIView[Campaign]):
    """The campaigns that the caller works with, newest first."""

    serializer_class = CampaignSerializer

    def get_queryset(self) -> QuerySet[Campaign]:
        """All for reviewers; for others those that they take part in or may join."""
        user, rows = person(self.request), Campaign.objects.all()
        if not user.may_review:
            rows = rows.filter(pk__in=[campaign.pk for campaign, _ in campaigns_for(user)])
        work = Q(items__purpose=Purpose.WORK)
        return rows.annotate(
            items_total=Count("items", filter=work),
            items_complete=Count("items", filter=work & Q(items__closed_at__isnull=False)),
        ).order_by("-id")

    @extend_schema(operation_id="campaigns")
    def get(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """All for reviewers and admins; for others those that they may judge in."""
        return super().get(request, *args, **kwargs)
