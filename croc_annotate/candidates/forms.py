"""The filters of the wall of images."""

from __future__ import annotations

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from croc_annotate.candidates.models import CandidateState, Generator
from croc_annotate.prompts.models import Side
from croc_annotate.prompts.selectors import category_titles


class BrowseForm(forms.Form):
    """What to show; every field may stay empty, and the address holds them all."""

    category = forms.ChoiceField(label=_("Category"), required=False)
    generator = forms.ChoiceField(label=_("Generator"), required=False)
    side = forms.ChoiceField(
        label=_("Side"), required=False, choices=[("", _("All")), *Side.choices]
    )
    state = forms.ChoiceField(
        label=_("State"), required=False, choices=[("", _("All")), *CandidateState.choices]
    )
    look = forms.ChoiceField(
        label=_("Look"),
        required=False,
        choices=[
            ("", _("All")),
            ("near", _("Near-duplicates")),
            ("single", _("No near-duplicate")),
        ],
    )
    pair = forms.CharField(label=_("Pair"), required=False, max_length=80)
    seed = forms.IntegerField(label=_("Seed"), required=False, min_value=0, max_value=2**63 - 1)
    hash = forms.RegexField(
        label=_("SHA-256"), required=False, regex=r"^[0-9a-fA-F]{0,64}$", strip=True
    )
    text = forms.CharField(label=_("Words"), required=False, max_length=200)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        categories = category_titles()
        generators = Generator.objects.values_list("slug", "label")
        self.fields["category"].choices = [("", _("All")), *categories]  # type: ignore[attr-defined]
        self.fields["generator"].choices = [("", _("All")), *generators]  # type: ignore[attr-defined]
