"""The judging API: what the judging page of one campaign asks and tells."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.middleware.csrf import get_token
from django.utils import timezone
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.exceptions import ValidationError
from rest_framework.response import Response

from croc_annotate.accounts.access import person as signed_in
from croc_annotate.accounts.shortcuts import merged_shortcuts
from croc_annotate.annotation import serializers as shapes
from croc_annotate.annotation.answer_shapes import Answer
from croc_annotate.annotation.api_base import JudgingView, SwiftView, patiently
from croc_annotate.annotation.api_input import (
    MOST_ANSWERS,
    MOST_ITEMS,
    read_answer,
    read_count,
    read_list,
    read_text,
    read_uuid,
    read_uuids,
)
from croc_annotate.annotation.judging import (
    claim_items,
    flag_item,
    release_items,
    skip_item,
    store_and_claim,
)
from croc_annotate.annotation.models import FlagKind, Judgement, Purpose
from croc_annotate.annotation.people import find_participation
from croc_annotate.annotation.present import (
    claim_json,
    handed_json,
    judgement_json,
    pace_ms,
    progress_json,
    result_json,
)
from croc_annotate.annotation.stages import stage_of
from croc_annotate.lib.hashing import keyed_pseudonym

if TYPE_CHECKING:
    import uuid

    from rest_framework.request import Request

    from croc_annotate.accounts.models import User
    from croc_annotate.accounts.visitors import Visitor
    from croc_annotate.annotation.models import Participation

MOST_KEYS = 5000
MOST_HISTORY = 50


class SessionView(JudgingView):
    """Where the person stands, with a fresh CSRF token."""

    @extend_schema(responses=shapes.SessionSerializer, operation_id="judging_session")
    def get(self, request: Request, slug: str) -> Response:
        """Stage, progress, keys, token."""
        user = signed_in(request)
        person = find_participation(slug=slug, annotator=user)
        campaign = person.campaign
        return Response(
            {
                "person": keyed_pseudonym(settings.PSEUDONYM_KEY, f"page:{user.pk}"),
                "campaign": {
                    "slug": campaign.slug,
                    "title": campaign.title,
                    "mode": campaign.mode,
                    "grid_size": campaign.grid_size,
                    "mark_difference": campaign.mark_difference,
                    "guideline_version": campaign.guideline.version if campaign.guideline else "",
                },
                "stage": stage_of(person, timezone.now()),
                "progress": progress_json(person),
                "pace_ms": pace_ms(person),
                "ends_at": _ends_at(person),
                "csrf": get_token(request._request),
                "shortcuts": merged_shortcuts(user.shortcuts),
            }
        )


def _ends_at(person: Participation) -> str | None:
    study = person.study
    if study is None or not study.time_limit_minutes or person.started_at is None:
        return None
    return (person.started_at + timedelta(minutes=study.time_limit_minutes)).isoformat()


class ClaimView(SwiftView):
    """Hand out items."""

    @extend_schema(
        request=shapes.ClaimInputSerializer,
        responses=shapes.ClaimSerializer,
        operation_id="judging_claim",
    )
    def post(self, request: Request, slug: str) -> Response:
        """What the person holds already, then new items, up to ``n``."""
        return Response(self.act(signed_in(request), slug, request.data))

    def act(self, user: User | Visitor, slug: str, data: Any) -> dict[str, Any]:
        """Claim for one person."""
        count, now = read_count(data), timezone.now()
        claim, person = patiently(
            lambda: claim_items(slug=slug, annotator=user, count=count, now=now)
        )
        return claim_json(claim, person, stage_of(person, now))


class AnswersView(SwiftView):
    """Store answers, and hand out the next items if they are wanted."""

    @extend_schema(
        request=shapes.AnswersInputSerializer,
        responses=shapes.AnswersSerializer,
        operation_id="judging_answers",
    )
    def post(self, request: Request, slug: str) -> Response:
        """One result for each answer; one that cannot be stored does not cost the others.

        With ``want`` the reply brings ``items`` as a claim does: one request for each answer.
        None are there when none could be had at once; a claim says why.
        """
        return Response(self.act(signed_in(request), slug, request.data))

    def act(self, user: User | Visitor, slug: str, data: Any) -> dict[str, Any]:
        """Store one person's answers, then claim."""
        now, raw = timezone.now(), read_list(data, "answers", MOST_ANSWERS)
        want = read_count(data, "want", least=0)
        read = [read_answer(row) for row in raw]
        good = [answer for answer in read if isinstance(answer, Answer)]
        results, handed, person = patiently(
            lambda: store_and_claim(slug=slug, annotator=user, answers=good, want=want, now=now)
        )
        stored = iter(results)
        rows = [
            _refused(row, answer) if isinstance(answer, str) else result_json(next(stored))
            for row, answer in zip(raw, read, strict=True)
        ]
        return {
            "results": rows,
            "items": [handed_json(one, person.campaign) for one in handed],
            "stage": stage_of(person, now),
            "progress": progress_json(person),
            "pace_ms": pace_ms(person),
        }


