"""tcp settings from the variables of torchrun, AWS Batch and Kubernetes, and no silent copies of a run there."""

from __future__ import annotations

import pytest

from pycobre.comm import TcpConfig, create_communicator
from pycobre.comm.platforms import platform_of
from pycobre.comm.select import announced_size
from pycobre.errors import InitializationFailed, MissingConfiguration
from pycobre.launch.launcher import rank_environments

TOKEN = {"COBRE_TCP_TOKEN": "secret"}
TORCHRUN = {"RANK": "2", "WORLD_SIZE": "4", "MASTER_ADDR": "node7", "MASTER_PORT": "29400"}
AWS = {
    "AWS_BATCH_JOB_NODE_INDEX": "2",
    "AWS_BATCH_JOB_MAIN_NODE_INDEX": "1",
    "AWS_BATCH_JOB_NUM_NODES": "3",
    "AWS_BATCH_JOB_MAIN_NODE_PRIVATE_IPV4_ADDRESS": "10.0.0.5",
}
SLURM = {"SLURM_PROCID": "0", "SLURM_NTASKS": "2"}
POD = {"JOB_COMPLETION_INDEX": "1"}


def test_torchrun_gives_rank_size_coordinator_and_port() -> None:
    config = TcpConfig.from_env({**TORCHRUN, **TOKEN})
    assert (config.rank, config.size, config.coordinator, config.port) == (2, 4, "node7", 29400)


def test_a_port_that_the_agent_of_torchrun_listens_on_is_avoided() -> None:
    config = TcpConfig.from_env({**TORCHRUN, **TOKEN, "TORCHELASTIC_USE_AGENT_STORE": "True"})
    assert config.port == 29401


@pytest.mark.parametrize(("index", "rank"), [("0", 2), ("1", 0), ("2", 1)])
def test_the_main_node_of_aws_batch_is_rank_0(index: str, rank: int) -> None:
    config = TcpConfig.from_env({**AWS, **TOKEN, "AWS_BATCH_JOB_NODE_INDEX": index})
    assert (config.rank, config.size, config.coordinator) == (rank, 3, "10.0.0.5")


def test_the_main_node_of_aws_batch_needs_no_address() -> None:
    main = {name: value for name, value in AWS.items() if "ADDRESS" not in name}
    config = TcpConfig.from_env({**main, **TOKEN, "AWS_BATCH_JOB_NODE_INDEX": "1"})
    assert (config.rank, config.coordinator) == (0, None)


def test_a_node_number_that_is_none_is_refused() -> None:
    with pytest.raises(
        InitializationFailed, match="AWS_BATCH_JOB_NODE_INDEX: expected a whole number, got 'x'"
    ):
        TcpConfig.from_env({**AWS, "AWS_BATCH_JOB_NODE_INDEX": "x"})


def test_a_pod_knows_its_rank_and_is_told_the_rest() -> None:
    rest = {"COBRE_TCP_SIZE": "4", "COBRE_TCP_COORDINATOR": "run-0.run"}
    config = TcpConfig.from_env({**POD, **TOKEN, **rest})
    assert (config.rank, config.size, config.coordinator) == (1, 4, "run-0.run")
    with pytest.raises(MissingConfiguration, match="COBRE_TCP_COORDINATOR, COBRE_TCP_SIZE"):
        TcpConfig.from_env({**POD, **TOKEN})


@pytest.mark.parametrize("given", [TORCHRUN, AWS, SLURM, POD])
def test_a_rank_set_by_hand_turns_the_platform_off(given: dict[str, str]) -> None:
    by_hand = {"COBRE_TCP_RANK": "1", "COBRE_TCP_SIZE": "2", "COBRE_TCP_COORDINATOR": "here"}
    config = TcpConfig.from_env({**given, **TOKEN, **by_hand})
    assert (config.rank, config.size, config.coordinator, config.port) == (1, 2, "here", 29500)


@pytest.mark.parametrize("given", [TORCHRUN, AWS, SLURM])
def test_single_variables_by_hand_win(given: dict[str, str]) -> None:
    config = TcpConfig.from_env({**given, "COBRE_TCP_COORDINATOR": "here", "COBRE_TCP_PORT": "5"})
    assert (config.coordinator, config.port) == ("here", 5)


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ({**TORCHRUN, **SLURM, **POD}, "torchrun"),
        ({**SLURM, **POD}, "Slurm"),
        ({**AWS, **POD}, "AWS Batch"),
        (POD, "Kubernetes"),
        ({"RANK": "0", "WORLD_SIZE": "2"}, None),
        ({**TORCHRUN, "MASTER_ADDR": ""}, None),
        ({}, None),
    ],
)
def test_the_innermost_platform_counts(given: dict[str, str], name: str | None) -> None:
    found = platform_of(given)
    assert (found.name if found else None) == name


@pytest.mark.parametrize(
    ("given", "said", "platform"),
    [
        (TORCHRUN, "WORLD_SIZE announces 4 ranks", "torchrun"),
        (AWS, "AWS_BATCH_JOB_NUM_NODES announces 3 ranks", "AWS Batch"),
        ({"SLURM_PROCID": "0", "SLURM_NTASKS": "2"}, "SLURM_NTASKS announces 2 ranks", "Slurm"),
    ],
)
def test_no_silent_copies_of_a_run(given: dict[str, str], said: str, platform: str) -> None:
    with pytest.raises(InitializationFailed) as caught:
        create_communicator("local", environ=given)
    assert said in str(caught.value)
    assert f"COBRE_COMM_BACKEND=tcp, which finds its ranks by the variables of {platform}" in str(
        caught.value
    )


def test_a_pod_alone_is_refused_unless_that_is_asked_for() -> None:
    with pytest.raises(InitializationFailed) as caught:
        create_communicator(environ=POD)
    assert "JOB_COMPLETION_INDEX=1 says that this is one of several pods" in str(caught.value)
    assert "set COBRE_TCP_SIZE and COBRE_TCP_COORDINATOR, and COBRE_COMM_BACKEND=tcp" in str(caught.value)
    assert create_communicator(environ={**POD, "COBRE_COMM_BACKEND": "local"}).size == 1
    assert create_communicator("local", environ=POD).size == 1


def test_one_process_of_a_platform_is_a_run() -> None:
    assert announced_size({**TORCHRUN, "WORLD_SIZE": "1", "RANK": "0"}) is None
    assert create_communicator(environ={**TORCHRUN, "WORLD_SIZE": "1", "RANK": "0"}).size == 1


@pytest.mark.parametrize("given", [TORCHRUN, AWS, SLURM, POD])
def test_workers_do_not_inherit_the_platform(given: dict[str, str]) -> None:
    for environ in rank_environments("shm", 2, {"PATH": "/bin", **given}):
        assert platform_of(environ) is None
        assert environ["PATH"] == "/bin"
