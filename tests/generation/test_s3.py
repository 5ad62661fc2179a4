"""Images on S3, against a real endpoint on loopback: whole, signed, in parts, through a lost connection."""

from __future__ import annotations

import io
import secrets
import threading
import time
import urllib.request
from collections.abc import Iterator

import boto3
import numpy as np
import pytest
from botocore.config import Config
from django.core.management import call_command
from django.urls import reverse
from moto.server import ThreadedMotoServer
from PIL import Image

from croc_annotate.candidates.models import Candidate
from croc_annotate.candidates.services import store_image
from croc_annotate.candidates.serving import image_response
from croc_annotate.candidates.storage import read_file, storage_errors, write_file
from croc_annotate.candidates.tasks import sweep_left_files
from croc_annotate.lib.hashing import sha256_bytes
from generation.patience import patiently
from tests import factories
from tests.generation import fakes
from tests.generation.real_worker import Proxy

pytestmark = [
    pytest.mark.django_db,
    # moto and botocore leave sockets of their pools to the garbage collector
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]


class Bucket:
    """A bucket behind a proxy that can be cut."""

    def __init__(self) -> None:
        self.server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
        self.server.start()
        host, port = self.server.get_host_and_port()
        self.proxy = Proxy((host, port))
        self.direct = boto3.client(
            "s3", endpoint_url=f"http://{host}:{port}", region_name="us-east-1",
            aws_access_key_id="k", aws_secret_access_key="s",
        )  # fmt: skip
        self.name = f"images-{secrets.token_hex(4)}"  # the endpoint outlives a test
        self.direct.create_bucket(Bucket=self.name)

    @property
    def names(self) -> set[str]:
        return {o["Key"] for o in self.direct.list_objects_v2(Bucket=self.name).get("Contents", [])}

    def close(self) -> None:
        self.proxy.close()
        self.server.stop()


@pytest.fixture
def bucket(settings) -> Iterator[Bucket]:
    made = Bucket()
    settings.STORAGES = {
        **settings.STORAGES,
        "default": {
            "BACKEND": "storages.backends.s3.S3Storage",
            "OPTIONS": {
                "bucket_name": made.name,
                "endpoint_url": f"http://127.0.0.1:{made.proxy.port}",
                "access_key": "k",
                "secret_key": "s",
                "region_name": "us-east-1",
                "addressing_style": "path",
                "file_overwrite": True,
                "querystring_expire": 900,
                "client_config": Config(
                    retries={"max_attempts": 1}, connect_timeout=30, read_timeout=60,
                    signature_version="s3v4", s3={"addressing_style": "path"},
                ),
            },
        },
    }  # fmt: skip
    yield made
    made.close()


def big_png() -> bytes:
    """About 11 MB: larger than the size from which S3 uploads go in parts."""
    pixels = np.random.default_rng(1).integers(0, 256, (1900, 1900, 3), np.uint8)
    out = io.BytesIO()
    Image.fromarray(pixels).save(out, "PNG", compress_level=0)
    return out.getvalue()


def test_generation_to_s3_and_signed_addresses_from_there(bucket: Bucket, client) -> None:
    factories.make_pair()
    factories.make_generator("noise", pipeline=fakes.PATH)
    call_command("generate", "--here", "--seeds", "1-3")
    rows = list(Candidate.objects.rendered())
    assert len(rows) == 6
    assert bucket.names == {name for c in rows for name in (c.image, c.display, c.preview)}
    client.force_login(factories.make_user())
    response = client.get(reverse("candidates:display", args=[rows[0].key]))
    assert response.status_code == 302
    assert "X-Amz-Signature" in response["Location"]
    assert response["Cache-Control"] == "private, max-age=300"
    with urllib.request.urlopen(response["Location"]) as reply:
        assert reply.read() == read_file(rows[0].display)


def test_a_large_original_goes_up_in_parts_and_comes_back_whole(bucket: Bucket) -> None:
    data = big_png()
    assert len(data) > 8_388_608
    candidate = store_image(
        candidate=factories.make_candidate(rendered=False), data=data, provenance={}
    )
    head = bucket.direct.head_object(Bucket=bucket.name, Key=candidate.image)
    assert head["ETag"].strip('"').endswith("-2")  # S3's mark of an upload in two parts
    assert sha256_bytes(read_file(candidate.image)) == candidate.sha256


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("after", [200_000, 9_000_000])
def test_a_connection_lost_in_the_middle_leaves_no_half_image(bucket: Bucket, after: int) -> None:
    candidate = factories.make_candidate(rendered=False)
    bucket.proxy.cut_after = after
    states: list[str] = []

    def come_back() -> None:
        from django.db import connection

        assert bucket.proxy.was_cut.wait(120)
        time.sleep(1)
        candidate.refresh_from_db()
        states.append(candidate.state)
        bucket.proxy.join()
        connection.close()

    other_side = threading.Thread(target=come_back)
    other_side.start()
    data = big_png()
    stored = patiently(
        lambda: store_image(candidate=candidate, data=data, provenance={}), limit=200
    )
    other_side.join()
    assert states == ["requested"]
    assert stored.state == "rendered"
    assert sha256_bytes(read_file(stored.image)) == stored.sha256 == sha256_bytes(data)
    assert bucket.names == {stored.image, stored.display, stored.preview}


def test_an_upload_in_parts_that_was_broken_off_is_ended_and_its_parts_are_freed(
    bucket: Bucket,
) -> None:
    candidate = factories.make_candidate(rendered=False)
    bucket.proxy.cut_after = 9_000_000  # after the first part of 8 MB
    with pytest.raises(storage_errors()):
        store_image(candidate=candidate, data=big_png(), provenance={})
    candidate.refresh_from_db()
    begun = bucket.direct.list_multipart_uploads(Bucket=bucket.name)["Uploads"]
    assert [upload["Key"] for upload in begun] == [candidate.image]
    bucket.proxy.join()
    patiently(lambda: store_image(candidate=candidate, data=big_png(), provenance={}), limit=200)
    assert sweep_left_files() == 0  # its names are kept in mind for an hour
    assert "Uploads" not in bucket.direct.list_multipart_uploads(Bucket=bucket.name)
    candidate.refresh_from_db()
    assert candidate.state == "rendered"
    assert bucket.names == {candidate.image, candidate.display, candidate.preview}


def test_an_upload_that_the_store_completes_after_its_sender_gave_up_is_removed(
    bucket: Bucket,
) -> None:
    candidate = factories.make_candidate(rendered=False)
    bucket.proxy.cut_after = 200_000
    with pytest.raises(storage_errors()):
        store_image(candidate=candidate, data=big_png(), provenance={})
    candidate.refresh_from_db()
    late = candidate.image
    bucket.proxy.join()
    store_image(candidate=candidate, data=factories.png_bytes(), provenance={})
    bucket.direct.put_object(Bucket=bucket.name, Key=late, Body=b"late")
    sweep_left_files()
    candidate.refresh_from_db()
    assert bucket.names == {candidate.image, candidate.display, candidate.preview}


@pytest.mark.field_case(19)
@pytest.mark.parametrize(
    "name", ["a+b.jpg", "100%.jpg", "a#b.jpg", "a?b=c.jpg", "a b.jpg", "é.jpg", "漢.jpg"]
)
def test_signed_addresses_work_for_names_with_odd_characters(bucket: Bucket, rf, name: str) -> None:
    write_file(f"display/{name}", b"bytes")
    location = image_response(rf.get("/"), name=f"display/{name}")["Location"]
    with urllib.request.urlopen(location) as reply:
        assert reply.read() == b"bytes"
