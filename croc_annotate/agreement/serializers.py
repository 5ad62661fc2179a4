"""What the agreement API takes and gives."""

from __future__ import annotations

from typing import Any, ClassVar

from rest_framework import serializers

from croc_annotate.agreement.models import ConsensusState, ItemConsensus, ReasonCode
from croc_annotate.agreement.services import BY

# What tells how people judged an item.
VOTES = ("n_accept", "n_reject", "n_unsure", "posterior")


class SnapshotSerializer(serializers.Serializer[Any]):
    """Statistics with the time that they hold for."""

    campaign = serializers.CharField()
    as_of = serializers.DateTimeField()
    seconds = serializers.FloatField(help_text="How long they took to compute.")
    statistics = serializers.JSONField(
        help_text="The numbers; undefined ones are null, with reasons."
    )


class ReportQuerySerializer(serializers.Serializer[Any]):
    """Parts of the agreement report, separated by commas."""

    by = serializers.CharField(required=False, default="")

    def validate_by(self, value: str) -> list[str]:
        """Known parts only."""
        names = [name.strip() for name in value.split(",") if name.strip()]
        unknown = [name for name in names if name not in BY]
        if unknown:
            raise serializers.ValidationError(f"unknown part {unknown[0]!r}; use {', '.join(BY)}")
        return names


class ConsensusQuerySerializer(serializers.Serializer[Any]):
    """Filters of the list of items; each may be left out."""

    category = serializers.CharField(required=False)
    generator = serializers.CharField(required=False)
    side = serializers.CharField(required=False)
    pair = serializers.CharField(required=False)
    state = serializers.ChoiceField(choices=ConsensusState.choices, required=False)
    text_role = serializers.ChoiceField(choices=["own", "other"], required=False)
    posterior_from = serializers.FloatField(required=False, min_value=0, max_value=1)
    posterior_to = serializers.FloatField(required=False, min_value=0, max_value=1)
    reveal = serializers.BooleanField(
        required=False,
        default=False,
        help_text="For admins: also the votes of items that wait for review. Recorded, item by item.",
    )
    hash = serializers.RegexField(r"^[0-9a-fA-F]{1,64}$", required=False)
    after = serializers.IntegerField(
        required=False,
        default=0,
        min_value=0,
        help_text="Where the part begins: `next` of the last.",
    )


class ConsensusSerializer(serializers.ModelSerializer[ItemConsensus]):
    """An item with what its votes come to; without them where the reader's blind is not lifted."""

    item = serializers.CharField(source="item.key")
    pair = serializers.CharField(source="item.pair.slug")
    category = serializers.CharField(source="item.pair.category_id")
    side = serializers.CharField(source="candidate.side")
    generator = serializers.CharField(source="candidate.generator.slug")
    seed = serializers.IntegerField(source="candidate.seed")
    sha256 = serializers.CharField(source="candidate.sha256")
    n_accept = serializers.IntegerField(allow_null=True)
    n_reject = serializers.IntegerField(allow_null=True)
    n_unsure = serializers.IntegerField(allow_null=True)
    hidden = serializers.SerializerMethodField(
        help_text="True: the votes stay null until the reader has decided or lifted the blind."
    )

    class Meta:
        model = ItemConsensus
        fields: ClassVar[list[str]] = [
            "item", "pair", "category", "side", "generator", "seed", "sha256", "text_role", "state",
            "verified_by", "n_accept", "n_reject", "n_unsure", "posterior", "complete", "hidden",
        ]  # fmt: skip

    def get_hidden(self, row: ItemConsensus) -> bool:
        """Whether the item waits for a review that has to be blind."""
        return row.item_id in self.context.get("hidden", ())

    def to_representation(self, row: ItemConsensus) -> dict[str, Any]:
        """The row; what would tell a reviewer how the others judged is left out."""
        found: dict[str, Any] = super().to_representation(row)
        return {**found, **dict.fromkeys(VOTES)} if found["hidden"] else found


class DecisionSerializer(serializers.Serializer[Any]):
    """A reviewer's decision."""

    verdict = serializers.ChoiceField(choices=["accept", "reject"])
    reason = serializers.ChoiceField(choices=ReasonCode.choices)
    note = serializers.CharField(required=False, default="", allow_blank=True, max_length=1000)


class DecidedSerializer(serializers.Serializer[Any]):
    """What became of a decision."""

    verdict = serializers.CharField()
    in_force = serializers.BooleanField(help_text="False while a second reviewer is waited for.")


class EffectQuerySerializer(serializers.Serializer[Any]):
    """Whose judgements of which time, and what would be done with them."""

    act = serializers.ChoiceField(choices=["set_aside", "reinstate"], default="set_aside")
    since = serializers.DateTimeField(required=False, default=None)
    until = serializers.DateTimeField(required=False, default=None)


class ConsensusPartSerializer(serializers.Serializer[Any]):
    """A part of the items, and where the next one begins (null at the end)."""

    next = serializers.IntegerField(allow_null=True)
    results = ConsensusSerializer(many=True)
