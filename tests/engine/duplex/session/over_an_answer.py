"""A session in the middle of an answer, and what is read of what is said over it."""

from tests.engine.duplex.session.driver import SessionDriver

from omniduplex.protocol.duplex import (
    CommitFacts,
    CreateResponse,
    InputCommitted,
    OverlapDecision,
    ResponseDone,
    ResponseOptions,
)

TO_THE_END = CreateResponse(response=ResponseOptions(interruptible=False))


def answering(driver: SessionDriver, ask: CreateResponse | None = None) -> SessionDriver:
    """The model is in the middle of an answer, of which the client has some sound."""
    driver.says("Tell me a story")
    driver.send(ask or CreateResponse())
    driver.model_audio(2000, "Once upon a time there was a king. ")
    driver.events()
    return driver


def decisions(driver: SessionDriver) -> list[tuple[str, str]]:
    return [(event.action, event.reason) for event in driver.of(OverlapDecision)]


def facts_of(driver: SessionDriver) -> CommitFacts:
    facts = driver.last(InputCommitted).event
    assert isinstance(facts, CommitFacts)
    return facts


def statuses(driver: SessionDriver) -> list[str]:
    return [done.response.status for done in driver.of(ResponseDone)]
