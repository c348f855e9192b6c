"""Asking a run to stop: once for the end of the iteration with a checkpoint, twice for at once."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any

__all__ = ["StopSwitch", "catching_signals"]

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class StopSwitch:
    """Remembers that somebody asked the run to stop, and whether it was a signal.

    `on_signal` is called by the first signal, between any two steps of the main thread: it should do little.
    """

    def __init__(self, on_signal: Callable[[], None] | None = None) -> None:
        self._event = threading.Event()
        self._on_signal = on_signal
        self.interrupted = False

    def __call__(self) -> bool:
        return self._event.is_set()

    def set(self) -> None:
        self._event.set()

    def interrupt(self) -> None:
        """A first signal has come."""
        self.interrupted = True
        self.set()
        if self._on_signal is not None:
            self._on_signal()


class catching_signals:
    """While inside, the first SIGINT or SIGTERM flips the switch and calls `on_stop`; the second interrupts.

    Python delivers signals to the main thread only; elsewhere (a notebook's worker thread, a server) this does
    nothing and the application's own handlers stay in charge.
    """

    def __init__(self, switch: StopSwitch, on_stop: Callable[[], None] | None = None) -> None:
        self._switch = switch
        self._on_stop = on_stop
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> StopSwitch:
        if threading.current_thread() is threading.main_thread():
            for number in _SIGNALS:
                self._before[number] = signal.signal(number, self._handle)
        return self._switch

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            # None: the handler was not installed from Python and cannot be put back.
            signal.signal(number, signal.SIG_DFL if handler is None else handler)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self._switch.interrupted:
            raise KeyboardInterrupt
        self._switch.interrupt()
        if self._on_stop is not None:
            self._on_stop()
