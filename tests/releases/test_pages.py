from __future__ import annotations

import io
import tarfile

import pytest
from django.urls import reverse

from croc_annotate.prompts.models import ContrastPair
from croc_annotate.releases import downloads
from croc_annotate.releases.comparing import compare_releases
from croc_annotate.releases.downloads import request_export, run_export
from croc_annotate.releases.export.options import ExportOptions
from croc_annotate.releases.models import ExportState, Release, ReleaseExport
from croc_annotate.releases.services import freeze_release, set_visibility, withdraw_release
from tests.factories import make_user
from tests.releases.world import ALL_ACCEPT, ALL_REJECT, NOW, full_world, make_world

pytestmark = pytest.mark.django_db


@pytest.fixture
def world():
    return full_world(pairs=1, seeds=1)


@pytest.fixture
def release(world):
    return freeze_release(name="croc", campaign=world.campaign, now=NOW)


@pytest.fixture
def admin(client):
    person = make_user("admin")
    client.force_login(person)
    return person


def url(name: str, release: Release, *more) -> str:
    return reverse(f"releases:{name}", args=[release.name, release.version, *more])


def test_visitors_see_public_releases_only(client, world, release):
    assert client.get(url("detail", release)).status_code == 404
    assert release.name not in client.get(reverse("releases:list")).content.decode()
    key = world.candidates[0].key
    assert client.get(url("image", release, key)).status_code == 404

    set_visibility(release=release, public=True)
    page = client.get(url("detail", release)).content.decode()
    assert "32" in page
    assert "Make an export" not in page
    assert client.get(url("image", release, key)).status_code == 200
    assert "croc" in client.get(reverse("releases:list")).content.decode()


def test_a_public_release_shows_verified_images_only(client, world):
    out = world.candidate(ContrastPair.objects.get(slug="counting_1"))
    world.judge(out, ALL_REJECT)
    release = freeze_release(name="croc", campaign=world.campaign, public=True)
    assert client.get(url("image", release, out.key)).status_code == 404


@pytest.mark.parametrize("role", ["annotator", "reviewer", None])
@pytest.mark.parametrize("name", ["export", "visibility", "withdraw"])
def test_only_admins_change_anything(client, release, role, name):
    set_visibility(release=release, public=True)
    if role:
        client.force_login(make_user(role))
    answer = client.post(url(name, release), {"note": "x", "public": "no", "formats": ["parquet"]})
    assert answer.status_code == (403 if role else 302)
    release.refresh_from_db()
    assert release.is_public
    assert not release.is_withdrawn
    assert not ReleaseExport.objects.exists()


def test_the_page_tells_the_whole_story(client, admin, release):
    page = client.get(url("detail", release)).content.decode()
    for words in ("Krippendorff", "FLUX.1-dev non-commercial", release.sha256, "@misc", "Rejected",
                  "Withdraw this release", "How it was made"):  # fmt: skip
        assert words in page
    assert "person1" not in page


def test_an_undefined_agreement_is_told_in_words(client, admin, release):
    # All votes are equal here, so chance-corrected values do not exist.
    page = client.get(url("detail", release)).content.decode()
    assert "undefined" in page
    assert "NaN" not in page


def test_withdrawing_needs_a_note_and_stays(client, admin, release):
    client.post(url("withdraw", release), {"note": ""})
    release.refresh_from_db()
    assert not release.is_withdrawn
    client.post(url("withdraw", release), {"note": "Texts were swapped."})
    page = client.get(url("detail", release)).content.decode()
    assert "Texts were swapped." in page
    assert "Make an export" not in page


def test_an_export_is_made_in_the_background_and_downloaded(
    client, admin, release, django_capture_on_commit_callbacks
):
    with django_capture_on_commit_callbacks(execute=True):
        client.post(
            url("export", release), {"formats": ["crochum", "parquet"], "image_format": "original"}
        )
    export = ReleaseExport.objects.get()
    assert (export.state, export.done, export.total) == (ExportState.DONE, 64, 64)
    page = client.get(url("exports", release)).content.decode()
    assert "ready" in page

    answer = client.get(url("download", release, export.pk))
    assert 'filename="croc-1.0.0-crochum-parquet.tar"' in answer["Content-Disposition"]
    data = b"".join(answer.streaming_content)
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        names = tar.getnames()
    assert "croc-1.0.0/manifest.json" in names
    assert len(data) == export.size

    with django_capture_on_commit_callbacks(execute=True):
        client.post(
            url("export", release), {"formats": ["crochum", "parquet"], "image_format": "original"}
        )
    assert ReleaseExport.objects.count() == 1


def test_a_private_export_is_not_downloaded_by_visitors(client, release):
    export = request_export(release=release, options=ExportOptions(), actor=None)
    run_export(export_id=export.pk)
    assert client.get(url("download", release, export.pk)).status_code == 404
    set_visibility(release=release, public=True)
    answer = client.get(url("download", release, export.pk))
    assert answer.status_code == 200
    answer.close()


