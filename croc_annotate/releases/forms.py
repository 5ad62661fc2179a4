"""Forms of the release pages."""

from __future__ import annotations

from typing import Any

from django import forms
from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _

from croc_annotate.annotation.models import Campaign, RuleName
from croc_annotate.releases.export.options import (
    IMAGE_FORMATS,
    BadOptionsError,
    ExportOptions,
    parse_split,
)
from croc_annotate.releases.formats import FORMATS


class FreezeForm(forms.Form):
    """What a release is made of."""

    name = forms.CharField(
        label=_("Name"), max_length=80, help_text=_("Letters, digits, dot, dash, underscore.")
    )
    version = forms.CharField(
        label=_("Version"), max_length=20, required=False,
        help_text=_("Empty: 1.0.0, or the next one of this name."),
    )  # fmt: skip
    campaign = forms.ModelChoiceField(label=_("Campaign"), queryset=Campaign.objects.all())
    rule = forms.ChoiceField(
        label=_("Rule"),
        required=False,
        choices=[("", _("As the campaign says")), *RuleName.choices],
    )
    min_judgements = forms.IntegerField(
        label=_("Votes an image needs"), required=False, min_value=1, max_value=100,
        help_text=_("Empty: as many as the campaign asks for."),
    )  # fmt: skip
    exclusive = forms.BooleanField(
        label=_("Only images whose other text people rejected"), required=False
    )
    notes = forms.CharField(
        label=_("Notes"), required=False, max_length=10_000, widget=forms.Textarea(attrs={"rows": 4}),
        help_text=_("Shown on the page and in the data set card."),
    )  # fmt: skip
    public = forms.BooleanField(label=_("Show its page to everybody"), required=False)


class WithdrawForm(forms.Form):
    """Why a release is taken back."""

    note = forms.CharField(
        label=_("What is wrong with it"), max_length=2_000, widget=forms.Textarea(attrs={"rows": 3})
    )


class ExportForm(forms.Form):
    """What an export holds."""

    formats = forms.MultipleChoiceField(
        label=_("Formats"),
        widget=forms.CheckboxSelectMultiple,
        choices=[
            (name, format_lazy("{} – {}", name, _(item.summary))) for name, item in FORMATS.items()
        ],
        initial=["crochum"],
    )
    image_format = forms.ChoiceField(
        label=_("Images"), choices=[(name, name) for name in IMAGE_FORMATS], initial="original"
    )
    max_side = forms.IntegerField(
        label=_("Longest side in pixels"), required=False, min_value=16, max_value=16_384,
        help_text=_("Empty: as they are."),
    )  # fmt: skip
    split = forms.CharField(
        label=_("Split"), required=False, max_length=100,
        help_text=_("By pair, for example dev=0.2; the rest is “test”."),
    )  # fmt: skip

    def clean(self) -> dict[str, Any]:
        """The wishes as options, or what contradicts itself."""
        values: dict[str, Any] = super().clean() or self.cleaned_data
        if self.errors:
            return values
        try:
            values["options"] = ExportOptions(
                formats=tuple(values["formats"]),
                image_format=values["image_format"],
                max_side=values["max_side"],
                split=parse_split(values["split"].split()),
            )
        except BadOptionsError as error:
            raise forms.ValidationError(str(error)) from error
        return values


class CompareForm(forms.Form):
    """Two releases."""

    def __init__(self, *args: Any, choices: list[tuple[str, str]], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name, label in (("a", _("From")), ("b", _("To"))):
            self.fields[name] = forms.ChoiceField(label=label, choices=choices)
