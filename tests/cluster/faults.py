"""What can happen to a cluster. Each fault does its harm, lets the load go on as far as it must, and undoes it."""

from __future__ import annotations

import time
from collections.abc import Sequence

from tests.cluster.ordeal import Fault, Ordeal
from tests.crash import load
from tests.support.network import OUTSIDE, STORE, Network
from tests.support.small_disk import fill
from tests.support.trio import IDS, OttlaTrio
from tests.support.zookeeper import Zookeeper

# So much longer than its session a broker is paused or cut off.
BEYOND_S = 2.0


def kill_leader(ordeal: Ordeal) -> None:
    """kill -9; the others go on without it."""
    victim = ordeal.trio.leader(load.TOPIC, ordeal.rng.randrange(load.PARTITIONS))
    ordeal.pause_a_moment()
    _kill_and_bring_back(ordeal, victim)


def kill_controller(ordeal: Ordeal) -> None:
    _kill_and_bring_back(ordeal, ordeal.trio.controller())


def kill_coordinator(ordeal: Ordeal) -> None:
    """Of the group or of a transactional id, as it happens: the leader of a partition of theirs."""
    topic = ordeal.rng.choice(["__consumer_offsets", "__transaction_state"])
    _kill_and_bring_back(ordeal, ordeal.trio.leader(topic, ordeal.rng.randrange(4)))


def _kill_and_bring_back(ordeal: Ordeal, victim: int) -> None:
    ordeal.trio.nodes[victim].kill()
    ordeal.await_acknowledged()
    ordeal.trio.nodes[victim].start()


def kill_two(ordeal: Ordeal) -> None:
    """At the same moment; with one left of three nothing that needs two is acknowledged until one is back."""
    victims = ordeal.rng.sample(IDS, 2)
    for victim in victims:
        ordeal.trio.nodes[victim].kill()
    ordeal.pause_a_moment()
    ordeal.trio.start_all()


def kill_all(ordeal: Ordeal) -> None:
    for node in ordeal.trio.nodes.values():
        node.kill()
    ordeal.trio.start_all()


def kill_one_after_the_other(ordeal: Ordeal) -> None:
    """The leader, then the next leader before the first one is in sync again."""
    first = ordeal.trio.leader(load.TOPIC)
    ordeal.trio.nodes[first].kill()
    ordeal.await_acknowledged(10)
    ordeal.trio.nodes[first].start()
    ordeal.trio.nodes[ordeal.trio.leader(load.TOPIC)].kill()
    ordeal.pause_a_moment()
    ordeal.trio.start_all()


def pause_leader(ordeal: Ordeal) -> None:
    """SIGSTOP past its session: when it goes on it still believes that it leads."""
    _pause(ordeal, ordeal.trio.leader(load.TOPIC, ordeal.rng.randrange(load.PARTITIONS)))


def pause_controller(ordeal: Ordeal) -> None:
    _pause(ordeal, ordeal.trio.controller())


def _pause(ordeal: Ordeal, victim: int) -> None:
    ordeal.trio.nodes[victim].pause()
    try:
        time.sleep(ordeal.trio.session_s + BEYOND_S)
        ordeal.await_acknowledged()
    finally:
        ordeal.trio.nodes[victim].resume()


def pause_shortly(ordeal: Ordeal) -> None:
    """Not long enough for its session to end."""
    node = ordeal.trio.nodes[ordeal.rng.choice(IDS)]
    node.pause()
    time.sleep(ordeal.trio.session_s / 4)
    node.resume()


def rolling_restart(ordeal: Ordeal) -> None:
    """One after the other, by SIGTERM, each back in sync before the next."""
    for node in ordeal.trio.nodes.values():
        node.stop()
        node.start()
        ordeal.trio.await_members()
        ordeal.trio.await_in_sync()


# --- ZooKeeper


def kill_zookeeper(ordeal: Ordeal) -> None:
    """Records are acknowledged without it; it comes back with its data before or after sessions would have ended."""
    zookeeper = _zookeeper(ordeal)
    zookeeper.kill()
    ordeal.await_acknowledged()
    time.sleep(ordeal.rng.choice([0.0, ordeal.trio.session_s + BEYOND_S]))
    zookeeper.start()


def pause_zookeeper(ordeal: Ordeal) -> None:
    zookeeper = _zookeeper(ordeal)
    zookeeper.pause()
    time.sleep(ordeal.trio.session_s + BEYOND_S)
    zookeeper.resume()


def kill_leader_without_zookeeper(ordeal: Ordeal) -> None:
    """Nobody can be elected until ZooKeeper is back; then somebody is."""
    zookeeper = _zookeeper(ordeal)
    victim = ordeal.trio.leader(load.TOPIC)
    zookeeper.kill()
    ordeal.trio.nodes[victim].kill()
    ordeal.pause_a_moment()
    zookeeper.start()
    ordeal.await_acknowledged()
    ordeal.trio.nodes[victim].start()


