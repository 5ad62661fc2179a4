"""What the prompts API takes and gives."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from croc_annotate.prompts.models import ContrastPair


class DraftSerializer(serializers.Serializer[Any]):
    """A pair being written; everything may still be empty."""

    id = serializers.CharField(max_length=200, allow_blank=True, default="")
    category = serializers.CharField(max_length=80, allow_blank=True, default="")
    prompt = serializers.CharField(
        max_length=4000, allow_blank=True, default="", trim_whitespace=False
    )
    contrast = serializers.CharField(
        max_length=4000, allow_blank=True, default="", trim_whitespace=False
    )
    alt_contrast = serializers.CharField(
        max_length=4000, allow_blank=True, default="", trim_whitespace=False
    )
    property = serializers.CharField(max_length=200, allow_blank=True, default="")
    topic = serializers.CharField(max_length=200, allow_blank=True, default="")
    entity = serializers.CharField(max_length=200, allow_blank=True, default="")


class FindingSerializer(serializers.Serializer[Any]):
    """One broken rule, or one thing to look at."""

    field = serializers.CharField()
    message = serializers.CharField()


class CheckSerializer(serializers.Serializer[Any]):
    """The result of a check: broken rules, remarks, and what differs (JavaScript offsets)."""

    problems = FindingSerializer(many=True)
    remarks = FindingSerializer(many=True)
    spans = serializers.DictField(
        child=serializers.ListField(child=serializers.ListField(child=serializers.IntegerField()))
    )


class PairSerializer(serializers.ModelSerializer[ContrastPair]):
    """A pair as the API shows it."""

    id = serializers.CharField(source="slug")
    category = serializers.CharField(source="category_id")

    class Meta:
        model = ContrastPair
        fields = (
            "id",
            "version",
            "category",
            "prompt",
            "contrast",
            "alt_contrast",
            "property",
            "topic",
            "entity",
            "bank",
            "active",
        )
