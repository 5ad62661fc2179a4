"""The agreement API: the numbers of the pages, for scripts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.http import Http404
from django.shortcuts import get_object_or_404
from django.utils.translation import gettext as _
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework.exceptions import PermissionDenied, ValidationError
from rest_framework.response import Response
from rest_framework.views import APIView

from croc_annotate.accounts.access import IsAdmin, IsReviewer, person
from croc_annotate.agreement import reviewing
from croc_annotate.agreement.effects import Period, effect
from croc_annotate.agreement.history import hidden_among, without_hidden
from croc_annotate.agreement.review_queue import revealed
from croc_annotate.agreement.serializers import (
    ConsensusPartSerializer,
    ConsensusQuerySerializer,
    ConsensusSerializer,
    DecidedSerializer,
    DecisionSerializer,
    EffectQuerySerializer,
    ReportQuerySerializer,
    SnapshotSerializer,
)
from croc_annotate.agreement.snapshots import StatisticsPendingError, current_statistics
from croc_annotate.agreement.waiting import RETRY_SECONDS
from croc_annotate.agreement.wall import by_votes, part_of, wall_rows
from croc_annotate.annotation.models import Campaign, Item, Purpose

if TYPE_CHECKING:
    from rest_framework.request import Request

    from croc_annotate.agreement.models import StatisticsSnapshot


_PART = 100


def _campaign(slug: str) -> Campaign:
    return get_object_or_404(Campaign, slug=slug)


def _snapshot(found: StatisticsSnapshot, data: Any = None) -> Response:
    body = {
        "campaign": found.campaign.slug,
        "as_of": found.as_of,
        "seconds": found.seconds,
        "statistics": found.data if data is None else data,
    }
    return Response(SnapshotSerializer(body).data)


class _SnapshotView(APIView):
    """Answers from snapshots; 503 with Retry-After while the first one is being computed."""

    def handle_exception(self, exc: Exception) -> Response:
        """503 rather than 202: clients that know Retry-After ask again by themselves."""
        if isinstance(exc, StatisticsPendingError):
            body = {"detail": str(exc)}
            return Response(body, status=503, headers={"Retry-After": str(RETRY_SECONDS)})
        return super().handle_exception(exc)


class _StatisticsView(_SnapshotView):
    """The newest snapshot of one kind."""

    permission_classes = [IsReviewer]
    kind = ""

    @extend_schema(responses=SnapshotSerializer)
    def get(self, request: Request, slug: str) -> Response:
        """The numbers with the time that they hold for."""
        return _snapshot(current_statistics(campaign=_campaign(slug), kind=self.kind))


class OverviewView(_StatisticsView):
    """Where the campaign stands."""

    kind = "overview"


class RulesView(_StatisticsView):
    """What each rule would verify, with estimated label errors."""

    kind = "rules"


class PairsView(_StatisticsView):
    """Agreement of every two annotators, under pseudonyms."""

    kind = "pairs"


class AnnotatorsView(_StatisticsView):
    """Everybody's work, those to talk to first at the top."""

    permission_classes = [IsAdmin]
    kind = "annotators"


class AgreementView(_SnapshotView):
    """The agreement report, as `manage.py agreement --json` gives it."""

    permission_classes = [IsReviewer]

    @extend_schema(parameters=[ReportQuerySerializer], responses=SnapshotSerializer)
    def get(self, request: Request, slug: str) -> Response:
        """The whole, and the parts that `by` names (all of the snapshot without it)."""
        query = ReportQuerySerializer(data=request.query_params)
        query.is_valid(raise_exception=True)
        found = current_statistics(campaign=_campaign(slug), kind="report")
        wanted = query.validated_data["by"]
        if not wanted:
            return _snapshot(found)
        missing = [name for name in wanted if name not in found.data["by"]]
        if missing:
            raise ValidationError({"by": f"{missing[0]} is at its own address: …/pairs/"})
        by = {name: found.data["by"][name] for name in wanted}
        return _snapshot(found, {**found.data, "by": by})


class AnnotatorView(_SnapshotView):
    """One person's work."""

    permission_classes = [IsAdmin]

    @extend_schema(responses=SnapshotSerializer, operation_id="campaign_annotator")
    def get(self, request: Request, slug: str, pk: int) -> Response:
        """The person's row of the annotators table."""
        found = current_statistics(campaign=_campaign(slug), kind="annotators")
        for row in found.data["rows"]:
            if row["id"] == pk:
                return _snapshot(found, row)
        raise Http404("not an annotator of this campaign")


class EffectView(APIView):
    """What setting a person's judgements aside, or reinstating them, would change."""

    permission_classes = [IsAdmin]

    @extend_schema(parameters=[EffectQuerySerializer], responses=OpenApiTypes.OBJECT)
    def get(self, request: Request, slug: str, pk: int) -> Response:
        """Counts, states and agreement before and after; nothing is done."""
        query = EffectQuerySerializer(data=request.query_params)
        query.is_valid(raise_exception=True)
        values = query.validated_data
        found = effect(
            campaign=_campaign(slug),
            annotator_id=pk,
            period=Period(values["since"], values["until"]),
            reinstate=values["act"] == "reinstate",
        )
        return Response(found)


class ConsensusView(_SnapshotView):
    """Items with their states, 100 at a time."""

    permission_classes = [IsReviewer]

    @extend_schema(parameters=[ConsensusQuerySerializer], responses=ConsensusPartSerializer)
    def get(self, request: Request, slug: str) -> Response:
        """The items that fit the filters, and where the next part begins.

        Review is blind: the votes on an item that waits for review are null and `hidden` is
        true, until the reader has decided it or lifted its blind on the review page. Admins may
        ask for them with `reveal`, which is recorded as there. A filter by posterior leaves
        hidden items out.
        """
        campaign, reader = _campaign(slug), person(request)
        query = ConsensusQuerySerializer(data=request.query_params)
        query.is_valid(raise_exception=True)
        wanted = query.validated_data
        if wanted["reveal"] and not reader.may_administer:
            raise PermissionDenied(_("Only admins may lift the blind of many items."))
        # States must not be older than the statistics allow.
        current_statistics(campaign=campaign, kind="overview")
        rows = wall_rows(campaign, wanted)
        if by_votes(wanted) and not wanted["reveal"]:
            rows = without_hidden(rows, reader, campaign)
        found, more = part_of(rows, after=wanted["after"], size=_PART)
        hidden = hidden_among(found, reader, campaign)
        if wanted["reveal"]:
            reviewing.reveal_many(items=hidden, campaign=campaign, actor=reader)
            hidden = set()
        results = ConsensusSerializer(found, many=True, context={"hidden": hidden})
        return Response({"next": more, "results": results.data})


class DecisionView(APIView):
    """Decide a disputed item."""

    permission_classes = [IsReviewer]

    @extend_schema(request=DecisionSerializer, responses=DecidedSerializer)
    def post(self, request: Request, slug: str, key: str) -> Response:
        """Store the decision; a different one of the same item replaces it."""
        item = get_object_or_404(Item, campaign=_campaign(slug), key=key, purpose=Purpose.WORK)
        values = DecisionSerializer(data=request.data)
        values.is_valid(raise_exception=True)
        reviewer = person(request)
        try:
            found = reviewing.adjudicate(
                item=item,
                reviewer=reviewer,
                blind=not revealed(item, reviewer),
                **values.validated_data,
            )
        except reviewing.ReviewRefusedError as refused:
            raise ValidationError({"detail": str(refused)}) from refused
        in_force = not found.second_wanted or found.confirmed_by_id is not None
        return Response({"verdict": found.verdict, "in_force": in_force})
