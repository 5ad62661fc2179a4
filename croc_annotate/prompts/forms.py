"""Forms of the prompts pages: filters, a pair, retiring."""

from __future__ import annotations

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from croc_annotate.prompts.rules import MAX_LABEL, MAX_SLUG, MAX_TEXT, PairRow, check_pair
from croc_annotate.prompts.selectors import banks, category_titles
from croc_annotate.prompts.wording import in_words


class FilterForm(forms.Form):
    """What the list shows; lives in the address."""

    q = forms.CharField(label=_("Words"), required=False, widget=forms.SearchInput)
    category = forms.ChoiceField(label=_("Category"), required=False)
    bank = forms.ChoiceField(label=_("Bank"), required=False)
    state = forms.ChoiceField(
        label=_("State"),
        required=False,
        choices=[("active", _("in use")), ("retired", _("retired")), ("all", _("all"))],
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["category"].choices = [("", _("all")), *category_titles()]  # type: ignore[attr-defined]
        self.fields["bank"].choices = [("", _("all")), *((b, b) for b in banks())]  # type: ignore[attr-defined]


class PairForm(forms.Form):
    """The texts and labels of a pair, under the rules of the bank."""

    slug = forms.CharField(
        label=_("Id"), max_length=MAX_SLUG, help_text=_("The category, “_”, and a name or number.")
    )
    category = forms.ChoiceField(label=_("Category"))
    prompt = forms.CharField(
        label=_("Prompt"),
        max_length=MAX_TEXT,
        strip=True,
        widget=forms.Textarea({"rows": 2}),
    )
    contrast = forms.CharField(
        label=_("Contrast"),
        max_length=MAX_TEXT,
        widget=forms.Textarea({"rows": 2}),
        help_text=_("The same scene with one visual property changed."),
    )
    alt_contrast = forms.CharField(
        label=_("Alternative contrast"),
        max_length=MAX_TEXT,
        required=False,
        widget=forms.Textarea({"rows": 2}),
        help_text=_(
            "A positive rewording of the contrast that does not name what is absent. Images of "
            "negations are made from it, and judged against the contrast."
        ),
    )
    property = forms.CharField(label=_("Property"), max_length=MAX_LABEL, required=False)
    topic = forms.CharField(label=_("Topic"), max_length=MAX_LABEL, required=False)
    entity = forms.CharField(label=_("Entity"), max_length=MAX_LABEL, required=False)

    def __init__(self, *args: Any, fixed_slug: str = "", **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["category"].choices = category_titles()  # type: ignore[attr-defined]
        if fixed_slug:
            # A pair keeps its id and category for life: releases and files name it by them.
            for name in ("slug", "category"):
                self.fields[name].disabled = True

    def clean(self) -> dict[str, Any]:
        """Check the bank's rules, each fault at its field."""
        values: dict[str, Any] = super().clean() or {}
        if not self.errors:
            for problem in check_pair(self.row()):
                self.add_error(
                    "slug" if problem.field == "id" else problem.field, in_words(problem)
                )
        return values

    def row(self) -> PairRow:
        """The pair as a row of a bank."""
        return PairRow(**{name: self.cleaned_data.get(name, "") for name in self.fields})


class RetireForm(forms.Form):
    """Why a pair is taken out of use."""

    reason = forms.CharField(label=_("Reason"), max_length=200)
