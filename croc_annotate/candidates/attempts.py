"""How often workers held a candidate.

The count does two jobs. It tells of which candidate workers die, and there a candidate that is
asked for again starts anew. It also tells what a paid source may have billed, and there nothing
may be forgotten: what came before stands in the provenance of a candidate that has no image
yet, and is added to the count again when it gets one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db.models import IntegerField, Sum
from django.db.models.fields.json import KT
from django.db.models.functions import Cast, Coalesce

from croc_annotate.candidates.models import Candidate, CandidateState

if TYPE_CHECKING:
    from croc_annotate.candidates.models import CandidateQuerySet, Generator

EARLIER = "earlier_attempts"
_EARLIER = Coalesce(Cast(KT(f"provenance__{EARLIER}"), IntegerField()), 0)


def ask_again(*, failed: CandidateQuerySet) -> int:
    """Let failed candidates wait again, without the blame but with the bill; return how many."""
    marked = failed.annotate(earlier=_EARLIER).order_by()
    asked = 0
    # Few kinds, however many rows.
    for attempts, earlier in marked.values_list("attempts", "earlier").distinct():
        asked += marked.filter(attempts=attempts, earlier=earlier).update(
            state=CandidateState.REQUESTED, error="", claimed_by="", claimed_until=None,
            attempts=0, provenance=before(attempts + earlier),
        )  # fmt: skip
    return asked


def before(attempts: int) -> dict[str, object]:
    """The provenance of a candidate without an image that was held so often before."""
    return {EARLIER: attempts} if attempts else {}


def times_held(*, generator: Generator) -> int:
    """How often workers held a candidate of a generator and did not give it back unasked for."""
    rows = Candidate.objects.filter(generator=generator)
    now = rows.aggregate(n=Sum("attempts"))["n"] or 0
    # Those with an image have it in their count, and too large a provenance to look into.
    waiting = rows.exclude(state=CandidateState.RENDERED)
    return now + (waiting.aggregate(n=Sum(_EARLIER))["n"] or 0)
