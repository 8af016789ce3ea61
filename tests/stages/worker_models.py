"""Stage models for tests: importable by their dotted path in a worker process too."""

import ctypes
import os
import re
import signal
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from omniduplex.stages.messages import StageAbort, StageInput, StageMessage, StageOutput
from omniduplex.stages.model import Emit, StageModel


def path_of(model_class: type[StageModel]) -> str:
    return f"tests.stages.worker_models:{model_class.__name__}"


class EchoModel(StageModel):
    """Gives back what it gets; some texts make it do other things."""

    class Options(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
        prefix: str = ""

    def load(self) -> None:
        pass

    def step(self, batch: Sequence[StageMessage]) -> None:
        for message in batch:
            if isinstance(message, StageInput):
                self._answer(message)

    def _answer(self, message: StageInput) -> None:
        command, _, argument = message.text.partition(" ")
        match command:
            case "raise":
                raise RuntimeError(argument)
            case "exit":
                os._exit(int(argument))
            case "count":
                for index in range(int(argument)):
                    self.emit(StageOutput(message.request_id, text=str(index)))
            case "speak_for":
                self.emit(StageOutput(argument, text="late"))
            case "fork":
                if os.fork() == 0:
                    Path(argument).read_bytes()
                    os._exit(0)
            case "nice":
                self.emit(StageOutput(message.request_id, text=str(os.nice(0))))
            case "sigint":
                os.kill(os.getpid(), signal.SIGINT)
        self.emit(
            StageOutput(
                message.request_id,
                epoch=message.epoch,
                pcm=message.pcm,
                text=self.options.prefix + message.text,
                finished=message.final,
            )
        )

    def close(self) -> None:
        pass


class BrokenModel(EchoModel):
    def load(self) -> None:
        raise OSError("the weights are not there")


class DyingModel(EchoModel):
    def load(self) -> None:
        os._exit(7)


class SlowModel(EchoModel):
    """Does not finish loading before the file `go` exists (a FIFO: opening it waits)."""

    class Options(EchoModel.Options, frozen=True, kw_only=True, forbid_unknown_fields=True):
        go: str

    def load(self) -> None:
        Path(self.options.go).read_bytes()


class GatedModel(EchoModel):
    """Emits when a step begins, and ends the step only when the FIFO `go` is written to."""

    class Options(EchoModel.Options, frozen=True, kw_only=True, forbid_unknown_fields=True):
        go: str

    def step(self, batch: Sequence[StageMessage]) -> None:
        ids = [m.request_id for m in batch if isinstance(m, StageInput)]
        self.emit(StageOutput("gate", text=" ".join(ids)))
        Path(self.options.go).read_bytes()
        super().step(batch)


class OnceGatedModel(GatedModel):
    """Waits for `go` in its first step alone."""

    def load(self) -> None:
        self._has_waited = False

    def step(self, batch: Sequence[StageMessage]) -> None:
        if self._has_waited:
            EchoModel.step(self, batch)
        else:
            self._has_waited = True
            super().step(batch)


class HangingModel(EchoModel):
    """Never comes back from a step, nor from `close`, and does not obey SIGTERM."""

    def load(self) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)

    def step(self, batch: Sequence[StageMessage]) -> None:
        self.emit(StageOutput("any", text="hangs"))
        threading.Event().wait()


class SleeplessModel(HangingModel):
    """Hangs, although it says that it never sleeps."""

    sleepless = True


class DeadlockedModel(EchoModel):
    """Sleeps for ever in a step, and lets no other thread of Python run."""

    sleepless = True

    def step(self, batch: Sequence[StageMessage]) -> None:
        ctypes.PyDLL(None).pause()


class GraspingModel(EchoModel):
    """Waits in a step for the end of the FIFO `go`, and lets no other thread of Python run."""

    class Options(EchoModel.Options, frozen=True, kw_only=True, forbid_unknown_fields=True):
        go: str

    def step(self, batch: Sequence[StageMessage]) -> None:
        with open(self.options.go, "rb") as gate:
            ctypes.PyDLL(None).read(gate.fileno(), ctypes.create_string_buffer(1), 1)
        super().step(batch)


class ComputingModel(EchoModel):
    """Computes in a step without letting another thread of Python run, until SIGUSR1.

    It begins when the FIFO `go` is open at its other end too.
    """

    class Options(EchoModel.Options, frozen=True, kw_only=True, forbid_unknown_fields=True):
        go: str

    sleepless = True

    def load(self) -> None:
        signal.signal(signal.SIGUSR1, self._stop_computing)

    def _stop_computing(self, *_: object) -> None:
        raise InterruptedError

    def step(self, batch: Sequence[StageMessage]) -> None:
        try:
            with open(self.options.go, "rb"):
                # Takes 2 ** 60 tries, during which it looks for signals but gives nobody a turn.
                re.match(r"(a+)+$", "a" * 60 + "b")
        except InterruptedError:
            self.emit(StageOutput("r", text="computed"))


class ThreadedModel(EchoModel):
    """Answers from threads of its own, which go on after an abort until they are told to stop."""

    def __init__(self, options: Any, emit: Emit) -> None:
        super().__init__(options, emit)
        self._stop = threading.Event()
        self._threads: list[threading.Thread] = []

    def step(self, batch: Sequence[StageMessage]) -> None:
        for message in batch:
            if isinstance(message, StageAbort):
                self.emit(StageOutput("control", text="saw abort"))
            else:
                thread = threading.Thread(target=self._talk, args=(message.request_id,))
                self._threads.append(thread)
                thread.start()

    def _talk(self, request_id: str) -> None:
        index = 0
        while not self._stop.wait(0.001):
            self.emit(StageOutput(request_id, text=str(index)))
            index += 1

    def close(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()


class PatientModel(StageModel):
    """Says which inputs came in each step; asks for as many steps more as a text has letters."""

    def load(self) -> None:
        self._left = 0

    def step(self, batch: Sequence[StageMessage]) -> bool:
        texts = [message.text for message in batch if isinstance(message, StageInput)]
        self._left = max([self._left - 1, *map(len, texts)])
        self.emit(StageOutput("steps", text=" ".join(texts)))
        return self._left > 0

    def close(self) -> None:
        pass


class NotAModel:
    pass
