"""Addresses of the account pages."""

from __future__ import annotations

from django.urls import path

from croc_annotate.accounts import oidc_views, views

app_name = "accounts"

urlpatterns = [
    path("login/", views.LoginPage.as_view(), name="login"),
    path("logout/", views.LogoutPage.as_view(), name="logout"),
    path("csrf/", views.csrf, name="csrf"),
    path("profile/", views.profile, name="profile"),
    path("shortcuts/", views.shortcuts, name="shortcuts"),
    path("oidc/", oidc_views.begin, name="oidc"),
    path("oidc/callback/", oidc_views.callback, name="oidc-callback"),
    path("oidc/logout/", oidc_views.end_session, name="oidc-logout"),
    path("password/", views.PasswordPage.as_view(), name="password"),
]
