"""Requests that a server's own description allows, and such that it does not (`schemathesis`)."""

from __future__ import annotations

from collections import Counter
from typing import Any

import msgspec
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schemathesis import APIOperation, Case, GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.core.result import Ok
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from tests.fuzz.corpus import wavs

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]
# Far beyond what any answer takes, on any machine.
TIMEOUT_S = 60.0

# Files are WAVs, sound or broken, more often than noise.
schemathesis.openapi.format("binary", st.sampled_from(wavs()) | st.binary())


class Probed(msgspec.Struct, frozen=True, kw_only=True):
    """The answers to one operation: how many there were of each status."""

    operation: str
    answers: dict[int, int]


def probe(base: str, examples: int) -> list[Probed]:
    """Ask every described operation so often, in both ways.

    Raises:
        schemathesis.errors.SchemathesisError, or an exception group of failures: an answer was a
            fault of the server (5xx), or none that the description has.
    """
    described = schemathesis.openapi.from_url(f"{base}/openapi.json")
    probed = []
    for found in described.get_all_operations():
        assert isinstance(found, Ok), found
        probed.append(_probe(found.ok(), examples))
    return probed


def _probe(operation: APIOperation[Any, Any, Any, Any], examples: int) -> Probed:
    answers: Counter[int] = Counter()
    modes = [GenerationMode.POSITIVE]
    if operation.body or operation.path_parameters:
        modes.append(GenerationMode.NEGATIVE)
    for mode in modes:

        @settings(
            max_examples=examples,
            deadline=None,
            database=None,
            derandomize=True,
            suppress_health_check=list(HealthCheck),
        )
        @given(case=operation.as_strategy(generation_mode=mode))
        def ask(case: Case[Any]) -> None:
            response = case.call(timeout=TIMEOUT_S)
            answers[response.status_code] += 1
            case.validate_response(response, checks=CHECKS)

        ask()
    return Probed(operation=operation.label, answers=dict(sorted(answers.items())))
