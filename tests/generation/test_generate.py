from __future__ import annotations

import io
import itertools
import json
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from PIL import Image

from croc_annotate.candidates import claims, services
from croc_annotate.candidates.models import Candidate, Generator, Worker
from croc_annotate.candidates.storage import read_file
from croc_annotate.lib.hashing import sha256_bytes
from generation.finishing import PNG_KEY
from tests import factories
from tests.generation import fakes
from tests.generation.rendering import claims_time, generate, make_generator

pytestmark = pytest.mark.django_db


def test_both_sides_of_each_pair_are_rendered_for_each_seed_and_generator(settings) -> None:
    factories.make_pair(), factories.make_pair("negation")
    make_generator("one"), make_generator("two")
    result = generate("--seeds", "1-5")
    assert result["rendered_now"] == 2 * 2 * 2 * 5
    assert set(Candidate.objects.values_list("pair__category", "side")) == {
        ("counting", "prompt"),
        ("counting", "contrast"),
        ("negation", "prompt"),
        ("negation", "alt_contrast"),
    }
    files = [path for path in Path(settings.MEDIA_ROOT).rglob("*") if path.is_file()]
    assert len(files) == 40 * 3
    for candidate in Candidate.objects.all():
        assert sha256_bytes(read_file(candidate.image)) == candidate.sha256


def test_negation_is_drawn_from_its_positive_rewording() -> None:
    pair = factories.make_pair("negation", alt_contrast="an empty kitchen table")
    make_generator()
    generate("--seeds", "1")
    candidate = Candidate.objects.get(side="alt_contrast")
    assert candidate.provenance["text"] == "an empty kitchen table"
    assert candidate.own_text == pair.contrast


def test_a_second_run_makes_nothing_and_a_wider_one_only_what_is_missing() -> None:
    factories.make_pair()
    make_generator()
    generate("--seeds", "1-3")
    before = set(Candidate.objects.values_list("pk", "sha256"))
    assert generate("--seeds", "1-3")["rendered_now"] == 0
    assert set(Candidate.objects.values_list("pk", "sha256")) == before
    assert generate("--seeds", "2-6,9")["rendered_now"] == 2 * 4
    assert before < set(Candidate.objects.values_list("pk", "sha256"))


def test_a_dry_run_counts_and_changes_nothing(capsys) -> None:
    factories.make_pair()
    make_generator()
    call_command("generate", "--dry-run", "--seeds", "1-50")
    assert (
        "Of 100 wanted: 0 rendered, 0 waiting, 0 failed, 100 not asked for"
        in capsys.readouterr().out
    )
    assert not Candidate.objects.exists()


def test_provenance_stands_in_the_row_and_in_the_file() -> None:
    pair = factories.make_pair()
    make_generator()
    generate("--seeds", "7")
    candidate = Candidate.objects.get(side="prompt")
    inside = json.loads(Image.open(io.BytesIO(read_file(candidate.image))).text[PNG_KEY])
    assert inside == candidate.provenance
    assert inside["model_id"] == "m/noise"
    assert (inside["seed"], inside["text"]) == (7, pair.prompt)
    assert inside["settings"]["batch_size"] == 4
    assert inside["image"] == {"seconds": 0.01}
    assert inside["worker"]
    assert b"m/noise" not in read_file(candidate.display)


def test_the_pixels_of_the_file_are_those_of_the_pipeline() -> None:
    pair = factories.make_pair()
    make_generator()
    generate("--seeds", "3")
    stored = Image.open(io.BytesIO(read_file(Candidate.objects.get(side="prompt").image)))
    assert stored.tobytes() == fakes.noise(pair.prompt, 3).tobytes()


def test_a_pipeline_is_loaded_once_and_works_text_by_text(tmp_path: Path) -> None:
    pairs = [factories.make_pair() for _ in range(3)]
    log = tmp_path / "log"
    make_generator("one", log=str(log)), make_generator("two", log=str(log))
    generate("--seeds", "1-9")
    lines = log.read_text().splitlines()
    assert [line for line in lines if not line.startswith("render")] == [
        "load one", "close one", "load two", "close two",
    ]  # fmt: skip
    texts = [line.rsplit(" ", 1)[0] for line in lines if line.startswith("render")]
    changes = sum(a != b for a, b in itertools.pairwise(texts))
    assert changes == 2 * 2 * len(pairs) - 1


def test_what_a_living_worker_holds_is_left_to_it() -> None:
    factories.make_pair()
    generator = make_generator()
    generate("--seeds", "1")
    held = factories.make_candidate(
        pair=Candidate.objects.first().pair,
        generator=generator,
        seed=2,
        rendered=False,
        claimed_by="other#1",
        claimed_until=claims_time(+60),
    )
    generate("--seeds", "1-2")
    held.refresh_from_db()
    assert (held.state, held.claimed_by) == ("requested", "other#1")


