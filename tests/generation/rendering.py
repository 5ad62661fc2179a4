"""Rendering in the tests' own process, with a generator of noise."""

from __future__ import annotations

import io
import json
from datetime import timedelta

from django.core.management import call_command
from django.utils import timezone

from croc_annotate.candidates.models import Candidate, Generator
from tests import factories
from tests.generation import fakes


def make_generator(slug: str = "noise", **extra: object) -> Generator:
    return factories.make_generator(
        slug, pipeline=fakes.PATH, model_id="m/noise", settings={"batch_size": 4, "extra": extra}
    )


def generate(*arguments: str) -> dict:
    out = io.StringIO()
    call_command("generate", *arguments, "--here", "--json", stdout=out)
    return json.loads(out.getvalue())


def states() -> dict[int, str]:
    return dict(Candidate.objects.values_list("seed", "state"))


def claims_time(seconds: float):
    return timezone.now() + timedelta(seconds=seconds)
