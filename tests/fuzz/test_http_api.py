"""No request makes a server fail, and every answer is one that it describes.

`make fuzz` asks many times as often.
"""

from __future__ import annotations

import pytest
from tests.fuzz.http_api import probe
from tests.fuzz.served import served_echo

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

EXAMPLES = 10
WITHOUT_A_KEY = {"GET /health", "GET /metrics", "GET /v1/models", "GET /v1/models/{model}"}


@pytest.mark.parametrize(
    ("mode", "taken"),
    [
        ("duplex", {"POST /v1/chat/completions"}),
        (
            "turn",
            {
                "POST /v1/chat/completions",
                "POST /v1/audio/speech",
                "POST /v1/audio/transcriptions",
            },
        ),
    ],
)
def test_every_described_operation_answers_as_described(mode: str, taken: set[str]) -> None:
    with served_echo(mode) as base:
        probed = {one.operation: one.answers for one in probe(base, EXAMPLES)}

    assert probed.keys() == WITHOUT_A_KEY | taken
    for operation, answers in probed.items():
        assert answers.get(200), operation
    for operation in taken:
        assert answers_refused(probed[operation]), operation


def answers_refused(answers: dict[int, int]) -> int:
    return sum(count for status, count in answers.items() if 400 <= status < 500)
