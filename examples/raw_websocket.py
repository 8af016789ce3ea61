"""The OpenAI Realtime API by hand: raw_websocket.py URL MODEL QUESTION.wav (24 kHz) ANSWER.wav."""

import base64
import json
import sys
import wave
from contextlib import suppress

from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

if len(sys.argv) != 5:
    sys.exit(__doc__)
url, model, question, answer = sys.argv[1:]
with wave.open(question, "rb") as reader:
    pcm, audio = reader.readframes(reader.getnframes()), bytearray()
with connect(f"{url}/v1/realtime?model={model}") as socket:

    def send(kind: str, **fields: object) -> None:
        with suppress(ConnectionClosed):  # why it was closed is read below
            socket.send(json.dumps({"type": kind, **fields}))

    manual = {"input": {"turn_detection": None}}  # our commit ends the turn
    send("session.update", session={"type": "realtime", "audio": manual})
    for at in range(0, len(pcm), 4800):  # 100 ms of mono PCM16
        send("input_audio_buffer.append", audio=base64.b64encode(pcm[at : at + 4800]).decode())
    send("input_audio_buffer.commit")
    send("response.create")
    for event in map(json.loads, socket):
        if event["type"] == "error":
            sys.exit(event["error"]["message"])
        if event["type"] == "response.output_audio.delta":
            audio += base64.b64decode(event["delta"])
        if event["type"] == "response.output_audio_transcript.done":
            print(event["transcript"])
        if event["type"] == "response.done":
            break
with wave.open(answer, "wb") as writer:
    writer.setparams((1, 2, 24000, 0, "NONE", ""))
    writer.writeframes(audio)
