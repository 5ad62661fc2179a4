"""No way out of the house takes anybody's name along, whatever the database knows about them."""

from __future__ import annotations

import gzip
import io
import json
import os
import tarfile
import uuid
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from django.apps import apps
from django.conf import settings
from django.core.files.storage import default_storage
from django.core.management import call_command
from django.db import models
from django.urls import reverse
from PIL import Image, PngImagePlugin

from croc_annotate.accounts.models import AuditEvent
from croc_annotate.agreement.models import Adjudication
from croc_annotate.candidates.models import Candidate
from croc_annotate.releases.downloads import request_export, run_export
from croc_annotate.releases.export.options import ExportOptions
from croc_annotate.releases.export.payloads import reencoded
from croc_annotate.releases.handover.tools import TOOLS
from croc_annotate.releases.models import ReleaseExport
from croc_annotate.releases.services import freeze_release
from tests.releases.looking_inside import contents, contents_of
from tests.releases.test_export_crochum import ALL_FORMATS
from tests.releases.world import NOW, World, full_world, picture

NAME = "ada.lovelace"
SECRETS = (NAME.encode(), b"lovelace", b"ada augusta")
# What a release is made of, and what steers the program. All other text is planted with a name.
PUBLISHED = {
    "prompts.Category": {"slug", "label", "question", "guideline"},
    "prompts.ContrastPair": {
        "slug", "prompt", "contrast", "alt_contrast", "property", "topic", "entity", "bank",
    },
    "candidates.Generator": {"slug", "label", "pipeline", "model_id", "revision", "licence"},
    "candidates.Candidate": {"key", "image", "display", "preview", "sha256"},
    "annotation.Campaign": {"slug", "categories", "generators", "banks"},
    "annotation.Guideline": {"version"},
    "annotation.Item": {"known_verdict", "key", "group"},
    "annotation.Judgement": {"mode", "guideline_version"},
    "accounts.User": {"password", "language", "timezone", "shortcuts"},
}  # fmt: skip
ROOMS = ("accounts", "annotation", "agreement", "candidates", "prompts")
TEXTS = ("CharField", "TextField", "EmailField", "JSONField", "GenericIPAddressField", "SlugField")


def free_texts(model: type[models.Model]) -> list[models.Field]:
    """The columns in which a person may be named."""
    skipped = PUBLISHED.get(model._meta.label, set())
    return [
        field for field in model._meta.concrete_fields
        if field.get_internal_type() in TEXTS and not field.choices and field.name not in skipped
        and (field.max_length is None or field.max_length >= 20)
    ]  # fmt: skip


def with_a_name(field: models.Field, number: int) -> Any:
    if field.get_internal_type() == "JSONField":
        return {"who": f"{NAME} {number}"}
    if field.get_internal_type() == "EmailField":
        return f"{NAME}{number}@example.org"
    return f"{NAME}{number} {field.model._meta.label}"[: field.max_length]


def one_row(model: type[models.Model]) -> None:
    """A row of a table that the world does not fill, pointing at the first row of each other."""
    values: dict[str, Any] = {}
    for field in model._meta.concrete_fields:
        if isinstance(field, models.ForeignKey):
            values[field.attname] = field.related_model.objects.values_list("pk", flat=True).first()
        elif field.choices and not field.has_default():
            values[field.name] = field.choices[0][0]
        elif isinstance(field, models.DateTimeField):
            values[field.name] = NOW
        elif isinstance(field, models.BooleanField):
            values[field.name] = True
        elif isinstance(field, models.UUIDField):
            values[field.name] = uuid.UUID(int=7)
        elif isinstance(field, models.IntegerField | models.FloatField) and not field.primary_key:
            values[field.name] = 1
    values |= {field.name: with_a_name(field, 0) for field in free_texts(model)}
    model.objects.bulk_create([model(**values)])


def plant() -> set[str]:
    """A name in every free text of every row; returns the columns that have one."""
    planted = set()
    for model in (model for room in ROOMS for model in apps.get_app_config(room).get_models()):
        fields = free_texts(model)
        if fields and (model is AuditEvent or not model.objects.exists()):
            one_row(model)
        # Nobody can change what the audit log has.
        for row in model.objects.all() if fields and model is not AuditEvent else ():
            values = {field.name: with_a_name(field, row.pk) for field in fields}
            model.objects.filter(pk=row.pk).update(**values)
        planted |= {f"{model._meta.label}.{field.name}" for field in fields}
    return planted