def _zookeeper(ordeal: Ordeal) -> Zookeeper:
    assert isinstance(ordeal.trio, OttlaTrio)
    return ordeal.trio.zookeeper


# --- the network


def cut_leader_from_a_follower(ordeal: Ordeal) -> None:
    """Both reach everybody else: the follower leaves the ISR, the leader goes on with the other one."""
    leader = ordeal.trio.leader(load.TOPIC)
    follower = ordeal.rng.choice([node for node in IDS if node != leader])
    with _Cuts(ordeal) as network:
        network.cut_both(leader, follower)
        time.sleep(ordeal.trio.session_s + BEYOND_S)


def cut_leader_from_its_followers(ordeal: Ordeal) -> None:
    """Clients and the store still reach it: it takes records that it must not acknowledge alone."""
    leader = ordeal.trio.leader(load.TOPIC)
    with _Cuts(ordeal) as network:
        for follower in IDS:
            if follower != leader:
                network.cut_both(leader, follower)
        time.sleep(ordeal.trio.session_s + BEYOND_S)


def cut_one_direction(ordeal: Ordeal) -> None:
    """What one of them sends to another is lost; what comes back arrives."""
    sender, receiver = ordeal.rng.sample(IDS, 2)
    with _Cuts(ordeal) as network:
        network.cut(sender, receiver)
        time.sleep(ordeal.trio.session_s + BEYOND_S)


def isolate(ordeal: Ordeal) -> None:
    """From the other brokers and from the store, but not from clients."""
    victim = ordeal.trio.leader(load.TOPIC, ordeal.rng.randrange(load.PARTITIONS))
    with _Cuts(ordeal) as network:
        for other in (*IDS, STORE):
            if other != victim:
                network.cut_both(victim, other)
        time.sleep(ordeal.trio.session_s + BEYOND_S)
        ordeal.await_acknowledged()


def cut_from_the_store(ordeal: Ordeal) -> None:
    """The leader reaches its followers and clients, but its session ends."""
    victim = ordeal.trio.leader(load.TOPIC, ordeal.rng.randrange(load.PARTITIONS))
    with _Cuts(ordeal) as network:
        network.cut_both(victim, STORE)
        time.sleep(ordeal.trio.session_s + BEYOND_S)


def cut_clients_off(ordeal: Ordeal) -> None:
    victim = ordeal.rng.choice(IDS)
    with _Cuts(ordeal) as network:
        network.cut_both(victim, OUTSIDE)
        time.sleep(ordeal.trio.session_s + BEYOND_S)


def slow_follower(ordeal: Ordeal) -> None:
    """Too slow for the load: it leaves the ISR, producers recover, and it catches up when it can."""
    leader = ordeal.trio.leader(load.TOPIC)
    victim = ordeal.rng.choice([node for node in IDS if node != leader])
    network = _network(ordeal)
    network.slow_down(victim, 50)
    try:
        ordeal.await_acknowledged()
    finally:
        network.full_speed(victim)


def _network(ordeal: Ordeal) -> Network:
    network = ordeal.trio.network
    assert network is not None
    return network


class _Cuts:
    """Healed in any case."""

    def __init__(self, ordeal: Ordeal) -> None:
        self._network = _network(ordeal)

    def __enter__(self) -> Network:
        return self._network

    def __exit__(self, *_: object) -> None:
        self._network.heal()


# --- disks


def fill_disk(ordeal: Ordeal, node: int = 3) -> None:
    """Of one broker, whose data is on a small file system; the others go on."""
    ballast = fill(ordeal.trio.data_dir(node).parent)
    try:
        ordeal.await_acknowledged(500)
    finally:
        ballast.unlink()
    if ordeal.trio.nodes[node].running:
        ordeal.trio.nodes[node].kill()
    else:
        ordeal.trio.nodes[node].close()
    ordeal.trio.nodes[node].start()


ANYWHERE: Sequence[Fault] = (
    kill_leader,
    kill_controller,
    kill_coordinator,
    kill_two,
    kill_all,
    kill_one_after_the_other,
    pause_leader,
    pause_controller,
    pause_shortly,
    rolling_restart,
)
OF_ZOOKEEPER: Sequence[Fault] = (kill_zookeeper, pause_zookeeper, kill_leader_without_zookeeper)
OF_NETWORKS: Sequence[Fault] = (
    cut_leader_from_a_follower,
    cut_leader_from_its_followers,
    cut_one_direction,
    isolate,
    cut_clients_off,
    slow_follower,
)
