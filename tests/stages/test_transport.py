import asyncio
import itertools
import socket
import threading
from collections.abc import Iterator

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omniduplex.stages.messages import (
    FromWorker,
    StageFatal,
    StageInput,
    StageOutput,
    StageReady,
    ToWorker,
)
from omniduplex.stages.transport import (
    LENGTH,
    MAX_FRAME_BYTES,
    FrameDecoder,
    FrameError,
    FrameProtocol,
    FrameSender,
    encode_frame,
    read_frames,
)

inputs = st.builds(
    StageInput,
    request_id=st.text(max_size=8),
    epoch=st.integers(0, 1000),
    pcm=st.binary(max_size=64),
    text=st.text(max_size=8),
    final=st.booleans(),
)


def slices(data: bytes, cuts: list[int]) -> Iterator[bytes]:
    edges = [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
    for start, end in itertools.pairwise(edges):
        yield data[start:end]


@given(messages=st.lists(inputs, max_size=5), cuts=st.lists(st.integers(0, 10_000), max_size=20))
def test_frames_come_out_whole_however_the_stream_is_sliced(
    messages: list[StageInput], cuts: list[int]
) -> None:
    stream = b"".join(encode_frame(message) for message in messages)
    decoder = FrameDecoder()

    payloads = [payload for data in slices(stream, cuts) for payload in decoder.feed(data)]

    assert [msgspec.msgpack.decode(payload, type=ToWorker) for payload in payloads] == messages
    assert decoder.pending == 0


@given(message=inputs, missing=st.integers(1, 200))
def test_an_unfinished_frame_is_pending(message: StageInput, missing: int) -> None:
    frame = encode_frame(message)
    part = bytes(frame[: max(0, len(frame) - missing)])
    decoder = FrameDecoder()

    assert list(decoder.feed(part)) == []
    assert decoder.pending == len(part)


def test_audio_travels_as_raw_bytes() -> None:
    pcm = bytes(range(256)) * 25

    assert pcm in encode_frame(StageInput("r", pcm=pcm))


def test_a_frame_above_the_limit_is_neither_written_nor_read() -> None:
    with pytest.raises(FrameError, match="more than a frame may have"):
        encode_frame(StageInput("r", pcm=bytes(MAX_FRAME_BYTES)))
    with pytest.raises(FrameError, match="announces a frame of"):
        list(FrameDecoder().feed(LENGTH.pack(MAX_FRAME_BYTES + 1)))


def test_blocking_ends_talk_over_a_socket_in_order() -> None:
    ours, theirs = socket.socketpair()
    big = StageInput("big", pcm=bytes(3 * 1024 * 1024))
    sent = [StageInput(str(index)) for index in range(200)] + [big]
    received: list[bytes] = []
    with theirs:
        reader = threading.Thread(target=lambda: received.extend(read_frames(theirs)))
        reader.start()
        with ours:
            sender = FrameSender(ours)
            for message in sent:
                sender.send(message)
            sender.close(60)
        reader.join(60)

    assert [msgspec.msgpack.decode(payload, type=ToWorker) for payload in received] == sent


def test_a_stream_that_ends_inside_a_frame_is_an_error() -> None:
    ours, theirs = socket.socketpair()
    with theirs:
        with ours:
            ours.sendall(encode_frame(StageInput("r"))[:-1])

        with pytest.raises(FrameError, match="bytes into a frame"):
            list(read_frames(theirs))


def test_sending_to_a_peer_that_is_gone_neither_raises_nor_blocks() -> None:
    ours, theirs = socket.socketpair()
    theirs.close()
    with ours:
        sender = FrameSender(ours)
        for _ in range(1000):
            sender.send(StageInput("r", pcm=bytes(10_000)))
        sender.close(60)


class Peer:
    """A `FrameProtocol` on one end of a socket pair, and the plain other end."""

    def __init__(self) -> None:
        self.received: list[FromWorker] = []
        self.lost = asyncio.Event()
        self.times_lost = 0
        self.protocol = FrameProtocol(FromWorker, self.received.append, self._on_lost)

    async def connect(self) -> socket.socket:
        ours, theirs = socket.socketpair()
        loop = asyncio.get_running_loop()
        await loop.create_unix_connection(lambda: self.protocol, sock=ours)
        return theirs

    def _on_lost(self) -> None:
        self.times_lost += 1
        self.lost.set()

    async def closed(self) -> None:
        async with asyncio.timeout(60):
            await self.lost.wait()


@pytest.mark.anyio
async def test_the_asyncio_end_reads_everything_before_it_reports_the_loss() -> None:
    peer = Peer()
    outputs = [StageReady(0.5), StageOutput("r", pcm=bytes(1_000_000)), StageOutput("r", text="x")]
    with await peer.connect() as theirs:
        sender = FrameSender(theirs)
        for output in outputs:
            sender.send(output)
        await asyncio.to_thread(sender.close, 60)

    await peer.closed()

    assert peer.received == outputs
    assert peer.times_lost == 1


@pytest.mark.anyio
async def test_the_last_words_of_a_peer_are_heard_though_we_speak_to_it_when_it_is_gone() -> None:
    peer = Peer()
    outputs = [StageOutput("r", pcm=bytes(100_000)), StageFatal("no memory")]
    with await peer.connect() as theirs:
        for output in outputs:
            theirs.sendall(encode_frame(output))
    for _ in range(10):
        peer.protocol.send(StageInput("r", pcm=bytes(100_000)))
    await peer.closed()

    assert peer.received == outputs
    assert peer.times_lost == 1


@pytest.mark.anyio
async def test_the_asyncio_end_writes_frames_and_drops_them_once_it_is_closed() -> None:
    peer = Peer()
    with await peer.connect() as theirs:
        peer.protocol.send(StageInput("r", pcm=b"12"))
        first = await asyncio.to_thread(next, read_frames(theirs))
    await peer.closed()
    peer.protocol.send(StageInput("r"))
    peer.protocol.abort()

    assert msgspec.msgpack.decode(first, type=ToWorker) == StageInput("r", pcm=b"12")
    assert peer.times_lost == 1


@pytest.mark.anyio
@pytest.mark.parametrize("garbage", [b"\xff\xff\xff\xff", LENGTH.pack(1) + b"\xc1"])
async def test_a_peer_that_breaks_the_protocol_is_cut_off(
    garbage: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    peer = Peer()
    with await peer.connect() as theirs:
        theirs.sendall(garbage)
        await peer.closed()

    assert peer.received == []
    assert "broke the protocol" in caplog.text