def named_image(codec: str = "PNG", size: int = 24) -> bytes:
    """An image whose metadata name a person in every way that the codec knows."""
    image = Image.open(io.BytesIO(picture(7_000, size=size)))
    exif = image.getexif()
    exif[315], exif[270] = NAME, f"by {NAME}"
    text = PngImagePlugin.PngInfo()
    text.add_text("Author", NAME)
    text.add_text("Comment", NAME * 50, zip=True)
    text.add_itxt("XML:com.adobe.xmp", f"<x>{NAME}</x>")
    more = {"PNG": {"pnginfo": text}, "JPEG": {"comment": NAME}, "WEBP": {"xmp": NAME.encode()}}
    out = io.BytesIO()
    image.save(out, codec, exif=exif, **more[codec])
    return out.getvalue()


@pytest.fixture
def world() -> World:
    world = full_world(pairs=1, seeds=1)
    Adjudication.objects.create(
        campaign=world.campaign, candidate=world.candidates[0], reviewer=world.people[0],
        verdict="accept", reason="text_holds", created_at=NOW,
    )  # fmt: skip
    # Open work, for the other tools: the image's own metadata name somebody.
    world.judge(world.candidate(world.pair("counting_9"), data=named_image()), ())
    planted = plant()
    for column in (
        "accounts.User.username", "accounts.User.email", "accounts.PlatformIdentity.external_id",
        "annotation.Judgement.remark", "annotation.Judgement.reason", "annotation.Campaign.title",
        "annotation.Flag.remark", "annotation.Submission.session_id", "agreement.Adjudication.note",
        "accounts.AuditEvent.details", "candidates.Candidate.provenance",
        "candidates.Candidate.source_name",
    ):  # fmt: skip
        assert column in planted
    assert len(planted) > 30
    for person in world.people:
        person.refresh_from_db()
        person.first_name, person.last_name = "Ada Augusta", "Lovelace"
        person.save()
    world.campaign.refresh_from_db()
    freeze_release(name="croc", campaign=world.campaign, now=NOW, actor=world.people[1])
    return world


def told_in(found: Iterator[tuple[str, bytes]], machine: tuple[str, ...] = ()) -> dict[str, str]:
    """Where a secret stands."""
    words = [*SECRETS, *(word.lower().encode() for word in machine)]
    told = {}
    for path, data in found:
        lowered = data.lower()
        told.update((path, word.decode()) for word in words if word in lowered)
    return told


def places(tmp_path: Path) -> tuple[str, ...]:
    """This machine's folders, and its name where that is not a chance of two or three letters."""
    name = os.uname().nodename
    return str(tmp_path), str(settings.MEDIA_ROOT), *([name] if len(name) > 5 else [])


def machine_words(tmp_path: Path, world: World) -> tuple[str, ...]:
    return *places(tmp_path), world.candidates[0].key


@pytest.mark.django_db
@pytest.mark.parametrize(
    "words",
    [
        [*ALL_FORMATS, "--tar", "--split", "dev=0.3"],
        ["--format", "imagefolder", "--metadata", "jsonl", "--format", "webdataset",
         "--image-format", "webp", "--max-side", "16"],
    ],
    ids=["originals", "re-encoded"],
)  # fmt: skip
def test_no_file_of_an_export_names_anybody(world, tmp_path, words):
    call_command("export_crochum", "--out", str(tmp_path / "out"), *words)
    looked_at = [path for path, _ in contents_of(tmp_path / "out")]
    assert told_in(contents_of(tmp_path / "out"), machine_words(tmp_path, world)) == {}
    for part in ("annotations.parquet > row", "README.md", "manifest.json > text", "webdataset/"):
        assert any(path.startswith(part) for path in looked_at), part


@pytest.mark.django_db
def test_the_archive_that_is_made_for_the_page_names_nobody(world, tmp_path, client):
    release = world.campaign.releases.get()
    options = ExportOptions(formats=("crochum", "parquet", "sft"), tar=True)
    export = request_export(release=release, options=options, actor=world.people[0])
    assert run_export(export_id=export.pk)
    export = ReleaseExport.objects.get()
    with default_storage.open(export.file) as stream:
        found = dict(contents(export.file, stream.read()))
    assert any("crochum.tar.gz > crochum.tar > croc_hum/" in path for path in found)
    assert told_in(iter(found.items()), machine_words(tmp_path, world)) == {}
    # What a visitor may take from the page beside it.
    release.is_public = True
    type(release).objects.filter(pk=release.pk).update(is_public=True)
    taken = {}
    for name in ("detail", "citation"):
        answer = client.get(reverse(f"releases:{name}", args=[release.name, release.version]))
        assert answer.status_code == 200
        taken[name] = answer.content + repr(answer.headers).encode()
    assert told_in(iter(taken.items())) == {}


