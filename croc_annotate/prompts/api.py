"""The prompts API: the pairs, and the bank's rules for a pair that is being written."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.utils.translation import gettext as _
from drf_spectacular.utils import extend_schema
from rest_framework.generics import ListAPIView
from rest_framework.response import Response
from rest_framework.views import APIView

from croc_annotate.accounts.access import IsReviewer
from croc_annotate.lib.textdiff import differing_spans, utf16_spans
from croc_annotate.prompts.models import ContrastPair
from croc_annotate.prompts.rules import PairRow, check_pair
from croc_annotate.prompts.selectors import filter_pairs, same_texts
from croc_annotate.prompts.serializers import CheckSerializer, DraftSerializer, PairSerializer
from croc_annotate.prompts.wording import in_words

if TYPE_CHECKING:
    from django.db.models import QuerySet
    from rest_framework.request import Request

FILTERS = ("q", "category", "bank", "state")


class PairList(ListAPIView[ContrastPair]):
    """The pairs, by ``q``, ``category``, ``bank`` and ``state`` (active, retired, all)."""

    permission_classes = [IsReviewer]
    serializer_class = PairSerializer

    def get_queryset(self) -> QuerySet[ContrastPair]:
        """The filtered pairs."""
        return filter_pairs({name: self.request.query_params.get(name, "") for name in FILTERS})


class CheckPair(APIView):
    """Check a draft by the bank's rules; stores nothing."""

    permission_classes = [IsReviewer]

    @extend_schema(request=DraftSerializer, responses=CheckSerializer)
    def post(self, request: Request) -> Response:
        """Say what breaks a rule, what to look at, and which words differ."""
        draft = DraftSerializer(data=request.data)
        draft.is_valid(raise_exception=True)
        values = dict(draft.validated_data)
        row = PairRow(slug=values.pop("id"), **values)
        spans = differing_spans(row.prompt, row.contrast)
        return Response(
            {
                "problems": [{"field": p.field, "message": in_words(p)} for p in check_pair(row)],
                "remarks": _remarks(row),
                "spans": {
                    "prompt": utf16_spans(row.prompt, spans[0]),
                    "contrast": utf16_spans(row.contrast, spans[1]),
                },
            }
        )


def _remarks(row: PairRow) -> list[dict[str, str]]:
    """Nothing of this stops a pair; it is worth a look."""
    texts = {"prompt": row.prompt, "contrast": row.contrast}
    return [
        {"field": found.field, "message": _("“%(pair)s” has this text, too") % {"pair": found.slug}}
        for found in same_texts(texts=texts, slug=row.slug)[:3]
    ]
