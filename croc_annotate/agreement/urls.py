"""Pages of this room; the campaign is in the query, so that each address stands alone."""

from __future__ import annotations

from django.urls import path

from croc_annotate.agreement import listing_pages, pages, person_pages, review_pages

app_name = "agreement"

urlpatterns = [
    path("agreement/", pages.overview, name="overview"),
    path("agreement/report/", pages.report, name="report"),
    path("agreement/annotators/", pages.annotators, name="annotators"),
    path("agreement/annotators/<int:pk>/", person_pages.annotator, name="annotator"),
    path("agreement/annotators/<int:pk>/set-aside/", person_pages.set_aside, name="set_aside"),
    path("agreement/rules/", pages.rules, name="rules"),
    path("agreement/images/", listing_pages.images, name="images"),
    path("images/<slug:key>/history/", listing_pages.history, name="history"),
    path("agreement/log/", listing_pages.log, name="log"),
    path("agreement/csv/<slug:kind>/", listing_pages.download, name="csv"),
    path("review/", review_pages.review, name="review"),
    path("review/bulk/", review_pages.bulk, name="bulk"),
    path("review/policy/", review_pages.policy, name="policy"),
    path("review/decisions/<int:pk>/withdraw/", review_pages.withdraw, name="withdraw"),
    path("review/<slug:key>/decide/", review_pages.decide, name="decide"),
    path("review/<slug:key>/send-back/", review_pages.send_back, name="send_back"),
    path("review/<slug:key>/defective/", review_pages.defective, name="defective"),
    path("review/<slug:key>/reveal/", review_pages.reveal, name="reveal"),
]
