"""Code in a real notebook kernel, and the messages that it sends back."""

import json
import subprocess
import sys
from typing import Any

import pytest

DRIVER = """
import json, sys, tempfile
from jupyter_client.manager import KernelManager
sockets = tempfile.TemporaryDirectory()
# Sockets in a directory: a port that is free when the manager looks may be taken when the kernel binds it.
manager = KernelManager(kernel_name="python3", transport="ipc", ip=sockets.name + "/kernel")
manager.start_kernel()
client = manager.client()
client.start_channels()
client.wait_for_ready(timeout=200)
shown = []
def output(message):
    if message["msg_type"] == "error":
        sys.exit("\\n".join(message["content"]["traceback"]))
    shown.append([message["msg_type"], message["content"]])
client.execute_interactive(sys.argv[1], timeout=200, output_hook=output)
client.stop_channels()
manager.shutdown_kernel(now=True)
sockets.cleanup()
print(json.dumps(shown, default=str))
"""


def run_in_kernel(code: str) -> list[tuple[str, dict[str, Any]]]:
    """The kernel's messages, kind and content; an error of the code is one of the test."""
    pytest.importorskip("ipykernel", reason="ipykernel is part of the test extra")
    command = [sys.executable, "-c", DRIVER, code]
    done = subprocess.run(command, capture_output=True, text=True, timeout=250, check=False)
    assert done.returncode == 0, done.stderr
    return [(kind, content) for kind, content in json.loads(done.stdout)]


def printed(messages: list[tuple[str, dict[str, Any]]]) -> str:
    """What the code has printed."""
    return "".join(content["text"] for kind, content in messages if kind == "stream")
