"""Opening a store in ZooKeeper: chroots, logins, and what is said when it cannot be."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from kazoo.client import KazooClient
from kazoo.security import make_digest_acl

from ottla.common.errors import OttlaError
from ottla.metastore.port import MULTI_BYTES_MAX, Create, Node, Set, StoreUnavailable, operation_bytes
from ottla.metastore.zookeeper import ZookeeperOptions, open_zookeeper
from tests.metastore.waiting import until
from tests.support.process import free_ports
from tests.support.zookeeper import Zookeeper, running


@pytest.fixture
def kazoo(zookeeper: Zookeeper) -> Iterator[KazooClient]:
    """Another program that uses the same ensemble."""
    client = KazooClient(hosts=zookeeper.address)
    client.start()
    yield client
    client.stop()
    client.close()


# --- the chroot


def test_a_chroot_is_made_with_all_that_is_above_it(zookeeper: Zookeeper, chroot: str, kazoo: KazooClient) -> None:
    store = open_zookeeper(zookeeper.options(f"{chroot}/deep/er"))
    heard: list[str] = []
    store.watch("/", heard.append)
    store.multi([Create("/a", b"1"), Set("/", b"root")])
    assert kazoo.get(f"{chroot}/deep/er/a")[0] == b"1"
    assert store.get("/") == Node(b"root", 1)
    until(lambda: heard == ["/a", "/"])
    store.close()


def test_clusters_with_names_alike_do_not_see_one_another(zookeeper: Zookeeper, chroot: str) -> None:
    first, second = (open_zookeeper(zookeeper.options(path)) for path in (f"{chroot}/c", f"{chroot}/c2"))
    heard: list[str] = []
    first.watch("/", heard.append)
    second.multi([Create("/a")])
    first.multi([Create("/b")])
    until(lambda: bool(heard))
    assert heard == ["/b"]
    assert (first.children("/"), second.children("/")) == (["b"], ["a"])
    first.close()
    second.close()


def test_without_a_chroot_what_is_zookeepers_own_is_not_shown(zookeeper: Zookeeper, chroot: str) -> None:
    store = open_zookeeper(zookeeper.options())
    name = chroot.rpartition("/")[2]
    store.multi([Create(f"/{name}", b"1")])
    assert name in store.children("/")
    assert "zookeeper" not in store.children("/")
    assert "config" in store.children("/zookeeper")
    store.close()


# --- logins


def test_nodes_with_acls_are_for_our_user_alone(zookeeper: Zookeeper, chroot: str) -> None:
    ours = zookeeper.options(f"{chroot}/ours", digest="ottla:secret", is_acl_set=True)
    store = open_zookeeper(ours)
    store.multi([Create("/a", b"1"), Create("/a/b")])
    again = open_zookeeper(ours)
    assert again.get("/a") == Node(b"1", 0)
    again.close()
    for digest in (None, "ottla:wrong", "other:secret"):
        with pytest.raises(OttlaError, match="belong to another user, or the login is wrong"):
            open_zookeeper(zookeeper.options(f"{chroot}/ours", digest=digest))
    open_zookeeper(zookeeper.options(f"{chroot}/theirs", digest="other:secret")).close()
    store.close()


def test_a_chroot_that_is_not_ours_is_refused(zookeeper: Zookeeper, chroot: str, kazoo: KazooClient) -> None:
    kazoo.create(chroot, acl=[make_digest_acl("other", "secret", all=True)], makepath=True)
    for path in (chroot, f"{chroot}/below"):
        with pytest.raises(OttlaError, match=f"cannot use ZooKeeper at {zookeeper.address}{path}: .*another user"):
            open_zookeeper(zookeeper.options(path, digest="ottla:secret"))


def test_a_node_that_somebody_took_away_from_us_is_unavailable(
    zookeeper: Zookeeper, chroot: str, kazoo: KazooClient
) -> None:
    store = open_zookeeper(zookeeper.options(chroot))
    store.multi([Create("/a", b"1")])
    kazoo.set_acls(f"{chroot}/a", [make_digest_acl("other", "secret", all=True)])
    with pytest.raises(StoreUnavailable, match="does not allow it"):
        store.get("/a")
    with pytest.raises(StoreUnavailable, match="refuses to change /a: NoAuthError"):
        store.multi([Create("/b"), Set("/a", b"2")])
    assert store.get("/b") is None
    store.close()


# --- limits


def test_more_than_one_request_may_hold_is_refused_before_it_breaks_the_connection(
    zookeeper: Zookeeper, chroot: str
) -> None:
    store = open_zookeeper(zookeeper.options(chroot))
    heard: list[object] = []
    store.on_session(heard.append)
    with pytest.raises(ValueError, match=f"more than one multi may hold \\({MULTI_BYTES_MAX}\\)"):
        store.multi([Create(f"/{number}", b"x" * 1_000) for number in range(1_000)])
    store.sync()
    assert heard == []
    store.close()


def test_the_largest_multi_fits_under_the_longest_chroot_with_acls(zookeeper: Zookeeper, chroot: str) -> None:
    chroot += "/" + "x" * (63 - len(chroot))
    store = open_zookeeper(zookeeper.options(chroot, digest="ottla:secret", is_acl_set=True))
    number = MULTI_BYTES_MAX // operation_bytes(Create("/0000"))
    assert store.multi([Create(f"/{one:04}") for one in range(number)]) == [0] * number
    store.close()


# --- nobody there


def test_zookeeper_that_is_not_there_is_a_sentence() -> None:
    address = f"127.0.0.1:{free_ports(1)[0]}"
    with pytest.raises(OttlaError) as refused:
        open_zookeeper(ZookeeperOptions(address, connection_timeout_ms=500))
    assert str(refused.value) == (
        f"cannot reach ZooKeeper at {address} within 500 ms (Connection refused); "
        "is it running, and is zookeeper.connect right?"
    )


def test_a_host_that_nobody_knows_is_a_sentence() -> None:
    with pytest.raises(OttlaError, match=r"cannot reach ZooKeeper at nowhere\.invalid:2181 within 500 ms"):
        open_zookeeper(ZookeeperOptions("nowhere.invalid:2181", connection_timeout_ms=500))


@pytest.mark.parametrize("answer", [b"", b"HTTP/1.1 400 Bad Request\r\n\r\n", b"\0\0\0\4what"])
def test_what_is_not_zookeeper_is_a_sentence(answer: bytes) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        address = f"127.0.0.1:{listening.getsockname()[1]}"

        def serve() -> None:
            while True:
                try:
                    connection, _ = listening.accept()
                except OSError:
                    return
                with connection:
                    connection.recv(100)
                    connection.sendall(answer)

        threading.Thread(target=serve, daemon=True).start()
        with pytest.raises(OttlaError, match=f"cannot reach ZooKeeper at {address} within 1000 ms"):
            open_zookeeper(ZookeeperOptions(address, connection_timeout_ms=1_000))
        listening.shutdown(socket.SHUT_RDWR)


def test_of_several_servers_one_is_enough(zookeeper: Zookeeper, chroot: str) -> None:
    nobody = f"127.0.0.1:{free_ports(1)[0]}"
    store = open_zookeeper(zookeeper.options(chroot, servers=f"{nobody},{zookeeper.address},{nobody}"))
    assert store.children("/") == []
    store.close()


def test_without_kazoo_the_sentence_says_what_to_install() -> None:
    program = (
        "import sys; sys.modules['kazoo'] = None\n"
        "from ottla.metastore.zookeeper import ZookeeperOptions, open_zookeeper\n"
        "open_zookeeper(ZookeeperOptions('127.0.0.1:2181'))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert "OttlaError: zookeeper.connect needs the package kazoo: pip install 'ottla[cluster]'" in done.stderr


def test_a_login_that_the_server_refuses_is_a_sentence(tmp_path: Path) -> None:
    with running(Zookeeper(tmp_path / "zookeeper", {"DigestAuthenticationProvider.enabled": "false"})) as server:
        with pytest.raises(OttlaError, match=f"cannot use ZooKeeper at {server.address}/c: it refuses the login"):
            open_zookeeper(server.options("/c", digest="ottla:secret"))
        open_zookeeper(server.options("/c")).close()
