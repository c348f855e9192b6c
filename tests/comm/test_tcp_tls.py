"""Encrypted connections between ranks, and certificates that are wrong."""

from __future__ import annotations

import shutil
import socket
import ssl
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from tcp_helpers import DROPPED, gathering, log_lines, on_all, patient_handshakes, running, train_a_little

from pycobre.comm import InitializationFailed, MissingConfiguration, TcpBackend, TcpConfig

__all__ = ["patient_handshakes"]


@pytest.fixture(scope="module")
def papers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with two authorities, `ours` and `theirs`, and a certificate of each for this machine."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl not found: install it to make certificates")
    directory = tmp_path_factory.mktemp("papers")

    def openssl(*words: str) -> None:
        subprocess.run(["openssl", *words], check=True, capture_output=True, cwd=directory)

    names = "subjectAltName=DNS:localhost,IP:127.0.0.1"
    (directory / "names").write_text(names)
    curve = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
    for authority in ("ours", "theirs"):
        ca = ("-keyout", f"{authority}-ca.key", "-out", f"{authority}-ca.pem", "-days", "2")
        openssl("req", "-x509", *curve, *ca, "-subj", f"/CN={authority}")
        openssl("req", *curve, "-keyout", f"{authority}.key", "-out", f"{authority}.csr", "-subj", "/CN=rank")
        signing = ("-CA", f"{authority}-ca.pem", "-CAkey", f"{authority}-ca.key", "-CAcreateserial")
        out = ("-out", f"{authority}.pem", "-days", "2", "-extfile", "names")
        openssl("x509", "-req", "-in", f"{authority}.csr", *signing, *out)
    return directory


def files(papers: Path, authority: str, *, cert: bool = True, ca: bool = True) -> dict[str, str | None]:
    return {
        "tls_cert": str(papers / f"{authority}.pem") if cert else None,
        "tls_key": str(papers / f"{authority}.key") if cert else None,
        "tls_ca": str(papers / f"{authority}-ca.pem") if ca else None,
    }


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1"])
def test_a_run_with_certificates_on_both_sides(papers: Path, host: str) -> None:
    with running(3, coordinator=host, **files(papers, "ours")) as comms:
        assert on_all(comms, train_a_little, 12) == [None] * 3
        peer = comms[1]._sockets[0]
        assert isinstance(peer, ssl.SSLSocket)
        assert peer.version() in ("TLSv1.2", "TLSv1.3")


def test_a_run_in_which_only_the_coordinator_shows_a_certificate(papers: Path) -> None:
    with gathering(2, **files(papers, "ours", ca=False)) as group:
        group.add(1, **files(papers, "ours", cert=False))
        assert on_all(group.all(), train_a_little, 3) == [None, None]


def worker_fails(group: Any, **options: Any) -> str:
    with pytest.raises(InitializationFailed) as caught:
        TcpBackend(group.config(1, **options))
    return caught.value.message


def test_a_coordinator_of_another_authority_is_not_trusted(papers: Path) -> None:
    with gathering(2, **files(papers, "ours", ca=False)) as group:
        text = worker_fails(group, **files(papers, "theirs", cert=False))
        assert "TLS with 127.0.0.1:" in text
        assert "certificate verify failed" in text
        group.add(1, **files(papers, "ours", cert=False))
        group.all()


def test_a_coordinator_of_another_name_is_not_trusted(papers: Path) -> None:
    with gathering(2, bind_addr="0.0.0.0", **files(papers, "ours", ca=False)) as group:
        text = worker_fails(group, coordinator="127.0.0.2", **files(papers, "ours", cert=False))
        assert "TLS with 127.0.0.2:" in text
        assert "IP address mismatch" in text
        group.add(1, **files(papers, "ours", cert=False))
        group.all()


@pytest.mark.parametrize("authority", [None, "theirs"])
def test_a_worker_without_the_right_certificate_is_turned_away(papers: Path, authority: str | None) -> None:
    with log_lines() as log, gathering(2, **files(papers, "ours")) as group:
        wrong = files(papers, "ours", cert=False)
        if authority is not None:
            wrong = {**files(papers, authority), "tls_ca": wrong["tls_ca"]}
        text = worker_fails(group, connect_timeout_ms=1000, **wrong)
        assert "TLS with 127.0.0.1:" in text or "could not join" in text
        log.wait_for(DROPPED)
        group.add(1)
        assert on_all(group.all(), train_a_little, 2) == [None, None]


def test_a_worker_that_does_not_encrypt_is_told_what_to_set(papers: Path) -> None:
    with gathering(2, **files(papers, "ours")) as group:
        text = worker_fails(group, tls_cert=None, tls_key=None, tls_ca=None)
        assert text == "rank 0 speaks TLS: set COBRE_TCP_TLS_CA on every rank"
        group.add(1)
        group.all()


def test_a_worker_that_encrypts_for_a_coordinator_that_does_not(
    papers: Path,
) -> None:
    with log_lines() as log, gathering(2) as group:
        text = worker_fails(group, connect_timeout_ms=1000, **files(papers, "ours"))
        assert "could not join" in text
        assert "is COBRE_TCP_TLS_CERT set on rank 0 too?" in text
        log.wait_for("it speaks TLS, and this run does not: see COBRE_TCP_TLS_CERT")
        group.add(1)
        group.all()


def test_unauthenticated_peers_of_an_encrypted_port(papers: Path) -> None:
    with log_lines() as log, running(2, **files(papers, "ours")) as comms:
        for said in (b"GET / HTTP/1.1\r\n\r\n", b"pycobre\n", b""):
            # It may hang up before we are done.
            with (
                suppress(OSError),
                socket.create_connection(("127.0.0.1", comms[0].port), timeout=200) as sock,
            ):
                sock.sendall(said)
                sock.shutdown(socket.SHUT_WR)
                while sock.recv(1000):
                    pass
        log.wait_for(DROPPED, 3)
        assert on_all(comms, train_a_little, 3) == [None, None]
    assert len(log.with_words(DROPPED)) == 3


@pytest.mark.parametrize(
    ("rank", "given", "missing"),
    [
        (0, {"tls_ca": "ca.pem"}, ("COBRE_TCP_TLS_CERT", "COBRE_TCP_TLS_KEY")),
        (1, {"tls_cert": "a.pem", "tls_key": "a.key"}, ("COBRE_TCP_TLS_CA",)),
    ],
)
def test_missing_files_are_named(rank: int, given: dict[str, str], missing: tuple[str, ...]) -> None:
    options: dict[str, Any] = {
        "coordinator": "127.0.0.1",
        "bind_addr": "127.0.0.1",
    }
    with socket.create_server(("127.0.0.1", 0)) as server:
        options["port"] = server.getsockname()[1] if rank else 0
        with pytest.raises(MissingConfiguration) as caught:
            TcpBackend(TcpConfig(rank=rank, size=2, **options, **given))
    assert caught.value.missing_vars == missing


def test_unreadable_files_are_explained(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    file = str(tmp_path / "empty")
    config = TcpConfig(rank=0, size=2, bind_addr="127.0.0.1", port=0, tls_cert=file, tls_key=file)
    with pytest.raises(
        InitializationFailed, match=r"expected PEM certificates and a matching key.*COBRE_TCP_TLS_CERT"
    ):
        TcpBackend(config)
