"""The judging API's shapes, for its description (OpenAPI). Reading is done in api_input.py."""

from __future__ import annotations

from rest_framework import serializers

from croc_annotate.annotation.models import FlagKind, Mode, Verdict

STAGES = ["consent", "guideline", "practice", "quiz", "work", "paused", "ended"]
STATES = ["items", "finished", "nothing", "held", "paused", "closed", "stage"]


class ProgressSerializer(serializers.Serializer[object]):
    """Three counts, each with its own name."""

    mine = serializers.IntegerField()
    quota = serializers.IntegerField(allow_null=True)
    items_complete = serializers.IntegerField()
    items_total = serializers.IntegerField()


class ShownItemSerializer(serializers.Serializer[object]):
    """An item as it is shown."""

    item = serializers.CharField()
    group = serializers.CharField(help_text="Equal for images of one text.")
    text = serializers.CharField()
    spans = serializers.ListField(
        child=serializers.ListField(child=serializers.IntegerField()),
        help_text="[start, end) of the marked words in UTF-16 code units.",
    )
    dir = serializers.ChoiceField(["ltr", "rtl", "auto"])
    category = serializers.CharField()
    image = serializers.CharField()
    preview = serializers.CharField()
    width = serializers.IntegerField(allow_null=True)
    height = serializers.IntegerField(allow_null=True)


class HandedItemSerializer(ShownItemSerializer):
    """An item in a person's hands."""

    assignment = serializers.UUIDField()
    expires_at = serializers.DateTimeField()


class OwnJudgementSerializer(ShownItemSerializer):
    """One of the person's own answers."""

    verdict = serializers.ChoiceField(Verdict.values)
    at = serializers.DateTimeField()


class SessionCampaignSerializer(serializers.Serializer[object]):
    """What the page needs to know about its campaign."""

    slug = serializers.CharField()
    title = serializers.CharField()
    mode = serializers.ChoiceField(Mode.values)
    grid_size = serializers.IntegerField()
    mark_difference = serializers.BooleanField()
    guideline_version = serializers.CharField()


class SessionSerializer(serializers.Serializer[object]):
    """Where the person stands."""

    person = serializers.CharField(help_text="Names the person for the page's own store.")
    campaign = SessionCampaignSerializer()
    stage = serializers.ChoiceField(STAGES)
    progress = ProgressSerializer()
    pace_ms = serializers.IntegerField(allow_null=True)
    ends_at = serializers.DateTimeField(allow_null=True)
    csrf = serializers.CharField()
    shortcuts = serializers.DictField(child=serializers.CharField())


class ClaimInputSerializer(serializers.Serializer[object]):
    """How many items the page wants to have in hand."""

    n = serializers.IntegerField(min_value=1, max_value=60, default=1)


class ClaimSerializer(serializers.Serializer[object]):
    """Items, or why there are none."""

    state = serializers.ChoiceField(STATES)
    retry_at = serializers.DateTimeField(allow_null=True)
    stage = serializers.ChoiceField(STAGES)
    items = HandedItemSerializer(many=True)
    progress = ProgressSerializer()


class AnswerSerializer(serializers.Serializer[object]):
    """One answer. A new key for an item that was answered is a correction."""

    client_key = serializers.UUIDField()
    item = serializers.CharField()
    assignment = serializers.UUIDField(required=False, allow_null=True)
    verdict = serializers.ChoiceField(Verdict.values)
    active_ms = serializers.IntegerField(required=False, allow_null=True)
    mode = serializers.ChoiceField(Mode.values, required=False)
    reason = serializers.CharField(required=False, allow_blank=True)
    remark = serializers.CharField(required=False, allow_blank=True)
    answered_at = serializers.DateTimeField(required=False)


class AnswersInputSerializer(serializers.Serializer[object]):
    """At most 50 answers, and how many items the page then wants to have in hand."""

    answers = AnswerSerializer(many=True)
    want = serializers.IntegerField(min_value=0, max_value=60, default=0)


class FeedbackSerializer(serializers.Serializer[object]):
    """What practice says about an answer."""

    correct = serializers.BooleanField()
    explanation = serializers.CharField()


class ResultSerializer(serializers.Serializer[object]):
    """What became of one answer."""

    client_key = serializers.CharField()
    status = serializers.ChoiceField(["stored", "duplicate", "conflict", "refused"])
    message = serializers.CharField()
    feedback = FeedbackSerializer(required=False)


class AnswersSerializer(serializers.Serializer[object]):
    """One result for each answer, in their order, and items if they were wanted."""

    results = ResultSerializer(many=True)
    items = HandedItemSerializer(many=True)
    stage = serializers.ChoiceField(STAGES)
    progress = ProgressSerializer()
    pace_ms = serializers.IntegerField(allow_null=True)


class ReleaseInputSerializer(serializers.Serializer[object]):
    """Leases that are given back unseen."""

    assignments = serializers.ListField(child=serializers.UUIDField())


class SkipInputSerializer(serializers.Serializer[object]):
    """An item that cannot be judged."""

    client_key = serializers.UUIDField(required=False)
    assignment = serializers.UUIDField()
    reason = serializers.ChoiceField(["image_broken", "text_unclear", "other"])
    remark = serializers.CharField(required=False, allow_blank=True)


class FlagInputSerializer(serializers.Serializer[object]):
    """A problem with an item."""

    client_key = serializers.UUIDField()
    item = serializers.CharField()
    kind = serializers.ChoiceField(FlagKind.values)
    remark = serializers.CharField(required=False, allow_blank=True)


class DoneSerializer(serializers.Serializer[object]):
    """It was done."""

    status = serializers.CharField()
    progress = ProgressSerializer(required=False)


class HistorySerializer(serializers.Serializer[object]):
    """The person's latest answers, newest first."""

    judgements = OwnJudgementSerializer(many=True)


class ReconcileInputSerializer(serializers.Serializer[object]):
    """Keys that the page believes to be stored."""

    client_keys = serializers.ListField(child=serializers.UUIDField())


class ReconcileSerializer(serializers.Serializer[object]):
    """Which of the keys are stored, and how many answers there are in all."""

    stored = serializers.ListField(child=serializers.UUIDField())
    missing = serializers.ListField(child=serializers.UUIDField())
    mine = serializers.IntegerField()
