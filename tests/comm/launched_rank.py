"""What the launch tests run in each rank: a small script chosen by the payload."""

import json
import os
import signal
import sys
import threading
import time

from pycobre._util.error_record import encode_error, mark_origin
from pycobre.errors import CollectiveFailed
from pycobre.launch.channel import PAYLOAD_FD_VARIABLE, Channel, Kind


def main() -> int:
    stop = threading.Event()
    lost, joined = threading.Event(), threading.Event()

    def on_peer_lost() -> None:
        joined.wait()  # the launcher may be faster than this thread's caller
        assert channel is not None
        time.sleep(script.get("saving_s", 0.0))
        channel.send(Kind.EVENT, b"saved")
        lost.set()

    channel = Channel.inherited(stop.set, lambda: os._exit(70), on_peer_lost)
    assert channel is not None
    joined.set()
    channel.wait_for_payload()
    descriptor = int(os.environ[PAYLOAD_FD_VARIABLE])
    script = json.loads(os.pread(descriptor, 1 << 20, 0))
    backend = os.environ["COBRE_COMM_BACKEND"].upper()
    rank = int(os.environ[f"COBRE_{backend}_RANK"])
    action = script.get(str(rank), script["default"])
    channel.send(Kind.EVENT, f"hello from {rank} of {os.environ[f'COBRE_{backend}_SIZE']}".encode())
    if action == "raise":
        channel.send(Kind.ERROR, encode_error(ValueError("no water")))
        return 1
    if action == "relay":  # an error that rank 0 raised and all ranks raise
        channel.send(Kind.ERROR, encode_error(mark_origin(ValueError("disk full"), 0)))
        return 1
    if action == "echo":
        error = CollectiveFailed("barrier", 0, "rank 1 stalled", rank=1)
        channel.send(Kind.ERROR, encode_error(error))
        return 1
    if action == "forge":
        kind, payload = script["forged"]
        channel.send(kind, bytes.fromhex(payload))
        return 1
    if action == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if action == "exit":
        os._exit(7)
    if action == "stall":
        os.kill(os.getpid(), signal.SIGSTOP)
    if action == "work":
        while time.process_time() < script["seconds"]:
            pass
    if action == "ask":
        channel.send(Kind.EVENT, channel.ask(b"go on?"))
    if action == "solve":  # it hears nothing but on the channel's thread
        lost.wait()
        signal.pause()
    if action == "wait":
        stop.wait()
    channel.send(Kind.RESULT, b"x" * script.get("length", 3))
    channel.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
