"""Who may open a page or call an endpoint: one place for the roles."""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec

from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import PermissionDenied
from rest_framework.permissions import BasePermission

from croc_annotate.accounts.models import User

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.http import HttpRequest, HttpResponseBase
    from rest_framework.request import Request
    from rest_framework.views import APIView

P = ParamSpec("P")


def person(request: HttpRequest | Request) -> User:
    """The signed-in person; only for views that let nobody else in."""
    if not isinstance(request.user, User):
        raise PermissionDenied
    return request.user


def reviewers_only(
    view: Callable[Concatenate[HttpRequest, P], HttpResponseBase],
) -> Callable[Concatenate[HttpRequest, P], HttpResponseBase]:
    """Let reviewers and admins in, send visitors to the log-in, refuse others (403)."""
    return _let_in(view, lambda user: user.may_review)


def admins_only(
    view: Callable[Concatenate[HttpRequest, P], HttpResponseBase],
) -> Callable[Concatenate[HttpRequest, P], HttpResponseBase]:
    """Let admins in, send visitors to the log-in, refuse others (403)."""
    return _let_in(view, lambda user: user.may_administer)


class IsReviewer(BasePermission):
    """Reviewers and admins."""

    def has_permission(self, request: Request, view: APIView) -> bool:
        """True for a signed-in reviewer or admin."""
        return isinstance(request.user, User) and request.user.may_review


class IsAdmin(BasePermission):
    """Admins only."""

    def has_permission(self, request: Request, view: APIView) -> bool:
        """True for a signed-in admin."""
        return isinstance(request.user, User) and request.user.may_administer


def _let_in(
    view: Callable[Concatenate[HttpRequest, P], HttpResponseBase],
    allowed: Callable[[User], bool],
) -> Callable[Concatenate[HttpRequest, P], HttpResponseBase]:
    @wraps(view)
    def guarded(
        request: HttpRequest, /, *args: P.args, **kwargs: P.kwargs
    ) -> HttpResponseBase | Any:
        if not request.user.is_authenticated:
            return redirect_to_login(request.get_full_path())
        if not allowed(person(request)):
            raise PermissionDenied
        return view(request, *args, **kwargs)

    return guarded
