"""tcp settings from SLURM's variables."""

import pytest

from pycobre.comm import TcpConfig
from pycobre.comm.slurm import first_host
from pycobre.errors import MissingConfiguration

STEP = {
    "SLURM_PROCID": "3",
    "SLURM_STEP_NUM_TASKS": "8",
    "SLURM_NTASKS": "16",
    "SLURM_STEP_NODELIST": "node[003-006]",
    "SLURM_JOB_ID": "1234567",
}


def test_a_step_gives_rank_size_coordinator_and_port() -> None:
    config = TcpConfig.from_env({**STEP, "COBRE_TCP_TOKEN": "s"})
    assert (config.rank, config.size, config.coordinator, config.port) == (3, 8, "node003", 44567)


def test_what_is_set_by_hand_wins() -> None:
    config = TcpConfig.from_env({**STEP, "COBRE_TCP_COORDINATOR": "login", "COBRE_TCP_PORT": "29500"})
    assert (config.coordinator, config.port) == ("login", 29500)
    by_hand = {**STEP, "COBRE_TCP_RANK": "0", "COBRE_TCP_SIZE": "2"}
    config = TcpConfig.from_env(by_hand)
    assert (config.rank, config.size, config.port) == (0, 2, 29500)


def test_what_slurm_does_not_say_is_named() -> None:
    with pytest.raises(MissingConfiguration, match="COBRE_TCP_COORDINATOR, COBRE_TCP_SIZE"):
        TcpConfig.from_env({"SLURM_PROCID": "1"})


@pytest.mark.parametrize(
    ("hosts", "first"),
    [
        ("node1", "node1"),
        ("node1,node2", "node1"),
        ("node[003-017,021],gpu1", "node003"),
        ("node[7,9]", "node7"),
        ("rack-a[2-3]-ib", "rack-a2-ib"),
        ("login.example.org", "login.example.org"),
    ],
)
def test_the_first_host_of_a_node_list(hosts: str, first: str) -> None:
    assert first_host(hosts) == first