@pytest.mark.django_db
@pytest.mark.parametrize("tool", TOOLS)
def test_the_tasks_for_other_tools_name_nobody(world, tmp_path, tool):
    call_command("export_tasks", "--tool", tool, "--out", str(tmp_path / "out"))
    found = list(contents_of(tmp_path / "out"))
    assert len({path for path, _ in found if path.endswith(".jpg > metadata")}) == 1
    assert told_in(iter(found), (*places(tmp_path), "FLUX_1")) == {}


@pytest.mark.django_db
@pytest.mark.parametrize("form", [["--gzip"], ["--format", "parquet"]], ids=["tables", "parquet"])
def test_score_tables_name_nobody(world, tmp_path, form):
    call_command("run_benchmark", "--metric", "random", "--release", "croc")
    for model in apps.get_app_config("benchmark").get_models():
        if model.__name__ == "MetricRun":
            model.objects.update(environment={"host": NAME}, error=NAME)
    call_command("export_scores", str(tmp_path / "out"), "--release", "croc", *form)
    found = list(contents_of(tmp_path / "out"))
    assert len(found) > 4
    assert told_in(iter(found), places(tmp_path)) == {}


@pytest.mark.parametrize("codec", ["PNG", "JPEG", "WEBP"])
@pytest.mark.parametrize("wanted", ["png", "jpeg", "webp"])
def test_a_re_encoded_image_keeps_none_of_its_metadata(codec, wanted):
    from types import SimpleNamespace

    data = named_image(codec)
    ending = codec.lower()
    assert told_in(contents(f"x.{ending}", data))
    record = SimpleNamespace(width=24, height=24, suffix=f".{ending}")
    small = reencoded(data, record, ExportOptions(image_format=wanted, max_side=16))
    assert told_in(contents(f"x.{wanted}", small)) == {}


def _hidden() -> dict[str, bytes]:
    """The same name in places where a plain search of bytes does not see it."""
    secret = f"{NAME} 🙂".encode()
    tar, archive, table = io.BytesIO(), io.BytesIO(), io.BytesIO()
    with tarfile.open(fileobj=tar, mode="w:gz") as file:
        info = tarfile.TarInfo("a.txt")
        info.size = len(secret)
        file.addfile(info, io.BytesIO(secret))
    owned = io.BytesIO()
    with tarfile.open(fileobj=owned, mode="w:gz") as file:
        info = tarfile.TarInfo("a.txt")
        info.uname = NAME
        file.addfile(info, io.BytesIO())
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("a.txt", secret)
    pq.write_table(pa.table({"x": [secret.decode()] * 9}), table, compression="zstd")
    cells = pa.array([{"bytes": named_image(), "path": "a.png"}])
    images = io.BytesIO()
    pq.write_table(pa.table({"image": cells}), images, compression="zstd")
    escaped = json.dumps({"x": f"é{NAME}"}).replace("lovelace", "\\u006covelace").encode()
    return {
        "x.gz": gzip.compress(secret), "x.tar.gz": tar.getvalue(), "y.tar.gz": owned.getvalue(),
        "x.zip": archive.getvalue(), "x.parquet": table.getvalue(), "y.parquet": images.getvalue(),
        "x.json": escaped, "x.jsonl": escaped + b"\n", "x.jpg": named_image("JPEG"),
        f"{NAME}.txt": b"",
    }  # fmt: skip


@pytest.mark.parametrize("name", _hidden())
def test_the_search_sees_what_is_hidden(name):
    assert told_in(contents(name, _hidden()[name]))
    inside = contents(name, _hidden()[name])
    assert any(path != name or NAME in path for path, data in inside if b"lovelace" in data.lower())


@pytest.mark.django_db
def test_pseudonyms_need_the_key(world, settings):
    first = set(world.campaign.releases.get().annotations.values_list("annotator", flat=True))
    settings.PSEUDONYM_KEY = b"another key"
    other = freeze_release(name="other", campaign=world.campaign)
    second = set(other.annotations.values_list("annotator", flat=True))
    assert len(first) == len(second) == 3
    assert not first & second
    assert not Candidate.objects.filter(key__in=first | second).exists()
