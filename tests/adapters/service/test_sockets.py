import fcntl
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from adapters.service.front.sockets import (
    AddressInUse,
    BadAddress,
    BadInheritance,
    NotASocket,
    Peer,
    connectable,
    inherited,
    listen_tcp,
    listen_unix,
    peer_of,
    place_of,
    unlink_if_ours,
)

CHECKOUT = Path(__file__).parents[3]
INHERIT = """
import os, sys
from adapters.service.front.sockets import inherited, BadInheritance
given, environment = [int(each) for each in sys.argv[1].split(",")], {}
moved = [os.dup2(os.dup(each), 100 + n) for n, each in enumerate(given)]
for n, each in enumerate(moved):
    os.dup2(each, 3 + n)
pid = os.getpid()
try:
    found = inherited({"LISTEN_PID": str(pid), "LISTEN_FDS": str(len(given))}, pid)
except BadInheritance as error:
    print("refused:", error)
else:
    for each in found:
        print(each.fileno(), each.family.name, os.get_inheritable(each.fileno()))
"""
ACTIVATED = """
import os
from adapters.service.front.sockets import inherited
(listener,) = inherited(os.environ, os.getpid())
connection, _ = listener.accept()
connection.sendall(b"served")
"""


@pytest.fixture
def path(tmp_path: Path) -> bytes:
    return os.fsencode(tmp_path / "laneyard.sock")


def reach(path: bytes) -> socket.socket:
    client = socket.socket(socket.AF_UNIX)
    try:
        with connectable(path) as address:
            client.connect(address)
    except BaseException:
        client.close()
        raise
    return client


def test_a_client_reaches_the_socket_and_is_known_by_its_credentials(path: bytes) -> None:
    with listen_unix(path) as listener, reach(path), listener.accept()[0] as connection:
        assert peer_of(connection) == Peer(uid=os.getuid(), pid=os.getpid())


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077, 0o777])
def test_the_sockets_mode_is_its_owners_alone_whatever_the_umask(path: bytes, umask: int) -> None:
    before = os.umask(umask)
    try:
        with listen_unix(path):
            assert os.stat(path).st_mode & 0o7777 == 0o600
            assert os.umask(umask) == umask
    finally:
        os.umask(before)


def test_a_stale_socket_is_replaced_in_one_step(path: bytes) -> None:
    listen_unix(path).close()
    with pytest.raises(ConnectionRefusedError):
        reach(path)
    stale = place_of(path)
    with listen_unix(path), reach(path):
        assert place_of(path) != stale
        assert os.listdir(os.path.dirname(path)) == [b"laneyard.sock"]


def test_what_a_killed_process_left_half_made_is_cleared_away(path: bytes) -> None:
    with socket.socket(socket.AF_UNIX) as half:
        half.bind(os.path.join(os.path.dirname(path), b".laneyard.sock-new"))
    with listen_unix(path), reach(path):
        assert os.listdir(os.path.dirname(path)) == [b"laneyard.sock"]


@pytest.mark.parametrize("kind", ["file", "directory", "link to a socket"])
def test_what_is_no_socket_is_left_alone(path: bytes, tmp_path: Path, kind: str) -> None:
    if kind == "file":
        Path(os.fsdecode(path)).write_text("precious")
    elif kind == "directory":
        os.mkdir(path)
    else:
        listen_unix(os.fsencode(tmp_path / "other")).close()
        os.symlink("other", path)
    before = place_of(path)
    with pytest.raises(NotASocket, match="no socket"):
        listen_unix(path)
    assert place_of(path) == before


@pytest.mark.parametrize("name", [b"x" * 200, b"s\xff\xfe .sock", b"x" * 60])
def test_any_path_and_any_name_will_do(tmp_path: Path, name: bytes) -> None:
    folder = os.path.join(os.fsencode(tmp_path), b"d" * 120, b"\xff")
    os.makedirs(folder)
    path = os.path.join(folder, name)
    with listen_unix(path) as listener, reach(path), listener.accept()[0]:
        assert len(path) > 107


def test_a_linked_directory_is_followed(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "state").symlink_to("real")
    path = os.fsencode(tmp_path / "state" / "s")
    with listen_unix(path), reach(path):
        assert (tmp_path / "real" / "s").is_socket()


