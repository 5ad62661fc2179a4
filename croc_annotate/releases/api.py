"""The releases API: what there is, its numbers, and the files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.shortcuts import get_object_or_404
from django.utils.cache import get_conditional_response
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework.generics import ListAPIView
from rest_framework.permissions import AllowAny
from rest_framework.response import Response
from rest_framework.views import APIView

from croc_annotate.accounts.models import User
from croc_annotate.lib.renderers import AnyRenderer
from croc_annotate.releases.models import ExportState, Release, ReleaseExport
from croc_annotate.releases.pages import visible_releases
from croc_annotate.releases.serializers import ReleaseDetailSerializer, ReleaseSerializer
from croc_annotate.releases.serving import TYPE, archive_response

if TYPE_CHECKING:
    from django.http import HttpResponseBase
    from rest_framework.request import Request

    from croc_annotate.releases.models import ReleaseQuerySet


def _visible(request: Request) -> ReleaseQuerySet:
    return visible_releases(request.user if isinstance(request.user, User) else None)


def _release(request: Request, name: str, version: str) -> Release:
    """The release if this caller may see it; others do not learn that it exists."""
    return get_object_or_404(_visible(request), name=name, version=version)


class ReleaseList(ListAPIView[Release]):
    """The releases that the caller may see, newest first."""

    permission_classes = [AllowAny]
    serializer_class = ReleaseSerializer

    def get_queryset(self) -> ReleaseQuerySet:
        """Public ones, or all for reviewers."""
        return _visible(self.request)

    @extend_schema(operation_id="releases")
    def get(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """The public ones for everybody, all for reviewers and admins."""
        return super().get(request, *args, **kwargs)


class ReleaseView(APIView):
    """One release."""

    permission_classes = [AllowAny]

    @extend_schema(responses=ReleaseDetailSerializer, operation_id="release")
    def get(self, request: Request, name: str, version: str) -> Response:
        """Its numbers, how it was made, and its finished exports with their addresses."""
        found = _release(request, name, version)
        return Response(ReleaseDetailSerializer(found, context={"request": request}).data)


class ArchiveView(APIView):
    """The archive of a finished export."""

    permission_classes = [AllowAny]
    renderer_classes = [AnyRenderer]

    @extend_schema(responses={(200, TYPE): OpenApiTypes.BINARY}, operation_id="release_archive")
    def get(self, request: Request, name: str, version: str, pk: int) -> HttpResponseBase:
        """A tar file. Its SHA-256 is in the release's list of exports."""
        release = _release(request, name, version)
        found = get_object_or_404(ReleaseExport, pk=pk, release=release, state=ExportState.DONE)
        tag = f'"{found.sha256}"'
        held = get_conditional_response(request._request, etag=tag)
        if held is not None:
            held["ETag"] = tag
            return held  # before the file is opened
        response = archive_response(found)
        response["ETag"] = tag
        return response
