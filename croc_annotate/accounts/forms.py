"""Forms of the account pages."""

from __future__ import annotations

import zoneinfo
from typing import TYPE_CHECKING, Any

from django import forms
from django.conf import settings
from django.utils.translation import gettext_lazy as _

from croc_annotate.accounts.models import User
from croc_annotate.accounts.shortcuts import DEFAULTS, normalise_key, shortcut_problems

if TYPE_CHECKING:
    from django.utils.functional import _StrPromise

    # Generic for the type checker only: at run time the class takes no parameter.
    UserModelForm = forms.ModelForm[User]
else:
    UserModelForm = forms.ModelForm

ACTION_LABELS: dict[str, _StrPromise] = {
    "accept": _("Yes, accept"),
    "reject": _("No, reject"),
    "unsure": _("Cannot tell"),
    "undo": _("Undo"),
    "skip": _("Skip with a reason"),
    "flag": _("Flag a problem"),
    "guide": _("Guideline and examples"),
    "zoom_in": _("Zoom in"),
    "zoom_out": _("Zoom out"),
    "zoom_reset": _("Fit the image"),
    "keys": _("Show the keys"),
}


def _timezones() -> list[tuple[str, str]]:
    names = sorted(name for name in zoneinfo.available_timezones() if "/" in name)
    return [("", "UTC"), *((name, name.replace("_", " ")) for name in names)]


class ProfileForm(UserModelForm):
    """Name, language, time zone and theme of one person."""

    language = forms.ChoiceField(
        label=_("Language"),
        required=False,
        choices=[("", _("As the browser")), *settings.LANGUAGES],
    )
    timezone = forms.ChoiceField(label=_("Time zone"), required=False, choices=_timezones)
    theme = forms.ChoiceField(
        label=_("Theme"),
        required=False,
        choices=[("", _("As the system")), ("light", _("Light")), ("dark", _("Dark"))],
        widget=forms.Select(attrs={"data-theme-field": ""}),
    )

    class Meta:
        model = User
        fields = ["display_name", "language", "timezone", "theme"]
        labels = {"display_name": _("Name")}
        help_texts = {"display_name": _("Shown to you and to admins, never in an export.")}
        widgets = {"display_name": forms.TextInput(attrs={"autocomplete": "name"})}


class ShortcutsForm(forms.Form):
    """One key for each action of the judging page."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for action, key in DEFAULTS.items():
            self.fields[action] = forms.CharField(
                label=ACTION_LABELS[action],
                initial=key,
                max_length=12,
                strip=False,
                widget=forms.TextInput(
                    attrs={"data-key-input": "", "data-default": key, "autocomplete": "off"}
                ),
            )

    def clean(self) -> dict[str, Any]:
        """Refuse tables in which a key is missing, reserved or used twice."""
        cleaned = super().clean() or {}
        keys = {action: normalise_key(key) for action, key in cleaned.items()}
        if not self.errors:
            for problem in shortcut_problems(keys):
                self.add_error(None, problem)
        return keys

    def changes(self) -> dict[str, str]:
        """The keys that differ from the defaults: only these are kept."""
        keys: dict[str, str] = self.cleaned_data
        return {action: key for action, key in keys.items() if key != DEFAULTS[action]}
