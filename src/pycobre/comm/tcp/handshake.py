"""Mutual authentication of a worker and the coordinator, without any input or output.

    worker                                       coordinator
    HELLO  magic version flags rank size N_w  →
                                               ← CHALLENGE  flags N_c
    PROOF  HMAC(token, "worker" …)            →
                                               ← WELCOME    HMAC(token, "coordinator" …), time left
                                                 … until every rank is in …
                                               ← READY

Both proofs cover the role, the whole HELLO (version, flags, rank, size, nonce) and the whole CHALLENGE
(flags, nonce), that of the coordinator also the time left, so neither can be replayed in another connection or
sent back to its author, and nothing in them can be changed on the way. The token itself never travels. The worker
proves first: an unauthenticated peer gets nothing to try passwords on. Instead of its next message the
coordinator may send REFUSED and a sentence. Magic and version are the first bytes in each direction and will be
in every version.

The flags say whether there is a token and whether the frames that follow are authenticated (`sealed`): they are if
either end asks for it, the worker in its HELLO, the coordinator in its CHALLENGE, which is the decision. The session
keys come from the token, the HELLO and the CHALLENGE (`mac.session_keys`).

Without a token both sides use an empty key: the proof then protects nothing, and the backend allows that on
loopback only.
"""

from __future__ import annotations

import enum
import hmac
import secrets
import struct

from pycobre.comm.tcp.mac import SessionKeys, session_keys

__all__ = ["CoordinatorSide", "Stage", "WorkerSide", "ready", "refusal"]

MAGIC = b"pycobre\n"
VERSION = 2
NONCE_BYTES = 32
PROOF_BYTES = 32
MAX_REFUSAL_BYTES = 4096

_HELLO = struct.Struct("<8sHHII32s")  # magic, version, flags, rank, size, nonce
_REPLY = struct.Struct("<8sHHI")  # magic, version, stage, length of what follows
_WELCOME = struct.Struct("<32sI")  # proof, milliseconds left for the others to arrive
_PREFIX = struct.Struct("<8sH")
_CHALLENGE = struct.Struct("<H32s")  # flags, nonce
_HAS_TOKEN = 1
_SEALED = 2  # frames are authenticated
_U32 = 0xFFFFFFFF


class Stage(enum.IntEnum):
    """What a message from the coordinator is."""

    CHALLENGE = 1
    WELCOME = 2
    READY = 3
    REFUSED = 4


# What the coordinator may send next, with the length of its body, after what it sent last.
_NEXT: dict[Stage | None, tuple[Stage, int]] = {
    None: (Stage.CHALLENGE, _CHALLENGE.size),
    Stage.CHALLENGE: (Stage.WELCOME, _WELCOME.size),
    Stage.WELCOME: (Stage.READY, 0),
}


