from __future__ import annotations

import os
import tarfile
from datetime import UTC, datetime
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from croc_annotate.accounts.models import User
from croc_annotate.accounts.services import record_audit
from croc_annotate.candidates.models import Candidate
from croc_annotate.operations.backup import _table_hash, tables
from croc_annotate.prompts.models import ContrastPair
from tests.factories import make_campaign, make_candidate, make_pair, make_user

pytestmark = pytest.mark.django_db(transaction=True)


def empty_database() -> None:
    """Empty all tables as a new database would be (the audit log refuses plain deletes)."""
    names = ", ".join(f'"{model._meta.db_table}"' for model in tables())
    with connection.cursor() as cursor:
        cursor.execute(f"TRUNCATE {names} RESTART IDENTITY CASCADE")


@pytest.fixture
def work() -> dict[str, tuple[int, str]]:
    admin = make_user("admin", display_name="Ünï “quoted” 漢字\n=1+1")
    pair = make_pair("negation")
    make_candidate(pair=pair, side="alt_contrast")
    make_candidate(pair=pair, rendered=False)
    make_campaign(created_by=admin)
    record_audit(actor=admin, action="x", subject_type="y", subject_id=1)
    return {model._meta.label_lower: _table_hash(model) for model in tables()}


def test_a_backup_restores_into_an_empty_database_row_by_row(work, tmp_path: Path, capsys):
    call_command("backup", tmp_path / "b.tar")
    empty_database()
    call_command("restore", tmp_path / "b.tar")
    assert {m._meta.label_lower: _table_hash(m) for m in tables()} == work
    # Sequences go on where the rows end.
    assert make_user().pk > User.objects.order_by("pk").first().pk


@pytest.mark.parametrize("microsecond", [0, 456, 123_000, 123_456])
def test_times_come_back_to_the_microsecond(work, tmp_path: Path, microsecond: int):
    """Cut to milliseconds, 456 µs became none at all, which is written without a fraction."""
    made = datetime(2026, 3, 1, 12, 0, 5, microsecond, tzinfo=UTC)
    ContrastPair.objects.update(created_at=made)
    call_command("backup", tmp_path / "b.tar")
    empty_database()
    call_command("restore", tmp_path / "b.tar")
    assert {pair.created_at for pair in ContrastPair.objects.all()} == {made}


def test_a_backup_is_for_its_owner_only_and_leaves_nothing_beside_it(work, tmp_path: Path):
    """It holds names and the hashes of passwords; the usual umask lets everybody read."""
    folder = tmp_path / "backups"
    folder.mkdir()
    before = os.umask(0o022)
    try:
        call_command("backup", folder / "b.tar")
    finally:
        os.umask(before)
    assert (folder / "b.tar").stat().st_mode & 0o077 == 0
    assert [path.name for path in folder.iterdir()] == ["b.tar"]


def test_images_travel_with_the_rows_on_request(work, tmp_path: Path, settings):
    call_command("backup", tmp_path / "b.tar", with_images=True)
    empty_database()
    settings.MEDIA_ROOT = tmp_path / "elsewhere"
    call_command("restore", tmp_path / "b.tar")
    candidate = Candidate.objects.rendered().get()
    assert (tmp_path / "elsewhere" / candidate.image).stat().st_size > 0


def test_a_filled_database_is_left_alone(work, tmp_path: Path):
    call_command("backup", tmp_path / "b.tar")
    with pytest.raises(CommandError, match="not empty"):
        call_command("restore", tmp_path / "b.tar")
    assert {m._meta.label_lower: _table_hash(m) for m in tables()} == work


def test_an_old_backup_is_never_replaced(work, tmp_path: Path):
    (tmp_path / "b.tar").write_text("precious")
    with pytest.raises(CommandError, match="exists"):
        call_command("backup", tmp_path / "b.tar")
    assert (tmp_path / "b.tar").read_text() == "precious"


def test_a_changed_row_is_found_and_nothing_is_kept(work, tmp_path: Path):
    call_command("backup", tmp_path / "b.tar")
    with tarfile.open(tmp_path / "b.tar") as good, tarfile.open(tmp_path / "bad.tar", "w") as bad:
        for member in good:
            data = good.extractfile(member).read()
            if member.name == "rows/accounts.user.jsonl":
                data = data.replace(b'"language": ""', b'"language": "x"')
            member.size = len(data)
            import io

            bad.addfile(member, io.BytesIO(data))
    empty_database()
    with pytest.raises(CommandError, match=r"accounts\.user.*Nothing was kept"):
        call_command("restore", tmp_path / "bad.tar")
    assert not User.objects.exists()


def test_a_truncated_file_is_refused(work, tmp_path: Path):
    call_command("backup", tmp_path / "b.tar")
    data = (tmp_path / "b.tar").read_bytes()
    (tmp_path / "cut.tar").write_bytes(data[: len(data) // 2])
    with pytest.raises(CommandError, match="not a whole backup"):
        call_command("restore", tmp_path / "cut.tar")
