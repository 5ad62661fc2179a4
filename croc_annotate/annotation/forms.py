"""Forms of the campaign pages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from django import forms
from django.utils.translation import gettext_lazy as _

from croc_annotate.annotation.models import Campaign, ConsentText, Guideline, Study
from croc_annotate.candidates.models import Generator
from croc_annotate.prompts.models import ContrastPair
from croc_annotate.prompts.selectors import category_titles

if TYPE_CHECKING:
    from collections.abc import Iterable


class CampaignForm(forms.ModelForm[Campaign]):
    """All settings of a campaign; empty lists mean everything."""

    categories = forms.MultipleChoiceField(
        label=_("Categories"), required=False, widget=forms.CheckboxSelectMultiple
    )
    generators = forms.MultipleChoiceField(
        label=_("Generators"), required=False, widget=forms.CheckboxSelectMultiple
    )
    banks = forms.MultipleChoiceField(
        label=_("Prompt banks"), required=False, widget=forms.CheckboxSelectMultiple
    )

    class Meta:
        model = Campaign
        fields: ClassVar = [
            "title",
            "slug",
            "mode",
            "grid_size",
            "mark_difference",
            "order",
            "min_distance",
            "categories",
            "generators",
            "banks",
            "redundancy",
            "min_judgements",
            "max_judgements",
            "rule",
            "posterior_threshold",
            "cross_rate",
            "reference_rate",
            "guideline",
            "consent_text",
            "practice_items",
            "quiz_items",
            "quiz_pass_mark",
            "gold_rate",
            "gold_spacing",
            "gold_threshold",
            "gold_minimum",
            "session_cap",
            "lease_seconds",
            "invitation_only",
            "seed",
        ]
        labels: ClassVar = {
            "title": _("Title"),
            "slug": _("Name in addresses"),
            "mode": _("Mode"),
            "redundancy": _("Redundancy"),
            "rule": _("Rule"),
            "posterior_threshold": _("Least posterior probability"),
            "guideline": _("Guideline"),
            "consent_text": _("Consent text"),
            "grid_size": _("Images at a time in grid mode"),
            "mark_difference": _("Mark the words in which the two texts differ"),
            "order": _("Categories"),
            "min_distance": _("Distance between items of one pair"),
            "min_judgements": _("Judgements wanted"),
            "max_judgements": _("Most judgements when people differ (adaptive)"),
            "cross_rate": _("Share of images also shown with the other text"),
            "reference_rate": _("Share of items with one extra judgement"),
            "practice_items": _("Practice items"),
            "quiz_items": _("Quiz items in each category"),
            "quiz_pass_mark": _("Share of right answers that passes the quiz"),
            "gold_rate": _("Share of known answers among the work"),
            "gold_spacing": _("Least distance between two known answers"),
            "gold_threshold": _("Pause a person below this share of known answers met"),
            "gold_minimum": _("… judged from this many known answers on"),
            "session_cap": _("Most items a person judges"),
            "lease_seconds": _("Seconds for which an item is held"),
            "invitation_only": _("By invitation only"),
            "seed": _("Seed of the order"),
        }
        help_texts: ClassVar = {
            "redundancy": _(
                "Adaptive stops when the majority cannot change and asks more on doubt."
            ),
            "reference_rate": _(
                "Kept out of the selection; it makes the human row of the leaderboard."
            ),
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._choose("categories", category_titles())
        self._choose("generators", Generator.objects.values_list("slug", "label"))
        banks = (
            ContrastPair.objects.exclude(bank="").order_by("bank").values_list("bank", flat=True)
        )
        self._choose("banks", ((bank, bank) for bank in banks.distinct()))

    def _choose(self, name: str, choices: Iterable[tuple[str, Any]]) -> None:
        field = self.fields[name]
        assert isinstance(field, forms.MultipleChoiceField)  # noqa: S101  # for the type checker
        field.choices = list(choices)


class GuidelineForm(forms.ModelForm[Guideline]):
    """A new version of the guideline."""

    class Meta:
        model = Guideline
        fields: ClassVar = ["version", "title", "body"]
        labels: ClassVar = {"version": _("Version"), "title": _("Title"), "body": _("Text")}


class ConsentTextForm(forms.ModelForm[ConsentText]):
    """A new version of the consent text."""

    class Meta:
        model = ConsentText
        fields: ClassVar = ["version", "body"]
        labels: ClassVar = {"version": _("Version"), "body": _("Text")}


class StudyForm(forms.ModelForm[Study]):
    """A study on a crowd platform."""

    return_url = forms.URLField(
        label=_("Return address"),
        assume_scheme="https",
        initial="https://app.prolific.com/submissions/complete",
    )

    class Meta:
        model = Study
        fields: ClassVar = [
            "study_id",
            "code_completed",
            "code_screened_out",
            "code_no_consent",
            "return_url",
            "reward_pence",
            "session_cap",
            "time_limit_minutes",
            "active",
        ]
        labels: ClassVar = {
            "study_id": _("The platform's id of the study"),
            "code_completed": _("Code: completed"),
            "code_screened_out": _("Code: screened out"),
            "code_no_consent": _("Code: no consent"),
            "reward_pence": _("Reward in hundredths of the currency"),
            "session_cap": _("Items in one submission"),
            "time_limit_minutes": _("Time limit in minutes"),
            "active": _("Lets people in"),
        }


class InvitationForm(forms.Form):
    """A link for colleagues."""

    label = forms.CharField(label=_("For whom"), max_length=120, required=False)
    max_uses = forms.IntegerField(label=_("How many people"), min_value=1, initial=10)
    days = forms.IntegerField(label=_("Valid for days"), min_value=1, max_value=365, initial=14)
