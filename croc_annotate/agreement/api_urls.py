"""Addresses of the agreement API, below /api/v1/."""

from __future__ import annotations

from django.urls import path

from croc_annotate.agreement import api

_campaign = "campaigns/<slug:slug>"

urlpatterns = [
    path(f"{_campaign}/overview/", api.OverviewView.as_view(), name="api-overview"),
    path(f"{_campaign}/agreement/", api.AgreementView.as_view(), name="api-agreement"),
    path(f"{_campaign}/pairs/", api.PairsView.as_view(), name="api-pairs"),
    path(f"{_campaign}/rules/", api.RulesView.as_view(), name="api-rules"),
    path(f"{_campaign}/annotators/", api.AnnotatorsView.as_view(), name="api-annotators"),
    path(f"{_campaign}/annotators/<int:pk>/", api.AnnotatorView.as_view(), name="api-annotator"),
    path(f"{_campaign}/annotators/<int:pk>/effect/", api.EffectView.as_view(), name="api-effect"),
    path(f"{_campaign}/consensus/", api.ConsensusView.as_view(), name="api-consensus"),
    path(
        f"{_campaign}/review/<slug:key>/decision/", api.DecisionView.as_view(), name="api-decision"
    ),
]