def _refused(raw: Any, reason: str) -> dict[str, Any]:
    key = raw.get("client_key") if isinstance(raw, dict) else None
    return {
        "client_key": key if isinstance(key, str) else "",
        "status": "refused",
        "message": reason,
    }


class ReleaseView(JudgingView):
    """Give leases back unseen."""

    @extend_schema(
        request=shapes.ReleaseInputSerializer,
        responses=shapes.DoneSerializer,
        operation_id="judging_release",
    )
    def post(self, request: Request, slug: str) -> Response:
        """What is not held any more is passed over."""
        user, now = signed_in(request), timezone.now()
        keys = read_uuids(request.data, "assignments", MOST_ITEMS)
        total = patiently(
            lambda: release_items(slug=slug, annotator=user, assignments=keys, now=now)
        )
        return Response({"status": "released", "released": total})


class SkipView(JudgingView):
    """Pass over an item that cannot be judged."""

    @extend_schema(
        request=shapes.SkipInputSerializer,
        responses=shapes.DoneSerializer,
        operation_id="judging_skip",
    )
    def post(self, request: Request, slug: str) -> Response:
        """It never comes back to this person; the place is free for another."""
        user, now = signed_in(request), timezone.now()
        key = _needed_uuid(request.data, "assignment")
        reason, remark = read_text(request.data, "reason"), read_text(request.data, "remark")
        person = patiently(
            lambda: skip_item(
                slug=slug, annotator=user, assignment=key, reason=reason, remark=remark, now=now
            )
        )
        return Response({"status": "skipped", "progress": progress_json(person)})


class FlagView(JudgingView):
    """Report a problem with an item."""

    @extend_schema(
        request=shapes.FlagInputSerializer,
        responses=shapes.DoneSerializer,
        operation_id="judging_flag",
    )
    def post(self, request: Request, slug: str) -> Response:
        """The same key again is the same report."""
        user, now = signed_in(request), timezone.now()
        key = _needed_uuid(request.data, "client_key")
        kind = read_text(request.data, "kind")
        if kind not in FlagKind.values:
            raise ValidationError({"kind": ["Give one of " + ", ".join(FlagKind.values) + "."]})
        item, remark = read_text(request.data, "item", 32), read_text(request.data, "remark")
        patiently(
            lambda: flag_item(
                slug=slug,
                annotator=user,
                client_key=key,
                item_key=item,
                kind=kind,
                remark=remark,
                now=now,
            )
        )
        return Response({"status": "flagged"})


def _needed_uuid(data: Any, name: str) -> uuid.UUID:
    key = read_uuid(data.get(name)) if isinstance(data, dict) else None
    if key is None:
        raise ValidationError({name: ["Give a UUID."]})
    return key


class HistoryView(JudgingView):
    """The person's own latest answers, to be looked at and corrected."""

    @extend_schema(
        parameters=[OpenApiParameter("limit", int)],
        responses=shapes.HistorySerializer,
        operation_id="judging_history",
    )
    def get(self, request: Request, slug: str) -> Response:
        """Newest first."""
        person = find_participation(slug=slug, annotator=signed_in(request))
        text = request.query_params.get("limit", "10")
        limit = min(int(text), MOST_HISTORY) if text.isdecimal() else 10
        rows = (
            Judgement.objects.current()
            .filter(campaign_id=person.campaign_id, annotator_id=person.annotator_id)
            .exclude(purpose=Purpose.TRAINING)
            .select_related("item__candidate", "item__pair__category")
            .order_by("-id")[:limit]
        )
        mark = person.campaign.mark_difference
        return Response({"judgements": [judgement_json(row, mark=mark) for row in rows]})


class ReconcileView(JudgingView):
    """Compare what the page believes with what is stored."""

    @extend_schema(
        request=shapes.ReconcileInputSerializer,
        responses=shapes.ReconcileSerializer,
        operation_id="judging_reconcile",
    )
    def post(self, request: Request, slug: str) -> Response:
        """Which keys are stored; the others are to be sent again."""
        person = find_participation(slug=slug, annotator=signed_in(request))
        keys = read_uuids(request.data, "client_keys", MOST_KEYS)
        found = set(
            Judgement.objects.filter(
                annotator_id=person.annotator_id, client_key__in=keys
            ).values_list("client_key", flat=True)
        )
        return Response(
            {
                "stored": [key for key in keys if key in found],
                "missing": [key for key in keys if key not in found],
                "mine": person.answered,
            }
        )
