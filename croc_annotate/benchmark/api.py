"""The leaderboard as JSON, for everybody who may see the page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.http import Http404
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.permissions import AllowAny
from rest_framework.response import Response
from rest_framework.views import APIView

from croc_annotate.benchmark.board import entry_json
from croc_annotate.benchmark.pages import board_of, page_context, visible_releases
from croc_annotate.benchmark.writing import board_document

if TYPE_CHECKING:
    from rest_framework.request import Request

_CHOICES = [
    OpenApiParameter("release", str, description="name or name@version; default: the newest"),
    OpenApiParameter("generator", str, description="only images of this generator"),
    OpenApiParameter("category", str, many=True, description="only these categories"),
    OpenApiParameter("missing", str, enum=["skip", "loss"]),
    OpenApiParameter("ties", str, enum=["loss", "half"]),
    OpenApiParameter("on", str, enum=["human"], description="only images with a reference vote"),
]


class LeaderboardView(APIView):
    """All metrics of a release: cells, intervals, ranks, groups."""

    permission_classes = [AllowAny]

    @extend_schema(parameters=_CHOICES, responses=OpenApiTypes.OBJECT)
    def get(self, request: Request) -> Response:
        """The document of `leaderboard --format json`."""
        context = page_context(request._request)
        board = board_of(context) if context is not None else None
        if context is None or board is None:
            raise Http404("nothing has been scored here")
        return Response(board_document(context.release, board))


class MetricView(APIView):
    """One metric of a leaderboard."""

    permission_classes = [AllowAny]

    @extend_schema(
        parameters=_CHOICES, responses=OpenApiTypes.OBJECT, operation_id="leaderboard_metric"
    )
    def get(self, request: Request, name: str) -> Response:
        """Its part of the leaderboard's document."""
        context = page_context(request._request)
        board = board_of(context) if context is not None else None
        found = [e for e in board.entries if e.name == name] if board is not None else []
        if not found:
            raise Http404(f"no metric {name!r} here")
        return Response({"metric": name, **entry_json(found[0])})


class LeaderboardReleasesView(APIView):
    """The releases whose leaderboards the person may see."""

    permission_classes = [AllowAny]

    @extend_schema(responses=OpenApiTypes.OBJECT)
    def get(self, request: Request) -> Response:
        """Newest first."""
        rows: list[dict[str, Any]] = [
            {
                "release": r.name,
                "version": r.version,
                "sha256": r.sha256,
                "images": r.n_verified,
                "withdrawn": r.is_withdrawn,
            }
            for r in visible_releases(request._request).newest_first()
        ]
        return Response({"releases": rows})
