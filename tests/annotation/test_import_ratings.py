"""Judgements made elsewhere: read whole, stored once, corrected, traced to the line."""

from __future__ import annotations

import json
from collections import Counter

import pytest
from django.core.management import CommandError, call_command

from croc_annotate.accounts.models import User
from croc_annotate.annotation.models import Campaign, Judgement
from tests.annotation.world import assert_sound, make_images, make_open_campaign, make_pairs

pytestmark = pytest.mark.django_db


@pytest.fixture
def images():
    rows = make_images(make_pairs(2))
    for number, row in enumerate(rows):
        row.source_name = f"images/a {number},é.png"
        row.save()
    return [row.source_name for row in rows]


def write(path, lines, sep="\t"):
    path.write_text("\n".join(sep.join(line) for line in lines) + "\n", encoding="utf-8")
    return str(path)


HEAD = ("file", "rater", "rating")


def test_ratings_become_judgements_once(images, tmp_path, capsys):
    lines = [HEAD] + [(name, rater, value) for name in images for rater, value in
                      (("Ann Smith", "5"), ("Bob", "3"), ("Cy", "1.5"))]  # fmt: skip
    file = write(tmp_path / "r.tsv", lines)
    call_command("import_ratings", file)
    campaign = Campaign.objects.get(slug="imported")
    verdicts = sorted(Judgement.objects.counted(campaign).values_list("verdict", flat=True))
    assert verdicts == ["accept"] * 4 + ["reject"] * 4 + ["unsure"] * 4
    assert campaign.min_judgements == 3
    assert campaign.items.complete().count() == 4
    assert_sound(campaign)
    assert "12 judgements of 4 images by 3 raters" in capsys.readouterr().out
    call_command("import_ratings", file)
    assert "0 judgements of 4 images by 3 raters stored, 0 corrected, 12 were there" in (
        capsys.readouterr().out
    )
    assert Judgement.objects.count() == 12
    assert not User.objects.filter(is_active=True).exists()
    assert not any("Ann" in name for name in User.objects.values_list("username", flat=True))


def test_a_changed_rating_corrects_and_the_old_one_is_kept(images, tmp_path):
    call_command("import_ratings", write(tmp_path / "a.tsv", [HEAD, (images[0], "r", "5")]))
    for _ in range(2):
        call_command("import_ratings", write(tmp_path / "b.tsv", [HEAD, (images[0], "r", "1")]))
    call_command("import_ratings", write(tmp_path / "c.tsv", [HEAD, (images[0], "r", "5")]))
    assert Judgement.objects.current().get().verdict == "accept"
    assert Judgement.objects.count() == 3
    assert_sound(Campaign.objects.get(slug="imported"))


def test_the_borders_are_options_and_csv_is_read(images, tmp_path):
    rows = [("rating", "file", "rater")] + [(v, f'"{images[0]}"', v) for v in ("6", "7", "8")]
    call_command(
        "import_ratings",
        write(tmp_path / "r.csv", rows, sep=","),
        "--accept-from=8",
        "--reject-to=6",
    )
    assert sorted(Judgement.objects.values_list("verdict", flat=True)) == [
        "accept",
        "reject",
        "unsure",
    ]


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ([("file", "rating")], "lacks the column rater"),
        ([HEAD, ("nowhere.png", "r", "4")], "line 2: no image nowhere.png"),
        ([HEAD, ("@", "r", "four")], "line 2: the rating 'four' is not a number"),
        ([HEAD, ("@", "r", "nan")], "line 2: the rating 'nan' is not a number"),
        ([HEAD, ("@", "", "4")], "line 2: file and rater must not be empty"),
        ([HEAD, ("@", "r", "4"), ("@", "r", "5")], "line 3: r rated"),
        ([HEAD, ("@", "r")], "line 2"),
    ],
)
def test_a_fault_is_named_with_its_line_and_nothing_is_stored(images, tmp_path, lines, words):
    filled = [tuple(images[0] if cell == "@" else cell for cell in line) for line in lines]
    with pytest.raises(CommandError, match="Nothing was stored") as caught:
        call_command("import_ratings", write(tmp_path / "r.tsv", filled))
    assert words in str(caught.value)
    assert Judgement.objects.count() == Campaign.objects.count() == User.objects.count() == 0


def test_wrong_calls_say_so(images, tmp_path):
    file = write(tmp_path / "r.tsv", [HEAD, (images[0], "r", "4")])
    with pytest.raises(CommandError) as caught:
        call_command("import_ratings", file, "--accept-from=2", "--reject-to=3")
    assert caught.value.returncode == 2
    with pytest.raises(CommandError, match="no campaign nix"):
        call_command("import_ratings", file, "--campaign=nix")
    with pytest.raises(CommandError, match="is not there"):
        call_command("import_ratings", str(tmp_path / "missing.tsv"))


def test_into_a_campaign_that_exists(images, tmp_path):
    campaign = make_open_campaign(pairs=0, min_judgements=2)
    call_command(
        "import_ratings",
        write(tmp_path / "r.tsv", [HEAD, (images[0], "r", "4")]),
        f"--campaign={campaign.slug}",
    )
    assert Judgement.objects.counted(campaign).count() == 1
    assert campaign.items.get(candidate__source_name=images[0]).needed == 1
    assert_sound(campaign)


def test_check_queue_finds_and_repairs_a_wrong_counter(capsys):
    campaign = make_open_campaign(pairs=2)
    call_command("check_queue")
    assert "0 counters wrong" in capsys.readouterr().out
    campaign.items.update(leased=2, needed=0)
    with pytest.raises(CommandError, match="--repair"):
        call_command("check_queue", f"--campaign={campaign.slug}")
    call_command("check_queue", "--repair")
    assert_sound(campaign)


def test_real_ratings_give_the_recorded_agreement(real_data, tmp_path):
    """The votes that the import makes are those that the recorded values were computed from."""
    folder = real_data / "tifa_real"
    rows = [line.split("\t") for line in (folder / "ratings.tsv").read_text().splitlines()[1:]]
    files = {row[0] for row in rows}
    images = make_images(make_pairs(len(files)), sides=("prompt",))
    for image, name in zip(images, sorted(files), strict=True):
        image.source_name = name
        image.save()
    call_command("import_ratings", str(folder / "ratings.tsv"))
    campaign = Campaign.objects.get(slug="imported")
    by_item: dict[int, list[str]] = {}
    for item, verdict in Judgement.objects.counted(campaign).values_list("item_id", "verdict"):
        by_item.setdefault(item, []).append(verdict)
    twice = [v for v in by_item.values() if len(v) == 2 and "unsure" not in v]
    expected = json.loads((folder / "expected.json").read_text())["agreement"]
    assert len(by_item) == expected["items"]
    assert len(twice) == expected["items_with_two"]
    raw = sum(a == b for a, b in twice) / len(twice)
    assert raw == pytest.approx(expected["raw_agreement"], abs=1e-9)
    assert Counter(v for votes in by_item.values() for v in votes) == expected["verdict_counts"]
