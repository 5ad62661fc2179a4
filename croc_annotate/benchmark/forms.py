"""The choices of a leaderboard, read from the address."""

from __future__ import annotations

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from croc_annotate.benchmark.boards import View
from croc_annotate.benchmark.protocol import Policy


class ViewForm(forms.Form):
    """What the leaderboard shows; the address holds it all, so that a link is permanent."""

    release = forms.CharField(label=_("Release"), required=False, max_length=120)
    generator = forms.ChoiceField(label=_("Images of"), required=False)
    category = forms.MultipleChoiceField(label=_("Category"), required=False)
    missing = forms.ChoiceField(
        label=_("Missing scores"),
        required=False,
        choices=[("skip", _("left out")), ("loss", _("count as wrong"))],
    )
    ties = forms.ChoiceField(
        label=_("Ties"),
        required=False,
        choices=[("loss", _("count as wrong")), ("half", _("count half"))],
    )
    on = forms.ChoiceField(
        label=_("Images"),
        required=False,
        choices=[("", _("all")), ("human", _("with a reference vote"))],
    )

    def __init__(
        self, data: Any, *, generators: tuple[str, ...], categories: list[tuple[str, str]]
    ) -> None:
        super().__init__(data)
        choices = [("", _("all generators")), *((g, g) for g in generators)]
        self.fields["generator"] = forms.ChoiceField(
            label=_("Images of"), required=False, choices=choices
        )
        self.fields["category"] = forms.MultipleChoiceField(
            label=_("Category"), required=False, choices=categories
        )

    def view(self) -> View:
        """The view; anything not understood falls back to the default."""
        good = self.cleaned_data if self.is_valid() else self.cleaned_data or {}
        return View(
            policy=Policy(
                missing="loss" if good.get("missing") == "loss" else "skip",
                ties="half" if good.get("ties") == "half" else "loss",
            ),
            generator=good.get("generator") or "",
            categories=tuple(good.get("category") or ()),
            voted_only=good.get("on") == "human",
        )
