from __future__ import annotations

import secrets

import pytest

from omniduplex.entrypoints.duplex.credential import TOKEN_BYTES, ResumeCredential


@pytest.fixture
def credential() -> ResumeCredential:
    return ResumeCredential(secrets.token_bytes)


def test_a_token_is_256_random_bits_for_urls() -> None:
    token = ResumeCredential(lambda count: bytes(range(count))).issue()

    assert TOKEN_BYTES * 8 == 256
    assert token == "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8"


@pytest.mark.parametrize("is_free", [True, False])
def test_only_the_token_opens(credential: ResumeCredential, is_free: bool) -> None:
    token = credential.issue()

    assert credential.opens(token, is_free=is_free)
    for other in ("", token[:-1], token + "A", "ü", "\ud800"):
        assert not credential.opens(other, is_free=is_free)


def test_a_replaced_token_opens_only_while_nobody_is_attached_and_nothing_arrived(
    credential: ResumeCredential,
) -> None:
    first = credential.issue()
    second = credential.issue(first)

    assert credential.opens(second, is_free=False)
    assert not credential.opens(first, is_free=False)
    assert credential.opens(first, is_free=True)
    credential.arrived()
    assert not credential.opens(first, is_free=True)
    assert credential.opens(second, is_free=True)


def test_a_client_that_misses_two_successors_still_has_its_token(
    credential: ResumeCredential,
) -> None:
    first = credential.issue()
    second = credential.issue(first)
    third = credential.issue(first)

    assert credential.opens(first, is_free=True)
    assert not credential.opens(second, is_free=True)
    assert credential.opens(third, is_free=True)


def test_no_token_is_kept(credential: ResumeCredential) -> None:
    token = credential.issue(credential.issue())

    assert token.encode() not in [
        value for value in vars(credential).values() if isinstance(value, bytes)
    ]
