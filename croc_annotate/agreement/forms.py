"""Forms of the agreement pages: they check what comes in and say what is wrong."""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta
from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from croc_annotate.agreement.effects import Period
from croc_annotate.agreement.models import ConsensusState, DefectCode, ReasonCode
from croc_annotate.agreement.review_queue import KINDS
from croc_annotate.annotation.models import TextRole
from croc_annotate.candidates.models import Generator
from croc_annotate.prompts.models import Side
from croc_annotate.prompts.selectors import category_titles

ALL = ("", _("All"))


class PeriodForm(forms.Form):
    """Whose judgements of which days, and why."""

    since = forms.DateField(
        label=_("From (UTC)"),
        required=False,
        widget=forms.DateInput(attrs={"type": "date"}),
        help_text=_("Empty: from the first."),
    )
    until = forms.DateField(
        label=_("To and including (UTC)"),
        required=False,
        widget=forms.DateInput(attrs={"type": "date"}),
        help_text=_("Empty: to the last."),
    )
    reason = forms.CharField(label=_("Reason"), max_length=300)
    act = forms.ChoiceField(
        label=_("What to do"),
        choices=[("set_aside", _("Set aside")), ("reinstate", _("Reinstate"))],
    )

    def clean(self) -> dict[str, Any]:
        """A period must not end before it begins."""
        found = super().clean() or {}
        since, until = found.get("since"), found.get("until")
        if since and until and until < since:
            raise forms.ValidationError(_("The period ends before it begins."))
        return found

    def period(self) -> Period:
        """The period with whole days in UTC."""
        since, until = self.cleaned_data["since"], self.cleaned_data["until"]
        return Period(
            since=datetime.combine(since, time(), UTC) if since else None,
            until=datetime.combine(until + timedelta(days=1), time(), UTC) if until else None,
        )


class DecisionForm(forms.Form):
    """A reviewer's decision on one item."""

    verdict = forms.ChoiceField(
        label=_("Verdict"), choices=[("accept", _("Accept")), ("reject", _("Reject"))]
    )
    reason = forms.ChoiceField(label=_("Reason"), choices=ReasonCode.choices)
    note = forms.CharField(label=_("Note"), max_length=1000, required=False)
    second_wanted = forms.BooleanField(label=_("Ask a second reviewer"), required=False)


class SendBackForm(forms.Form):
    """How many more judgements an item gets."""

    extra = forms.IntegerField(label=_("More judgements"), min_value=1, max_value=10, initial=2)
    note = forms.CharField(label=_("Note"), max_length=300, required=False)


class DefectForm(forms.Form):
    """What is wrong with a pair."""

    code = forms.ChoiceField(label=_("Defect"), choices=DefectCode.choices)
    note = forms.CharField(label=_("Note"), max_length=150, required=False)


class PolicyForm(forms.Form):
    """How a campaign's disputes are settled."""

    second_reviewer = forms.BooleanField(label=_("A second reviewer must agree"), required=False)
    low_posterior = forms.FloatField(
        label=_("Review accepted images with a posterior below"), min_value=0.0, max_value=1.0
    )


class QueueForm(forms.Form):
    """Which part of the queue is looked at."""

    kind = forms.ChoiceField(
        label=_("Why"),
        required=False,
        choices=list(
            zip(
                KINDS,
                [_("All"), _("Disputed"), _("Weak accepts"), _("Second reviewer")],
                strict=True,
            )
        ),
    )
    category = forms.ChoiceField(label=_("Category"), required=False)
    generator = forms.ChoiceField(label=_("Generator"), required=False)
    side = forms.ChoiceField(label=_("Side"), required=False, choices=[ALL, *Side.choices])
    text_role = forms.ChoiceField(label=_("Text"), required=False, choices=[ALL, *TextRole.choices])
    pair = forms.CharField(label=_("Pair"), required=False, max_length=80)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        _offer(self, "category", category_titles())
        _offer(self, "generator", Generator.objects.values_list("slug", "label"))


class BulkForm(DecisionForm):
    """One act for a whole part of the queue."""

    act = forms.ChoiceField(
        label=_("What to do"),
        choices=[("decide", _("Decide all alike")), ("send_back", _("Send all back"))],
    )
    extra = forms.IntegerField(
        label=_("More judgements"), min_value=1, max_value=10, initial=2, required=False
    )
    token = forms.CharField(widget=forms.HiddenInput)


class WallForm(QueueForm):
    """The wall of a campaign: what people and the rule said about the images."""

    kind = None  # type: ignore[assignment]
    state = forms.ChoiceField(
        label=_("Consensus"), required=False, choices=[ALL, *ConsensusState.choices]
    )
    posterior_from = forms.FloatField(
        label=_("Posterior from"), required=False, min_value=0.0, max_value=1.0
    )
    posterior_to = forms.FloatField(label=_("to"), required=False, min_value=0.0, max_value=1.0)
    annotator = forms.CharField(label=_("Annotator"), required=False, max_length=150)
    verdict = forms.ChoiceField(
        label=_("Their verdict"),
        required=False,
        choices=[ALL, ("accept", _("Accept")), ("reject", _("Reject")), ("unsure", _("Unsure"))],
    )
    hash = forms.RegexField(
        label=_("SHA-256"), required=False, regex=r"^[0-9a-fA-F]{0,64}$", strip=True
    )


def _offer(form: forms.Form, name: str, choices: Any) -> None:
    field = form.fields[name]
    if isinstance(field, forms.ChoiceField):
        field.choices = [ALL, *choices]