def test_an_export_is_made_once_by_two_workers(release):
    export = request_export(release=release, options=ExportOptions(), actor=None, now=NOW)
    ReleaseExport.objects.filter(pk=export.pk).update(state="running", heartbeat_at=NOW)
    assert run_export(export_id=export.pk, now=NOW) is False
    # Its worker has been silent for long: another takes over.
    assert run_export(export_id=export.pk) is True
    assert run_export(export_id=export.pk) is False


def test_a_worker_that_packs_for_long_gives_signs_of_life(release, monkeypatch):
    export = request_export(release=release, options=ExportOptions(), actor=None, now=NOW)
    row = ReleaseExport.objects.filter(pk=export.pk)
    pack, save, beats = downloads.tar_file, downloads.default_storage.save, []

    def slow_pack(path, write):
        row.update(heartbeat_at=NOW)
        pack(path, write)

    def slow_save(name, content):
        beats.append(row.get().heartbeat_at)
        row.update(heartbeat_at=NOW)
        found = save(name, content)
        beats.append(row.get().heartbeat_at)
        return found

    monkeypatch.setattr(downloads, "_SIGN_EVERY_S", 0.0)
    monkeypatch.setattr(downloads, "tar_file", slow_pack)
    monkeypatch.setattr(downloads.default_storage, "save", slow_save)
    assert run_export(export_id=export.pk) is True
    assert len(beats) == 2
    assert all(beat > NOW for beat in beats), "a second click would have started a second worker"


def test_a_failed_export_says_why_and_can_be_asked_for_again(client, admin, world, release):
    from django.core.files.storage import default_storage

    default_storage.delete(world.candidates[0].image)
    export = request_export(release=release, options=ExportOptions(), actor=None)
    run_export(export_id=export.pk)
    export.refresh_from_db()
    assert export.state == "failed"
    assert "not in the storage" in client.get(url("detail", release)).content.decode()
    assert request_export(release=release, options=ExportOptions(), actor=None).pk != export.pk


def test_wrong_export_wishes_are_told(client, admin, release):
    for wishes in ({"formats": []}, {"formats": ["zip"]}, {"formats": ["sft"], "split": "dev"}):
        answer = client.post(
            url("export", release), {"image_format": "original", **wishes}, follow=True
        )
        assert answer.status_code == 200
    assert not ReleaseExport.objects.exists()


def test_two_releases_are_compared_by_reason(client, admin):
    world = make_world()
    pair = world.pair("counting_1")
    stays, leaves, comes = (world.candidate(pair) for _ in range(3))
    world.judge(stays, ALL_ACCEPT)
    world.judge(leaves, ("accept", "accept", "reject"))
    world.judge(comes, ("accept", "accept"))
    first = freeze_release(name="a", campaign=world.campaign)
    world.campaign.min_judgements = 2
    world.campaign.save()
    late = world.candidate(pair)
    second = freeze_release(name="b", campaign=world.campaign, rule="unanimous")

    found = compare_releases(first, second)

    assert (found.added, found.removed, found.kept) == ([comes.pk], [leaves.pk], 1)
    assert {(move.before, move.after): move.n for move in found.moves} == {
        ("verified", "disputed"): 1, ("too_few", "verified"): 1, ("absent", "too_few"): 1,
    }  # fmt: skip
    assert late.pk not in found.added
    page = client.get(
        reverse("releases:compare"), {"a": "a@1.0.0", "b": "b@1.0.0"}
    ).content.decode()
    assert "Disputed" in page
    assert compare_releases(first, first).same


def test_the_newest_release_is_offered_beside_the_one_before(client, admin):
    world = full_world(pairs=1, seeds=1)
    for name in ("a", "b"):
        freeze_release(name=name, campaign=world.campaign)
    form = client.get(reverse("releases:compare")).context["form"]
    assert (form["a"].value(), form["b"].value()) == ("a@1.0.0", "b@1.0.0")


def test_a_visitor_cannot_compare_with_a_private_release(client, world, release):
    set_visibility(release=release, public=True)
    freeze_release(name="secret", campaign=world.campaign)
    page = client.get(reverse("releases:compare"), {"a": "croc@1.0.0", "b": "secret@1.0.0"})
    assert "Changed verdicts" not in page.content.decode()


def test_the_pages_take_few_queries(client, admin, release, django_assert_max_num_queries):
    with django_assert_max_num_queries(20):
        client.get(url("detail", release))
    with django_assert_max_num_queries(8):
        client.get(reverse("releases:list"))


def test_an_empty_list_says_what_to_do(client, admin):
    assert "import_crochum" in client.get(reverse("releases:list")).content.decode()


def test_a_withdrawn_release_is_no_longer_exported(release):
    withdraw_release(release=release, note="wrong")
    export = request_export(release=release, options=ExportOptions(), actor=None)
    run_export(export_id=export.pk)
    export.refresh_from_db()
    assert (export.state, "withdrawn" in export.error) == ("failed", True)
