"""Settings from the environment: everything missing or malformed is named at once."""

from __future__ import annotations

import dataclasses
import re

import pytest

from pycobre.comm import InitializationFailed, MissingConfiguration, ShmConfig, TcpConfig
from pycobre.comm.tcp.sockets import seals

SHM = {"COBRE_SHM_NAME": "run-7", "COBRE_SHM_RANK": "1", "COBRE_SHM_SIZE": "4"}
TCP = {"COBRE_TCP_COORDINATOR": "head", "COBRE_TCP_RANK": "1", "COBRE_TCP_SIZE": "4"}


def test_shm_from_the_environment():
    assert ShmConfig.from_env(SHM) == ShmConfig("run-7", 1, 4, 60.0)
    assert ShmConfig.from_env(SHM | {"COBRE_SHM_TIMEOUT_SECS": "2.5"}).timeout_s == 2.5


def test_tcp_from_the_environment_with_its_defaults():
    config = TcpConfig.from_env(TCP)
    assert config == TcpConfig(rank=1, size=4, coordinator="head")
    assert (config.port, config.bind_addr, config.connect_timeout_ms, config.timeout_s) == (
        29500,
        "0.0.0.0",
        30000,
        60.0,
    )
    assert (config.token, config.tls_cert, config.tls_key, config.tls_ca) == (None, None, None, None)


def test_tcp_from_the_environment_in_full():
    config = TcpConfig.from_env(
        TCP
        | {
            "COBRE_TCP_PORT": "4000",
            "COBRE_TCP_BIND_ADDR": "10.0.0.1",
            "COBRE_TCP_CONNECT_TIMEOUT_MS": "500",
            "COBRE_TCP_TIMEOUT_SECS": "7",
            "COBRE_TCP_TOKEN": "s3cret",
            "COBRE_TCP_TLS_CERT": "c.pem",
            "COBRE_TCP_TLS_KEY": "k.pem",
            "COBRE_TCP_TLS_CA": "ca.pem",
        }
    )
    assert config == TcpConfig(1, 4, "head", 4000, "10.0.0.1", 500, 7.0, "s3cret", "c.pem", "k.pem", "ca.pem")


def test_authentication_on_loopback_is_asked_for_by_name():
    token = {"COBRE_TCP_TOKEN": "s3cret"}
    assert not TcpConfig.from_env(TCP | token).authenticate
    assert not TcpConfig.from_env(TCP | token | {"COBRE_TCP_AUTH": "auto"}).authenticate
    assert TcpConfig.from_env(TCP | token | {"COBRE_TCP_AUTH": "always"}).authenticate
    with pytest.raises(InitializationFailed, match="COBRE_TCP_AUTH: expected auto or always, got 'never'"):
        TcpConfig.from_env(TCP | token | {"COBRE_TCP_AUTH": "never"})
    words = "COBRE_TCP_AUTH=always: expected a token to derive keys from, got none. Set COBRE_TCP_TOKEN"
    with pytest.raises(InitializationFailed, match=words):
        TcpConfig.from_env(TCP | {"COBRE_TCP_AUTH": "always"})


@pytest.mark.parametrize(
    ("options", "host", "expected"),
    [
        ({"token": "t"}, "10.0.0.7", True),
        ({"token": "t"}, "fe80::1", True),
        ({"token": "t"}, "127.0.0.1", False),
        ({"token": "t"}, "::ffff:127.0.0.1", False),
        ({"token": "t", "authenticate": True}, "127.0.0.1", True),
        ({"token": "t", "tls_ca": "ca.pem", "authenticate": True}, "10.0.0.7", False),
        ({}, "127.0.0.1", False),
    ],
)
def test_which_connections_ask_for_authenticated_frames(options, host, expected):
    assert seals(TcpConfig(rank=0, size=2, **options), host) is expected


def test_the_token_is_never_shown():
    config = TcpConfig(rank=0, size=2, token="s3cret")
    assert "s3cret" not in repr(config)
    assert config.token == "s3cret"


def test_settings_are_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        ShmConfig("a", 0, 1).rank = 1


