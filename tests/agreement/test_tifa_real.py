"""Real ratings of two people, against values that SciPy and `krippendorff` computed elsewhere."""

from __future__ import annotations

import csv
import json
from io import StringIO

import pytest
from django.core.management import call_command

from croc_annotate.agreement.consensus import Rule
from croc_annotate.agreement.selectors import campaign_consensus
from croc_annotate.agreement.services import agreement_report
from tests.agreement.rows import judged_campaign
from tests.factories import make_user

pytestmark = pytest.mark.django_db

NAMES = [
    "items",
    "items_with_two",
    "raw_agreement",
    "krippendorff_alpha",
    "gwet_ac1",
    "cohen_kappa",
    "fleiss_kappa",
    "prevalence_accept",
]


def words_of(folder) -> list[str]:
    """One word per image from the ratings, by the rule of the expected values."""
    given: dict[str, dict[str, str]] = {}
    with (folder / "ratings.tsv").open(newline="", encoding="utf-8") as lines:
        for row in csv.DictReader(lines, delimiter="\t"):
            rating = float(row["rating"])
            letter = "a" if rating >= 4 else "r" if rating <= 2 else "u"
            given.setdefault(row["file"], {})[row["rater"]] = letter
    return ["".join(letters[r] for r in sorted(letters)) for letters in given.values()]


def test_the_numbers_of_real_ratings_are_those_computed_elsewhere(real_data):
    folder = real_data / "tifa_real"
    expected = json.loads((folder / "expected.json").read_text())
    judged = judged_campaign(words_of(folder), min_judgements=2)
    row = agreement_report(campaign=judged.campaign)["all"]
    for name in NAMES:
        assert row[name] == pytest.approx(expected["agreement"][name], abs=1e-9), name
    found = campaign_consensus(campaign=judged.campaign, rule=Rule("unanimous", 2))
    states = found.state.tolist()
    counts = expected["consensus_unanimous_of_two"]
    assert states.count("accepted") == counts["accepted"]
    assert states.count("rejected") == counts["rejected"]
    assert states.count("disputed") == counts["disputed_or_undecided"]


def test_commands_pages_and_api_give_the_numbers_computed_elsewhere(real_data, client):
    folder = real_data / "tifa_real"
    expected = json.loads((folder / "expected.json").read_text())["agreement"]
    call_command("load_prompts", str(folder / "prompts.json"), stdout=StringIO())
    manifest = ["--manifest", str(folder / "manifest.tsv")]
    call_command("import_images", str(folder), *manifest, stdout=StringIO())
    call_command("import_ratings", str(folder / "ratings.tsv"), stdout=StringIO())
    out = StringIO()
    call_command("agreement", "--json", stdout=out)
    row = json.loads(out.getvalue())["all"]
    client.force_login(make_user("admin"))
    page = client.get("/agreement/report/")
    slug = page.context["campaign"].slug
    api = client.get(f"/api/v1/campaigns/{slug}/agreement/").json()["statistics"]["all"]
    for name in NAMES:
        for found in (row, api, page.context["report"]["all"]):
            assert found[name] == pytest.approx(expected[name], abs=1e-9), name
    assert "94 %" in page.content.decode()  # raw agreement, as people read it
