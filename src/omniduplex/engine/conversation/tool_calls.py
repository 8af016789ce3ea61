"""A tool call of a model as an item of the conversation, and the events that tell its arguments."""

from __future__ import annotations

import msgspec

from omniduplex.protocol.duplex import FunctionCallDelta, FunctionCallDone, Item


class CallItem(msgspec.Struct, frozen=True, kw_only=True):
    """A whole call, under the id of its item."""

    item_id: str
    call_id: str
    name: str
    arguments: str

    def opened(self) -> Item:
        """The item before its arguments are told."""
        return Item(
            id=self.item_id,
            type="function_call",
            status="in_progress",
            name=self.name,
            call_id=self.call_id,
            arguments="",
        )

    def told(
        self, response_id: str, output_index: int
    ) -> tuple[FunctionCallDelta, FunctionCallDone]:
        """The arguments, in one piece and as a whole."""
        delta = FunctionCallDelta(
            response_id=response_id,
            item_id=self.item_id,
            output_index=output_index,
            call_id=self.call_id,
            delta=self.arguments,
        )
        done = FunctionCallDone(
            response_id=response_id,
            item_id=self.item_id,
            output_index=output_index,
            call_id=self.call_id,
            name=self.name,
            arguments=self.arguments,
        )
        return delta, done

    def completed(self) -> Item:
        """The item with its arguments."""
        return msgspec.structs.replace(self.opened(), status="completed", arguments=self.arguments)