def test_a_missing_directory_is_an_error_of_the_system(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        listen_unix(os.fsencode(tmp_path / "none" / "s"))


def test_only_our_own_socket_is_removed_at_the_end(path: bytes) -> None:
    with listen_unix(path):
        ours = place_of(path)
        with listen_unix(path):
            unlink_if_ours(path, ours)
            assert os.path.lexists(path)
            unlink_if_ours(path, place_of(path))
            assert not os.path.lexists(path)
            unlink_if_ours(path, ours)


@pytest.mark.parametrize("address", ["127.0.0.1:0", "[::1]:0", "localhost:0"])
def test_a_tcp_port_is_listened_at(address: str) -> None:
    if address.startswith("[") and not os.path.exists("/proc/net/if_inet6"):
        pytest.skip("this machine has no IPv6")
    with (
        listen_tcp(address) as listener,
        socket.create_connection(listener.getsockname()[:2]),
        listener.accept()[0] as connection,
    ):
        assert peer_of(connection) == Peer()


@pytest.mark.parametrize(
    "address",
    [
        *(
            "",
            ":",
            ":80",
            "localhost",
            "localhost:",
            "localhost:x",
            "localhost:-1",
            "localhost:65536",
            "::1:80",
        ),
        *(
            "localhost:\u0661",
            "a b:80",
            "[]:80",
            "\udcff:80",
            "x" * 300 + ":80",
            "localhost: 80",
            "localhost:000080",
        ),
    ],
)
def test_what_is_no_address_is_refused_by_name(address: str) -> None:
    with pytest.raises(BadAddress):
        listen_tcp(address)


def test_an_address_of_another_machine_is_refused() -> None:
    with pytest.raises(BadAddress, match="this machine"):
        listen_tcp("192.0.2.1:0")


def test_a_port_in_use_is_refused_as_such() -> None:
    with listen_tcp("127.0.0.1:0") as listener:
        address = f"127.0.0.1:{listener.getsockname()[1]}"
        with pytest.raises(AddressInUse, match=address):
            listen_tcp(address)


def handed_over(*given: int) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", INHERIT, ",".join(map(str, given))],
        cwd=CHECKOUT, pass_fds=given, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return done.stdout.splitlines()


@pytest.mark.slow
def test_sockets_that_were_handed_over_are_taken_in_their_order(path: bytes) -> None:
    with listen_unix(path) as first, listen_tcp("127.0.0.1:0") as second:
        assert handed_over(first.fileno(), second.fileno()) == ["3 AF_UNIX False", "4 AF_INET False"]


@pytest.fixture
def strange(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[int]:
    with (
        socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as silent,
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as datagrams,
        open(tmp_path / "file", "w") as file,
    ):
        numbers = {"silent": silent.fileno(), "datagrams": datagrams.fileno(), "file": file.fileno()}
        yield numbers[request.param]


@pytest.mark.slow
@pytest.mark.parametrize("strange", ["silent", "datagrams", "file"], indirect=True)
def test_what_is_no_listening_socket_is_not_taken(path: bytes, strange: int) -> None:
    with listen_unix(path) as listener:
        (said,) = handed_over(listener.fileno(), strange)
    assert said.startswith("refused: descriptor 4")


def test_what_was_handed_to_another_process_is_not_ours() -> None:
    assert inherited({}, 1) == []
    assert inherited({"LISTEN_PID": "2", "LISTEN_FDS": "1"}, 1) == []
    assert inherited({"LISTEN_PID": "1", "LISTEN_FDS": "0"}, 1) == []


@pytest.mark.parametrize("count", ["", "x", "-1", "²"])
def test_a_number_of_sockets_that_is_none_is_refused(count: str) -> None:
    with pytest.raises(BadInheritance, match="LISTEN_FDS"):
        inherited({"LISTEN_PID": "1", "LISTEN_FDS": count}, 1)


@pytest.mark.slow
def test_systemds_own_activation_is_understood(path: bytes) -> None:
    program = "/usr/bin/systemd-socket-activate"
    if not os.access(program, os.X_OK):
        pytest.skip("systemd-socket-activate is not installed")
    command = [program, "-l", os.fsdecode(path), sys.executable, "-c", ACTIVATED]
    with subprocess.Popen(command, cwd=CHECKOUT, stderr=subprocess.PIPE) as child:
        try:
            assert child.stderr is not None
            assert b"Listening" in child.stderr.readline()
            with reach(path) as client:
                client.settimeout(10)
                assert client.recv(6) == b"served"
        finally:
            child.kill()


def test_a_short_path_is_its_own_address(path: bytes) -> None:
    with connectable(path) as address:
        assert address == path


def test_our_sockets_do_not_leak_into_children(path: bytes) -> None:
    with listen_unix(path) as unix, listen_tcp("127.0.0.1:0") as tcp:
        for each in (unix, tcp):
            assert fcntl.fcntl(each, fcntl.F_GETFD) & fcntl.FD_CLOEXEC
