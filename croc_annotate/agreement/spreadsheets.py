"""The statistics as flat tables, for CSV."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from croc_annotate.agreement.history import hidden_decisions, hidden_of
from croc_annotate.agreement.models import Adjudication, ItemConsensus
from croc_annotate.agreement.reading import pseudonyms
from croc_annotate.agreement.serializers import VOTES
from croc_annotate.agreement.snapshots import current_statistics
from croc_annotate.agreement.wording import COUNTS, NUMBERS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from croc_annotate.accounts.models import User
    from croc_annotate.annotation.models import Campaign

Line = list[Any]
# What a decision says.
_SAID = ("verdict", "reason", "note")


@dataclass(frozen=True, slots=True)
class Sheet:
    """A table that can be downloaded."""

    rows: Callable[[Campaign, User], Iterator[Line]]
    admins_only: bool = False


def _agreement(campaign: Campaign, reader: User) -> Iterator[Line]:
    data = current_statistics(campaign=campaign, kind="report", wait=True).data
    with_intervals = [name for name in NUMBERS if name in data["all"]["intervals"]]
    bounds = [f"{name}_{end}" for name in with_intervals for end in ("low", "high")]
    yield ["part", "label", *COUNTS, *NUMBERS, *bounds, "undefined"]
    groups = [("all", "all", data["all"])]
    groups += [
        (part, label, data["by"][part][label])
        for part, labels in data["order"].items()
        for label in labels
    ]
    for part, label, row in groups:
        ends = [row["intervals"][n][end] for n in with_intervals for end in ("low", "high")]
        reasons = "; ".join(f"{name}: {why}" for name, why in row["undefined"].items())
        yield [part, label, *(row[n] for n in COUNTS), *(row[n] for n in NUMBERS), *ends, reasons]


def _overview(campaign: Campaign, reader: User) -> Iterator[Line]:
    data = current_statistics(campaign=campaign, kind="overview", wait=True).data
    names = [
        "category", "generator", "side", "candidates", "rendered", "failed", "judged", "accepted",
        "rejected", "disputed", "pending", "judgements_left",
    ]  # fmt: skip
    yield [*names, "expected", "expected_low", "expected_high"]
    for row in data["rows"]:
        found = row["forecast"]
        yield [*(row[name] for name in names), found["value"], found["low"], found["high"]]


def _annotators(campaign: Campaign, reader: User) -> Iterator[Line]:
    data = current_statistics(campaign=campaign, kind="annotators", wait=True).data
    plain = [
        "person", "judgements", "unsure_share", "accept_share_others", "median_ms", "quick_share",
        "busiest_minute", "longest_run", "longest_run_chance", "weight",
    ]  # fmt: skip
    shares = ["accept_share", "gold", "others", "sensitivity", "specificity"]
    ends = [f"{name}_{end}" for name in shares for end in ("value", "low", "high")]
    yield [*plain, *ends, "reasons"]
    for row in data["rows"]:
        values = [row[name][end] for name in shares for end in ("value", "low", "high")]
        reasons = "; ".join(concern["text"] for concern in row["concerns"])
        yield [*(row[name] for name in plain), *values, reasons]


def _rules(campaign: Campaign, reader: User) -> Iterator[Line]:
    rows = current_statistics(campaign=campaign, kind="rules", wait=True).data["rows"]
    categories = sorted({name for row in rows for name in row["by_category"]})
    yield [
        "rule", "verified", "error_model", "error_gold", "error_gold_low", "error_gold_high",
        "refused", *categories,
    ]  # fmt: skip
    for row in rows:
        model, gold = row.get("error_model", {}), row.get("error_gold", {})
        numbers = [model.get("value"), gold.get("value"), gold.get("low"), gold.get("high")]
        counts = [row["by_category"].get(name) for name in categories]
        yield [row["title"], row["verified"], *numbers, row["refused"], *counts]


def _consensus(campaign: Campaign, reader: User) -> Iterator[Line]:
    """Every item; no votes on those that wait for a review, which is blind."""
    current_statistics(campaign=campaign, kind="overview", wait=True)
    fields = {
        "pair": "item__pair__slug",
        "version": "item__pair__version",
        "category": "item__pair__category_id",
        "side": "candidate__side",
        "generator": "candidate__generator__slug",
        "seed": "candidate__seed",
        "sha256": "candidate__sha256",
        "text_role": "text_role",
        "state": "state",
        "verified_by": "verified_by",
        "n_accept": "n_accept",
        "n_reject": "n_reject",
        "n_unsure": "n_unsure",
        "posterior": "posterior",
        "complete": "complete",
    }
    yield [*fields, "hidden"]
    hidden = hidden_of(campaign, reader)
    votes = [list(fields).index(name) for name in VOTES]
    rows = ItemConsensus.objects.filter(campaign=campaign).order_by("item_id")
    for item, *row in rows.values_list("item_id", *fields.values()).iterator(chunk_size=2_000):
        if item in hidden:
            for column in votes:
                row[column] = None
        yield [*row, item in hidden]


def _pairs(campaign: Campaign, reader: User) -> Iterator[Line]:
    data = current_statistics(campaign=campaign, kind="pairs", wait=True).data
    yield ["first", "second", "common", "raw_agreement", "cohen_kappa"]
    people = data["people"]
    for i, first in enumerate(people):
        for j in range(i + 1, len(people)):
            common, raw = data["common"][i][j], data["raw_agreement"][i][j]
            if common:
                yield [first, people[j], common, raw, data["cohen_kappa"][i][j]]


def _decisions(campaign: Campaign, reader: User) -> Iterator[Line]:
    """Every decision of reviewers, also those replaced or taken back; people by pseudonym.

    What others decided on an item that waits for a review stays empty: that review is blind.
    """
    fields = {
        "pair": "candidate__pair__slug",
        "version": "candidate__pair__version",
        "side": "candidate__side",
        "generator": "candidate__generator__slug",
        "seed": "candidate__seed",
        "sha256": "candidate__sha256",
        "text_role": "text_role",
        "verdict": "verdict",
        "reason": "reason",
        "note": "note",
        "blind": "blind",
        "second_wanted": "second_wanted",
        "created_at": "created_at",
        "confirmed_at": "confirmed_at",
        "superseded_at": "superseded_at",
    }
    yield [*fields, "hidden", "reviewer", "confirmed_by"]
    rows = Adjudication.objects.filter(campaign=campaign).order_by("id")
    people = {
        pk for pair in rows.values_list("reviewer_id", "confirmed_by_id") for pk in pair if pk
    }
    names = dict(zip(sorted(people), pseudonyms(campaign, sorted(people)), strict=True))
    hidden, told = hidden_decisions(campaign, reader), [*map(list(fields).index, _SAID)]
    wanted = rows.values_list("pk", *fields.values(), "reviewer_id", "confirmed_by_id")
    for pk, *values, reviewer, second in wanted.iterator(chunk_size=2_000):
        if pk in hidden:
            for column in told:
                values[column] = ""
        yield [*values, pk in hidden, names[reviewer], names.get(second, "")]


SHEETS = {
    "agreement": Sheet(_agreement),
    "overview": Sheet(_overview),
    "rules": Sheet(_rules),
    "consensus": Sheet(_consensus),
    "pairs": Sheet(_pairs),
    "decisions": Sheet(_decisions),
    "annotators": Sheet(_annotators, admins_only=True),
}
