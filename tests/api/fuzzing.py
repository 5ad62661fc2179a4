"""Sends generated requests to the API, as one caller, and says where an answer breaks its word.

The requests are made by schemathesis from the API's own description: some fit it, some break it
on purpose. Words in the address lead somewhere most of the time, so that the code behind the
first check is reached. Every answer must be no 5xx, of a listed status, of the listed type, with
the listed headers, and of the listed shape.
"""

from __future__ import annotations

import contextlib
import random
from collections import Counter
from copy import deepcopy
from dataclasses import dataclass, field
from unittest import SkipTest

import schemathesis
from django.core.wsgi import get_wsgi_application
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]


@dataclass
class Fuzzed:
    """What was sent and what came back."""

    requests: int = 0
    statuses: Counter = field(default_factory=Counter)
    reached: set[str] = field(default_factory=set)
    """Operations that answered with success at least once."""
    faults: dict[str, str] = field(default_factory=dict)
    """Operation and kind of fault → the first of its kind."""


def load(spec):
    """The description with the real WSGI application behind it.

    Without its words on sign-in: the generator would put made-up tokens in front of the caller's
    own, and never get past the door. Made-up tokens have tests of their own.
    """
    spec = deepcopy(spec)
    for methods in spec["paths"].values():
        for operation in methods.values():
            operation.pop("security", None)
    spec["components"].pop("securitySchemes", None)
    schema = schemathesis.openapi.from_dict(spec)
    schema.app = get_wsgi_application()
    return schema


def fuzz(*, schema, words, sign_in, examples, seed) -> Fuzzed:
    """Call every operation ``examples`` times with each of the two kinds of input.

    ``sign_in``: the caller's ``headers`` and ``cookies``.
    """
    found = Fuzzed()
    for result in schema.get_all_operations():
        operation = result.ok()
        for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):
            if mode is GenerationMode.NEGATIVE and not _can_be_broken(operation):
                continue
            cases = operation.as_strategy(generation_mode=mode)
            with contextlib.suppress(Unsatisfiable, SkipTest):  # no case to be had after all
                _drive(cases, words, sign_in, examples, f"{seed}{operation.label}{mode}", found)
    return found


def _can_be_broken(operation) -> bool:
    """Whether some input breaks the description: any text fits a plain word in an address.

    The generator would search such operations in vain, for seconds each.
    """
    words = [word.definition["schema"] for word in operation.path_parameters]
    return bool(operation.query or operation.body) or any(w != {"type": "string"} for w in words)


def _drive(cases, words, sign_in, examples, seed, found) -> None:
    chance = random.Random(seed)

    @settings(
        max_examples=examples,
        phases=[Phase.generate],
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(case=cases, real=st.floats(0, 1))
    def send(case, real) -> None:
        for name in case.path_parameters or {}:
            if name in words and real < 0.85:
                case.path_parameters[name] = chance.choice(words[name])
        response = case.call(**sign_in)
        found.requests += 1
        found.statuses[response.status_code] += 1
        if response.status_code < 300:
            found.reached.add(case.operation.label)
        for check in CHECKS:
            try:
                case.validate_response(response, checks=[check])
            except (AssertionError, schemathesis.errors.SchemathesisError) as error:
                place = f"{case.operation.label}: {check.__name__}: {response.status_code}"
                found.faults.setdefault(place, str(error)[:600])
            except BaseExceptionGroup as group:
                place = f"{case.operation.label}: {check.__name__}: {response.status_code}"
                found.faults.setdefault(place, f"{group.exceptions[0]} {group}"[:600])

    send()