class CoordinatorSide:
    """The coordinator's half of one handshake: feed it what arrives, send what it returns.

    `wanted` says how many bytes may be read next: never more, so that nothing of what follows the handshake
    is swallowed, and no peer can make us hold more than a hundred bytes. In the end either `rank` is set, for
    a peer whose proof is good, or `refused` says why the connection is to be closed. `seal` asks for authenticated
    frames; `keys` are those of the frames that follow, None if they are not authenticated.
    """

    def __init__(self, size: int, token: str | None, *, seal: bool = False) -> None:
        self._size = size
        self._token = token
        self._seal = seal
        self._challenge_sent = b""
        self._data = b""
        self._hello: bytes | None = None
        self.rank: int | None = None
        self.refused: str | None = None

    @property
    def wanted(self) -> int:
        """How many more bytes are needed for the next step."""
        return (_HELLO.size if self._hello is None else PROOF_BYTES) - len(self._data)

    @property
    def heard(self) -> bool:
        """Whether the peer has sent anything yet."""
        return bool(self._data) or self._hello is not None

    def feed(self, data: bytes) -> bytes:
        """Take what arrived and return what to answer."""
        self._data += data
        if self._hello is None:
            answer = self._check_prefix()
            if self.refused is not None:
                return answer
        if self.wanted > 0:
            return b""
        message, self._data = self._data, b""
        return self._challenge(message) if self._hello is None else self._verify(message)

    def welcome(self, left_ms: int) -> bytes:
        """The coordinator's own proof, for a peer whose rank turned out to be free."""
        left_ms = min(max(left_ms, 0), _U32)
        return _reply(Stage.WELCOME, _WELCOME.pack(self._proof(b"coordinator", left_ms), left_ms))

    @property
    def keys(self) -> SessionKeys | None:
        """The keys of the frames that follow, once the peer has proven to know the token."""
        if self.rank is None or self._token is None or not self._seal:
            return None
        assert self._hello is not None
        return session_keys(self._token, self._hello + self._challenge_sent, coordinator=True)

    def refuse(self, reason: str) -> bytes:
        """End the handshake; returns the message that tells the peer why."""
        self.refused = reason
        return refusal(reason)

    def _check_prefix(self) -> bytes:
        """Refuse as early as possible: other programs rarely send as many bytes as a HELLO has.

        Who does not even know the magic gets no answer.
        """
        magic = self._data[: len(MAGIC)]
        if magic[:1] == b"\x16":
            self.refused = "it speaks TLS, and this run does not: see COBRE_TCP_TLS_CERT"
        elif magic != MAGIC[: len(magic)]:
            self.refused = f"expected a pycobre rank, got bytes starting {magic!r}"
        elif len(self._data) >= _PREFIX.size:
            version = _PREFIX.unpack_from(self._data)[1]
            if version != VERSION:
                return self.refuse(
                    f"the worker speaks version {version} of the protocol, the coordinator {VERSION}: "
                    "install the same pycobre on all ranks"
                )
        return b""

    def _challenge(self, message: bytes) -> bytes:
        self._hello = message
        flags = _HELLO.unpack(message)[2]
        theirs = bool(flags & _HAS_TOKEN)
        ours = self._token is not None
        if theirs != ours:
            who = (
                "the coordinator has a token and the worker none"
                if ours
                else "the worker has a token and the coordinator none"
            )
            return self.refuse(f"{who}: set the same COBRE_TCP_TOKEN on every rank")
        self._seal = ours and (self._seal or bool(flags & _SEALED))
        nonce = secrets.token_bytes(NONCE_BYTES)
        self._challenge_sent = _CHALLENGE.pack(_flags(self._token, self._seal), nonce)
        return _reply(Stage.CHALLENGE, self._challenge_sent)

    def _verify(self, proof: bytes) -> bytes:
        assert self._hello is not None
        rank, size = _HELLO.unpack(self._hello)[3:5]
        if not hmac.compare_digest(proof, self._proof(b"worker")):
            return self.refuse("wrong token: COBRE_TCP_TOKEN must be the same on every rank")
        if size != self._size:
            return self.refuse(f"size: expected {self._size} as on rank 0, got {size}. Check COBRE_TCP_SIZE.")
        if not 1 <= rank < size:
            return self.refuse(f"rank: expected 1 to {size - 1}, got {rank}. Check COBRE_TCP_RANK.")
        self.rank = rank
        return b""

    def _proof(self, role: bytes, left_ms: int = 0) -> bytes:
        assert self._hello is not None
        return _proof(self._token, role, self._hello, self._challenge_sent, left_ms)


