"""Turns that the client ends: its commits."""

from __future__ import annotations

from omniduplex.engine.duplex.session.append_overlap import AppendOverlap
from omniduplex.engine.duplex.session.commit_fanout import CommittedTurn
from omniduplex.engine.duplex.session.committed_turns import CommittedTurns
from omniduplex.engine.duplex.session.core import SessionCore
from omniduplex.engine.duplex.session.listening import tell_listening
from omniduplex.engine.duplex.session.open_turn import Given, Heard, OpenTurn
from omniduplex.protocol.duplex import Commit, DuplexError, InputCommit


class ClientCommits:
    """Seals the open turn when its client says that it is over (wire contract, section 7.2)."""

    def __init__(
        self, core: SessionCore, turn: OpenTurn, appends: AppendOverlap, committed: CommittedTurns
    ) -> None:
        self._core = core
        self._turn = turn
        self._appends = appends
        self._committed = committed

    def check(self, command: Commit | InputCommit) -> None:
        """Refuse a commit of nothing, unless it says itself that there was no speech.

        Raises:
            DuplexError: `input_audio_buffer_empty`.
        """
        heard = self._turn.heard
        has_sound = heard.buffered_ms > 0 or heard.ignored_ms > 0 or self._appends.keeps
        there_is_some = heard.speech if self._core.config.decides_turns else has_sound
        if not there_is_some and command.is_speech is not False:
            raise DuplexError(
                "input_audio_buffer_empty",
                "input_audio_buffer.commit requires a non-empty input audio buffer.",
            )

    def seal(self, command: Commit | InputCommit, *, heard_ms: int) -> None:
        """Commit the open turn, which was checked; all audio so far lasts `heard_ms`."""
        if command.is_speech is False:
            self._appends.forget()
        sealed = self._appends.seal(alone=self._turn.heard.buffered_ms <= 0)
        self._turn.give(Given(sealed.pcm, speech=True, words=sealed.words))
        item_id = self._turn.item_id
        # The contract has 0 here (section 2, event 10), the OpenAI API where the speech ended.
        self._turn.fall_silent(0 if self._core.config.knows_extensions else heard_ms)
        heard = self._turn.over()
        if command.is_speech is False or not heard.speech:
            self._seal_silence(item_id, heard, is_ack=sealed.is_ack)
            return
        works = self._core.model.plan_commit(self._core.fence, item_id)
        turn = CommittedTurn(
            item_id=item_id,
            transcript=heard.transcript,
            audio_ms=heard.buffered_ms,
            overlap_deferred=sealed.is_deferred,
        )
        self._committed.seal(turn, wants_response=self._wants_response(command))
        self._core.run(works)

    def _seal_silence(self, item_id: str, heard: Heard, *, is_ack: bool) -> None:
        """A turn without speech, or one that was but an acknowledgement of the answer."""
        self._core.run(self._core.model.plan_clear(self._core.fence))
        silent = CommittedTurn(
            item_id=item_id,
            transcript="",
            audio_ms=heard.buffered_ms,
            is_speech=False,
            overlap_ack=is_ack,
        )
        self._committed.seal(silent, wants_response=False)
        if not is_ack:
            tell_listening(self._core, "silence_or_noise")

    def _wants_response(self, command: Commit | InputCommit) -> bool:
        if command.response_create is not None:
            return command.response_create
        return self._core.config.auto_response
