from __future__ import annotations

import io
import json
import os
import time
from pathlib import Path

import pytest
from django.core.files.storage import default_storage
from django.core.management import CommandError, call_command

from croc_annotate.candidates.models import Candidate
from croc_annotate.candidates.storage import write_file
from tests import factories

pytestmark = pytest.mark.django_db


def check(*arguments: str) -> dict:
    out = io.StringIO()
    try:
        call_command("check_images", *arguments, "--json", stdout=out)
    except CommandError:
        return {"wrong": True, **json.loads(out.getvalue())}
    return {"wrong": False, **json.loads(out.getvalue())}


def left_over(settings, *, hours: float) -> Path:
    path = Path(settings.MEDIA_ROOT) / "originals/ab/abandoned.png"
    if not path.exists():
        write_file("originals/ab/abandoned.png", b"half")
    then = time.time() - hours * 3600
    os.utime(path, (then, then))
    return path


def test_rows_and_files_that_agree_are_said_to() -> None:
    for _ in range(3):
        factories.make_candidate()
    found = check("--hashes")
    assert found == {
        "wrong": False,
        "checked": 3,
        "lost": 0,
        "damaged": 0,
        "left_over": 0,
        "asked_again": 0,
    }


@pytest.mark.parametrize("which", ["image", "display", "preview"])
def test_a_lost_file_is_found_and_its_image_asked_for_again(which: str) -> None:
    candidate, other = factories.make_candidate(), factories.make_candidate()
    default_storage.delete(getattr(candidate, which))
    assert check()["lost"] == 1
    found = check("--repair")
    assert (found["wrong"], found["asked_again"]) == (False, 1)
    candidate.refresh_from_db(), other.refresh_from_db()
    assert (candidate.state, other.state) == ("requested", "rendered")
    assert check()["wrong"] is False


def test_damaged_bytes_are_found_by_their_hash(settings) -> None:
    candidate = factories.make_candidate()
    path = Path(settings.MEDIA_ROOT) / candidate.image
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    assert check()["wrong"] is False
    assert check("--hashes")["damaged"] == 1


def test_old_files_without_a_row_are_tidied_up_and_young_ones_left(settings) -> None:
    path = left_over(settings, hours=0.1)
    assert check()["left_over"] == 0
    path = left_over(settings, hours=2)
    assert check()["left_over"] == 1
    check("--repair")
    assert not path.exists()


def test_imported_images_are_never_asked_for_again() -> None:
    candidate = factories.make_candidate(source_name="images/a.png")
    default_storage.delete(candidate.image)
    found = check("--repair")
    assert (found["wrong"], found["asked_again"]) == (True, 0)
    assert Candidate.objects.get().state == "rendered"


def test_images_that_a_campaign_uses_are_never_asked_for_again() -> None:
    from croc_annotate.annotation.services import open_items

    candidate = factories.make_candidate()
    open_items(campaign=factories.make_campaign())
    default_storage.delete(candidate.image)
    assert check("--repair")["asked_again"] == 0