@pytest.mark.parametrize(
    ("config", "environ", "missing"),
    [
        (ShmConfig, {}, ("COBRE_SHM_NAME", "COBRE_SHM_RANK", "COBRE_SHM_SIZE")),
        (ShmConfig, {"COBRE_SHM_NAME": "", "COBRE_SHM_RANK": "0"}, ("COBRE_SHM_NAME", "COBRE_SHM_SIZE")),
        (TcpConfig, {}, ("COBRE_TCP_COORDINATOR", "COBRE_TCP_RANK", "COBRE_TCP_SIZE")),
        (TcpConfig, {"COBRE_TCP_RANK": "1", "COBRE_TCP_SIZE": "2"}, ("COBRE_TCP_COORDINATOR",)),
        (TcpConfig, {"COBRE_TCP_RANK": "0"}, ("COBRE_TCP_SIZE",)),
        (TcpConfig, {"COBRE_TCP_COORDINATOR": "head", "COBRE_TCP_SIZE": "two"}, ("COBRE_TCP_RANK",)),
    ],
)
def test_everything_missing_is_named_at_once(config, environ, missing):
    with pytest.raises(MissingConfiguration) as caught:
        config.from_env(environ)
    assert caught.value.missing_vars == missing
    assert all(variable in str(caught.value) for variable in missing)


def test_rank_0_of_tcp_needs_no_coordinator():
    assert TcpConfig.from_env({"COBRE_TCP_RANK": "0", "COBRE_TCP_SIZE": "2"}).coordinator is None


@pytest.mark.parametrize(
    ("config", "environ", "text"),
    [
        (TcpConfig, TCP | {"COBRE_TCP_RANK": "two"}, "COBRE_TCP_RANK: expected a whole number, got 'two'"),
        (TcpConfig, TCP | {"COBRE_TCP_SIZE": "4.0"}, "COBRE_TCP_SIZE: expected a whole number, got '4.0'"),
        (
            TcpConfig,
            TCP | {"COBRE_TCP_TIMEOUT_SECS": "1m"},
            "COBRE_TCP_TIMEOUT_SECS: expected a number, got '1m'",
        ),
        (TcpConfig, TCP | {"COBRE_TCP_RANK": "4"}, "COBRE_TCP_RANK: expected 0 to 3 for 4 ranks, got 4"),
        (TcpConfig, TCP | {"COBRE_TCP_RANK": "-1"}, "COBRE_TCP_RANK: expected 0 to 3 for 4 ranks, got -1"),
        (TcpConfig, TCP | {"COBRE_TCP_SIZE": "0"}, "COBRE_TCP_SIZE: expected 1 or more, got 0"),
        (TcpConfig, TCP | {"COBRE_TCP_PORT": "70000"}, "COBRE_TCP_PORT: expected 0 to 65535, got 70000"),
        (
            TcpConfig,
            TCP | {"COBRE_TCP_TIMEOUT_SECS": "0"},
            "COBRE_TCP_TIMEOUT_SECS: expected a positive finite number, got 0.0",
        ),
        (
            TcpConfig,
            TCP | {"COBRE_TCP_TIMEOUT_SECS": "nan"},
            "COBRE_TCP_TIMEOUT_SECS: expected a positive finite number",
        ),
        (
            TcpConfig,
            TCP | {"COBRE_TCP_CONNECT_TIMEOUT_MS": "-5"},
            "COBRE_TCP_CONNECT_TIMEOUT_MS: expected a positive",
        ),
        (
            TcpConfig,
            TCP | {"COBRE_TCP_TLS_CERT": "c.pem"},
            "COBRE_TCP_TLS_CERT and COBRE_TCP_TLS_KEY: expected both or neither",
        ),
        (ShmConfig, SHM | {"COBRE_SHM_SIZE": "1"}, "COBRE_SHM_RANK: expected 0 to 0 for 1 rank, got 1"),
        (
            ShmConfig,
            SHM | {"COBRE_SHM_NAME": "a/b"},
            "COBRE_SHM_NAME: expected 1 to 200 characters without a slash, got 'a/b'",
        ),
        (
            ShmConfig,
            SHM | {"COBRE_SHM_TIMEOUT_SECS": "inf"},
            "COBRE_SHM_TIMEOUT_SECS: expected a positive finite number, got inf",
        ),
    ],
)
def test_malformed_values_say_what_was_expected(config, environ, text):
    with pytest.raises(InitializationFailed, match=re.escape(text)) as caught:
        config.from_env(environ)
    assert caught.value.backend in ("shm", "tcp")


def test_all_malformed_values_are_named_and_the_cause_is_kept():
    with pytest.raises(InitializationFailed) as caught:
        TcpConfig.from_env(TCP | {"COBRE_TCP_RANK": "two", "COBRE_TCP_PORT": "http"})
    assert "COBRE_TCP_RANK" in str(caught.value)
    assert "COBRE_TCP_PORT" in str(caught.value)
    assert isinstance(caught.value.__cause__, ValueError)


def test_a_worker_without_a_coordinator_is_told_the_variable():
    with pytest.raises(MissingConfiguration, match="COBRE_TCP_COORDINATOR"):
        TcpConfig(rank=1, size=2)
