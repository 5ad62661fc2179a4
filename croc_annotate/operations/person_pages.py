"""An admin's page of one person's data: hand it out, or take the name off what is kept."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib import messages
from django.http import HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from croc_annotate.accounts.access import admins_only, person
from croc_annotate.accounts.models import User
from croc_annotate.operations.privacy import PrivacyError, export_person, pseudonymise_person

if TYPE_CHECKING:
    from django.http import HttpRequest


class PseudonymiseForm(forms.Form):
    """What cannot be undone is confirmed by writing the person's user name."""

    username = forms.CharField(
        label=gettext_lazy("User name"),
        help_text=gettext_lazy("Write it to confirm: nothing brings the name back."),
        widget=forms.TextInput(attrs={"autocomplete": "off", "autocapitalize": "none"}),
    )
    with_remarks = forms.BooleanField(
        label=gettext_lazy("Also remove what they wrote in their own words"), required=False
    )

    def __init__(self, *args: Any, who: User, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.who = who

    def clean_username(self) -> str:
        """The name must be that of the person on the page."""
        name = str(self.cleaned_data["username"])
        if name != self.who.username:
            raise forms.ValidationError(_("This is not the user name of the person on this page."))
        return name


@require_safe
@admins_only
@never_cache
def show(request: HttpRequest, pk: int) -> HttpResponse:
    """What can be done about one person's data."""
    who = get_object_or_404(User, pk=pk)
    return _page(request, who, PseudonymiseForm(who=who))


@require_POST
@admins_only
@never_cache
def export(request: HttpRequest, pk: int) -> HttpResponse:
    """Everything about the person as a ZIP file; the audit log notes who took it."""
    who = get_object_or_404(User, pk=pk)
    with tempfile.TemporaryDirectory(prefix="croc-person-") as folder:
        path = Path(folder) / "person.zip"
        export_person(user=who, path=path, actor=person(request))
        content = path.read_bytes()  # a few MB at most; nothing personal stays on the disk
    name = f'attachment; filename="person-{who.pk}.zip"'
    return HttpResponse(
        content, content_type="application/zip", headers={"Content-Disposition": name}
    )


@require_POST
@admins_only
@never_cache
def pseudonymise(request: HttpRequest, pk: int) -> HttpResponse:
    """Take away who the person is and close the account, once the name is confirmed."""
    who = get_object_or_404(User, pk=pk)
    form = PseudonymiseForm(request.POST, who=who)
    if not form.is_valid():
        return _page(request, who, form)
    try:
        name = pseudonymise_person(
            user=who, actor=person(request), with_remarks=form.cleaned_data["with_remarks"]
        )
    except PrivacyError:
        # The page offers nothing in these cases, and says why.
        return HttpResponseRedirect(reverse("operations:person", args=[who.pk]))
    messages.success(request, _("The account is closed; its judgements now stand under %s.") % name)
    return HttpResponseRedirect(reverse("operations:person", args=[who.pk]))


def _page(request: HttpRequest, who: User, form: PseudonymiseForm) -> HttpResponse:
    return render(request, "operations/person.html", {"who": who, "form": form})