class WorkerSide:
    """The worker's half: send `hello`, then feed replies until `stage` is READY or `refused` says why not.

    `server` names the coordinator in the sentences. `seal` asks for authenticated frames; `keys` are those of the
    frames that follow, None if they are not authenticated.
    """

    def __init__(self, rank: int, size: int, token: str | None, server: str, *, seal: bool = False) -> None:
        self._rank = rank
        self._size = size
        self._token = token
        self._server = server
        self._seal = seal
        self._nonce = secrets.token_bytes(NONCE_BYTES)
        self._challenge = b""
        self._data = b""
        self.stage: Stage | None = None
        self.refused: str | None = None
        self.left_ms = 0

    @property
    def hello(self) -> bytes:
        """The first message."""
        flags = _flags(self._token, self._seal)
        return _HELLO.pack(MAGIC, VERSION, flags, self._rank, self._size, self._nonce)

    @property
    def keys(self) -> SessionKeys | None:
        """The keys of the frames that follow, once the coordinator has proven to know the token."""
        if self.stage not in (Stage.WELCOME, Stage.READY) or self._token is None:
            return None
        if not _CHALLENGE.unpack(self._challenge)[0] & _SEALED:
            return None
        return session_keys(self._token, self.hello + self._challenge, coordinator=False)

    @property
    def wanted(self) -> int:
        """How many more bytes are needed for the next step."""
        total = _REPLY.size
        if len(self._data) >= total:
            total += _REPLY.unpack_from(self._data)[3]
        return total - len(self._data)

    def feed(self, data: bytes) -> bytes:
        """Take what arrived and return what to answer."""
        self._data += data
        self.refused = self._problem()
        if self.refused is not None or len(self._data) < _REPLY.size or self.wanted > 0:
            return b""
        stage = Stage(_REPLY.unpack_from(self._data)[2])
        body, self._data = self._data[_REPLY.size :], b""
        if stage is Stage.REFUSED:
            self.refused = body.decode(errors="replace")
            return b""
        self.stage = stage
        if stage is Stage.CHALLENGE:
            self._challenge = body
            flags = _CHALLENGE.unpack(body)[0]
            if flags & _SEALED < _flags(self._token, self._seal) & _SEALED:
                self.refused = (
                    f"{self._server} does not authenticate frames although this rank asked for it: something on "
                    "the way changes the handshake. Check what is between these hosts."
                )
                return b""
            return self._proof(b"worker")
        if stage is Stage.WELCOME:
            proof, self.left_ms = _WELCOME.unpack(body)
            if not hmac.compare_digest(proof, self._proof(b"coordinator", self.left_ms)):
                self.refused = f"{self._server} could not prove that it knows COBRE_TCP_TOKEN"
        return b""

    def _proof(self, role: bytes, left_ms: int = 0) -> bytes:
        return _proof(self._token, role, self.hello, self._challenge, left_ms)

    def _problem(self) -> str | None:
        """What is wrong with the reply as far as it has arrived."""
        magic = self._data[: len(MAGIC)]
        if magic[:1] in (b"\x15", b"\x16"):
            return f"{self._server} speaks TLS: set COBRE_TCP_TLS_CA on this rank too"
        if magic != MAGIC[: len(magic)]:
            return (
                f"{self._server} is not a pycobre coordinator: expected {MAGIC!r}, got {magic!r}. "
                "Check COBRE_TCP_COORDINATOR and COBRE_TCP_PORT."
            )
        if len(self._data) >= _PREFIX.size and (version := _PREFIX.unpack_from(self._data)[1]) != VERSION:
            return (
                f"{self._server} speaks version {version} of the protocol, this rank version {VERSION}: "
                "install the same pycobre on all ranks"
            )
        if len(self._data) < _REPLY.size:
            return None
        stage, length = _REPLY.unpack_from(self._data)[2:]
        if (stage == Stage.REFUSED and length <= MAX_REFUSAL_BYTES) or (stage, length) == _NEXT.get(
            self.stage
        ):
            return None
        return f"{self._server} answered out of order (stage {stage} with {length} bytes)"


def ready() -> bytes:
    """The message that starts the run."""
    return _reply(Stage.READY, b"")


def refusal(text: str) -> bytes:
    """The message that ends a handshake with a sentence."""
    return _reply(Stage.REFUSED, text.encode()[:MAX_REFUSAL_BYTES])


def _reply(stage: Stage, body: bytes) -> bytes:
    return _REPLY.pack(MAGIC, VERSION, stage, len(body)) + body


def _flags(token: str | None, seal: bool) -> int:
    return 0 if token is None else _HAS_TOKEN | (_SEALED if seal else 0)


def _proof(token: str | None, role: bytes, hello: bytes, challenge: bytes, left_ms: int) -> bytes:
    covered = role.ljust(16, b"\0") + hello + challenge + left_ms.to_bytes(4, "little")
    return hmac.digest((token or "").encode(), covered, "sha256")
