"""The main program of a process that answers calls: one JSON object per line in, one per line out.

Whatever the work prints goes to standard error, and so does what its libraries print. A reader thread notices when
the server is gone, also while a call is being answered, and ends the process.

    {"call": "water_value", "arguments": {…}, "most": 1048576}  →  {"answer": {…}}  or  {"error": {…}}
"""

from __future__ import annotations

import argparse
import inspect
import json
import os
import queue
import sys
import threading
import traceback
from functools import cache
from typing import Any, BinaryIO

from pydantic import TypeAdapter, ValidationError

from pycobre.app.mcp import case_calls, result_calls, run_calls, view_calls
from pycobre.app.mcp.desk import Desk
from pycobre.app.mcp.documents import answer_document, failure_document
from pycobre.app.mcp.folder import Folder
from pycobre.errors import OptionError

__all__ = ["functions", "main"]


def functions() -> dict[str, Any]:
    """Everything that can be called, by name."""
    modules = (case_calls, run_calls, result_calls, view_calls)
    found = {each.__name__: each for module in modules for each in module.CALLS}
    return found | {each.__name__: each for each in (*run_calls.INTERNAL, *view_calls.INTERNAL)}


def main(words: list[str] | None = None) -> int:
    """Answer until standard input ends."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--root", required=True)
    parser.add_argument("--writing", action="store_true")
    arguments = parser.parse_args(words)
    incoming, outgoing = _own_streams()
    desk = Desk(Folder(arguments.root), writing=arguments.writing)
    lines: queue.Queue[bytes] = queue.Queue()
    threading.Thread(target=_read, args=(incoming, lines), daemon=True).start()
    while True:
        outgoing.write(_answered(desk, lines.get()) + b"\n")
        outgoing.flush()


def _own_streams() -> tuple[BinaryIO, BinaryIO]:
    """The pipes to the server, moved away from where others read and print."""
    incoming, outgoing = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    os.dup2(2, 1)
    return incoming, outgoing


def _read(incoming: BinaryIO, lines: queue.Queue[bytes]) -> None:
    for line in incoming:
        lines.put(line)
    os._exit(0)  # the server is gone, and with it whoever asked


def _answered(desk: Desk, line: bytes) -> bytes:
    try:
        request = json.loads(line)
        answer = _call(desk, request["call"], request["arguments"])
        data = json.dumps({"answer": answer}).encode()
        most = int(request["most"])
        if len(data) > most:
            raise OptionError(
                f"answer: expected at most {most:,} bytes, got {len(data):,}. Ask for less: a smaller limit, fewer "
                "columns, one plant."
            )
        return data
    except Exception as error:  # noqa: BLE001 - told to the client
        document = failure_document(error, desk.folder.root)
        if document["kind"] == "InternalError":
            traceback.print_exc(file=sys.stderr)
        return json.dumps({"error": document}, default=str).encode()


def _call(desk: Desk, name: str, given: dict[str, Any]) -> Any:
    function = functions()[name]
    types = _types(name)
    try:
        arguments = {key: types[key].validate_python(value) for key, value in given.items()}
    except ValidationError as cause:
        raise OptionError(f"{name}: {cause.errors()[0]['msg']}") from cause
    return answer_document(function(desk, **arguments))


@cache
def _types(name: str) -> dict[str, TypeAdapter[Any]]:
    """What the arguments become: records where the signature says so."""
    signature = inspect.signature(functions()[name], eval_str=True)
    return {
        key: TypeAdapter(parameter.annotation) for key, parameter in list(signature.parameters.items())[1:]
    }


if __name__ == "__main__":
    sys.exit(main())
