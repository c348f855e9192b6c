"""Three hosts with addresses of their own, made of network namespaces: bad links, and links that are cut."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from waiting import until_exists

RANK = Path(__file__).with_name("tcp_hosts.py")
BAD_LINK = Path(__file__).with_name("bad_link.py")
SIZE = 3
ODD = 2
SHORT_S = 10.0
TOKEN = "only for this test"


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True, text=True)


@dataclass
class Network:
    """A switch and three hosts 10.77.0.1 to .3, each a namespace."""

    name: str
    relay: subprocess.Popen[str] | None = None

    def host(self, rank: int) -> str:
        return f"{self.name}-{rank}"

    @property
    def switch(self) -> str:
        return f"{self.name}-switch"

    def build(self) -> None:
        _ip("netns", "add", self.switch)
        _ip("-n", self.switch, "link", "add", "bridge", "type", "bridge")
        _ip("-n", self.switch, "link", "set", "bridge", "up")
        for rank in range(SIZE):
            host, port = self.host(rank), f"port{rank}"
            _ip("netns", "add", host)
            _ip(
                "link",
                "add",
                "eth0",
                "netns",
                host,
                "type",
                "veth",
                "peer",
                "name",
                port,
                "netns",
                self.switch,
            )
            self.plug_in(rank)

    def plug_in(self, rank: int) -> None:
        host, port = self.host(rank), f"port{rank}"
        _ip("-n", self.switch, "link", "set", port, "master", "bridge")
        _ip("-n", self.switch, "link", "set", port, "up")
        _ip("-n", host, "addr", "add", f"10.77.0.{rank + 1}/24", "dev", "eth0")
        _ip("-n", host, "link", "set", "eth0", "up")
        _ip("-n", host, "link", "set", "lo", "up")

    def worsen(self, rank: int) -> str:
        """Give a host's link 50 ms of delay and 1 % of loss; returns by what means."""
        words = ["qdisc", "add", "dev", "eth0", "root", "netem", "delay", "50ms", "loss", "1%"]
        done = subprocess.run(["tc", "-n", self.host(rank), *words], capture_output=True, text=True)
        if done.returncode == 0:
            return "netem"
        if not os.access("/dev/net/tun", os.R_OK | os.W_OK):
            pytest.skip(f"no netem ({done.stderr.strip()}) and no /dev/net/tun to make a bad link with")
        _ip("-n", self.switch, "link", "del", f"port{rank}")
        ends = [self.host(rank), "eth0", self.switch, f"port{rank}"]
        command = [sys.executable, str(BAD_LINK), *ends, "50", "0.01"]
        self.relay = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self.relay.stdout is not None
        assert self.relay.stdout.readline() == "up\n"
        self.plug_in(rank)
        return "a relay"

    def cut(self, rank: int) -> None:
        _ip("-n", self.switch, "link", "set", f"port{rank}", "down")

    def remove(self) -> None:
        if self.relay is not None:
            self.relay.kill()
            self.relay.wait()
            assert self.relay.stdout is not None
            self.relay.stdout.close()
        for name in [self.switch, *(self.host(rank) for rank in range(SIZE))]:
            subprocess.run(["ip", "netns", "del", name], capture_output=True)

    @contextmanager
    def playing(
        self, scene: str, directory: Path, patience_s: float
    ) -> Iterator[list[subprocess.Popen[bytes]]]:
        """A rank on every host; none of them remains."""
        common = {
            "COBRE_TCP_COORDINATOR": "10.77.0.1",
            "COBRE_TCP_BIND_ADDR": "10.77.0.1",
            "COBRE_TCP_SIZE": str(SIZE),
            "COBRE_TCP_TOKEN": TOKEN,
            "COBRE_TCP_CONNECT_TIMEOUT_MS": "200000",
            "COBRE_TCP_TIMEOUT_SECS": str(patience_s),
        }
        command = [sys.executable, "-W", "error", str(RANK), scene, str(directory)]
        processes = [
            subprocess.Popen(
                ["ip", "netns", "exec", self.host(rank), *command],
                env={**os.environ, **common, "COBRE_TCP_RANK": str(rank)},
            )
            for rank in range(SIZE)
        ]
        try:
            yield processes
        finally:
            for process in processes:
                process.kill()
                process.wait()


@pytest.fixture
def network() -> Iterator[Network]:
    if os.geteuid() != 0:
        pytest.skip("network namespaces need root")
    missing = [tool for tool in ("ip", "tc") if shutil.which(tool) is None]
    if missing:
        pytest.skip(f"{' and '.join(missing)} not found: install iproute2")
    network = Network(f"cobre{os.getpid()}{secrets.token_hex(3)}")
    try:
        try:
            network.build()
        except subprocess.CalledProcessError as error:
            pytest.skip(f"this system refuses network namespaces: {error.stderr.strip()}")
        yield network
    finally:
        network.remove()


def accounts(directory: Path, processes: list[subprocess.Popen[bytes]]) -> list[dict[str, Any]]:
    """What every rank wrote down, once all have ended well."""
    assert [process.wait(200) for process in processes] == [0] * SIZE
    return [json.loads((directory / f"account-{rank}").read_text()) for rank in range(SIZE)]


def until_all_are_ready(directory: Path) -> None:
    for rank in range(SIZE):
        until_exists(directory / f"ready-{rank}")


def test_a_run_over_three_hosts(network: Network, tmp_path: Path) -> None:
    with network.playing("train", tmp_path, 60) as processes:
        assert [process.wait(200) for process in processes] == [0] * SIZE


def test_a_host_with_delay_and_loss(network: Network, tmp_path: Path) -> None:
    means = network.worsen(1)
    started = time.monotonic()
    with network.playing("train", tmp_path, 60) as processes:
        assert [process.wait(200) for process in processes] == [0] * SIZE
    # Some twenty collectives, each with one or two trips over the slow link.
    assert time.monotonic() - started > 1.0
    print(f"the bad link was made by {means}")


def test_a_link_is_cut_during_collectives(network: Network, tmp_path: Path) -> None:
    """The survivors blame the host that is gone; the one cut off blames the coordinator."""
    with network.playing("cut", tmp_path, SHORT_S) as processes:
        until_all_are_ready(tmp_path)
        network.cut(ODD)
        for rank, account in enumerate(accounts(tmp_path, processes)):
            assert account["blamed"] == (0 if rank == ODD else ODD), (rank, account)
            assert "did not respond for" in account["text"] or "no longer answers" in account["text"]


def test_a_link_is_cut_while_everybody_computes(network: Network, tmp_path: Path) -> None:
    """Keep-alive finds the host that is gone without a collective, and the next one fails at once."""
    with network.playing("cut while computing", tmp_path, SHORT_S) as processes:
        until_all_are_ready(tmp_path)
        network.cut(ODD)
        found = accounts(tmp_path, processes)
        for rank in (0, 1):
            assert found[rank]["blamed"] == ODD
            assert f"the host of rank {ODD} (10.77.0.3:" in found[rank]["text"]
            assert "no longer answers" in found[rank]["text"]
            assert found[rank]["seconds"] < SHORT_S - 1
        assert found[ODD]["blamed"] == 0