@pytest.mark.field_case(46)
def test_what_a_dead_worker_held_is_taken_over() -> None:
    factories.make_pair()
    generator = make_generator()
    pair = factories.make_pair()
    factories.make_candidate(
        pair=pair, generator=generator, seed=2, rendered=False,
        claimed_by="dead#1", claimed_until=claims_time(-1), attempts=1,
    )  # fmt: skip
    generate("--seeds", "2")
    candidate = Candidate.objects.get(pair=pair, side="prompt")
    assert (candidate.state, candidate.attempts) == ("rendered", 2)


def test_the_worker_of_a_run_says_hello_and_good_bye() -> None:
    factories.make_pair()
    make_generator()
    generate("--seeds", "1-2")
    worker = Worker.objects.get()
    assert (worker.queue, worker.device, worker.images_done) == ("here", "noise", 4)
    assert worker.stopped_at is not None


@pytest.mark.parametrize(
    ("arguments", "reason", "code"),
    [
        (["--seeds", "9-1"], "runs backwards", 2),
        (["--seeds", "a"], "neither a seed nor a range", 2),
        (["--category", "colour"], "No category is called colour", 2),
        (["--generator", "DALL_E_9"], "No generator is called 'DALL_E_9'", 2),
        (["--generator", "imported"], "made elsewhere", 1),
        (["--generator", "off"], "switched off", 1),
        (["--bank", "nowhere"], "No active pair fits", 1),
    ],
)
def test_a_wrong_call_is_explained(arguments: list[str], reason: str, code: int) -> None:
    factories.make_pair()
    factories.make_generator("imported")
    factories.make_generator("off", pipeline=fakes.PATH, active=False)
    with pytest.raises(CommandError, match=reason) as raised:
        call_command("generate", *arguments)
    assert raised.value.returncode == code


def test_settings_that_nobody_knows_are_refused_before_anything_is_drawn() -> None:
    factories.make_pair()
    factories.make_generator("odd", pipeline=fakes.PATH, settings={"stepps": 4})
    with pytest.raises(CommandError, match="Unknown setting stepps"):
        generate("--seeds", "1")


def test_the_published_generators_are_there_by_name() -> None:
    factories.make_pair()
    call_command(
        "generate",
        "--dry-run",
        "--generator",
        "FLUX_1_dev",
        "--generator",
        "stable_diffusion_3_5_large",
    )
    flux = Generator.objects.get(slug="FLUX_1_dev")
    assert (flux.pipeline, flux.settings["steps"], flux.settings["guidance"]) == ("flux", 50, 3.5)
    large = Generator.objects.get(slug="stable_diffusion_3_5_large")
    assert (large.settings["steps"], large.settings["max_sequence_length"]) == (28, 256)


def test_without_a_generator_the_remedy_is_named() -> None:
    factories.make_pair()
    with pytest.raises(CommandError, match="--generator FLUX_1_dev"):
        call_command("generate", "--here")


def test_a_claim_counts_seconds_not_messages() -> None:
    group = claims.Group(make_generator().pk, factories.make_pair().pk, "prompt")
    rows = [
        factories.make_candidate(
            pair_id=group.pair_id, pair=Candidate._meta.get_field("pair").related_model.objects.get(pk=group.pair_id),
            generator=Generator.objects.get(pk=group.generator_id), seed=seed, rendered=False,
        )
        for seed in (3, 1, 2)
    ]  # fmt: skip
    now, lease = claims_time(0), claims_lease()
    first = claims.claim_batch(group=group, worker="a", limit=2, at=now, lease=lease)
    second = claims.claim_batch(group=group, worker="b", limit=2, at=now, lease=lease)
    third = claims.claim_batch(group=group, worker="c", limit=2, at=now, lease=lease)
    assert [c.seed for c in first.candidates] == [1, 2]
    assert [c.seed for c in second.candidates] == [3]
    assert third.candidates == []
    later = now + lease * 1.5
    assert claims.renew_claims(worker="a", at=now + lease * 0.9, lease=lease) == 2
    taken = claims.claim_batch(group=group, worker="c", limit=9, at=later, lease=lease)
    assert [c.seed for c in taken.candidates] == [3]
    assert not services.fail_candidate(candidate=rows[0], reason="late", claim=second.token)
    assert claims.release_claim(token=taken.token) == 1
    assert claims.waiting_groups(at=later) == [group]


def claims_lease():
    from datetime import timedelta

    return timedelta(seconds=60)
