"""A cluster, reached through librdkafka without its noise and without its patience.

librdkafka retries for a minute or longer and reports trouble on stderr; a person at a prompt wants one sentence within
seconds. So its log is off (unless `-X debug=...` asks for it), its error callback is watched while we wait for an
answer, and "all brokers down" is checked with a plain TCP connect: a host name with several addresses (localhost is
::1 and 127.0.0.1) looks down to librdkafka until it has tried them all.
"""

from __future__ import annotations

import difflib
import functools
import re
import socket
import threading
import time
from collections.abc import Iterable, Mapping
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, TypeVar

from ottla.cli.error_sentences import bad_client_setting, detail_of, failed, sentence
from ottla.cli.interrupts import uninterrupted
from ottla.cli.settings import DEFAULT_BOOTSTRAP, Settings
from ottla.common.errors import OttlaError

if TYPE_CHECKING:
    from confluent_kafka import Consumer, KafkaError, Producer
    from confluent_kafka.admin import AdminClient

Answer = TypeVar("Answer")

ANSWER_S_MAX = 15.0  # for one administrative answer
CONNECT_S_MAX = 4.0  # until a host counts as unreachable
SUSPICION_S = 3.0  # then we look whether the advertised addresses can be reached
PATIENCE_S = 3.0  # connections succeed, but nothing useful comes back

QUICK_SETTINGS = {
    "socket.connection.setup.timeout.ms": str(int(CONNECT_S_MAX * 1000)),
    "api.version.request.timeout.ms": str(int(CONNECT_S_MAX * 1000)),
    "client.id": "ottla-cli",
}
ADDRESS = re.compile(r"(?:\w+://)?(?P<host>\[[^\]\s]+\]|[^\s:/\[\]]+)(?::(?P<port>\d{1,5}))?", re.ASCII)
DEFAULT_PORT = 9092
PORT_MAX = 65_535
LEGAL_TOPIC = re.compile(r"[a-zA-Z0-9._-]{1,249}")
LEARNED_BROKER = re.compile(r"(?:\w+://)?([^/\s]+)/\d+: ")  # as librdkafka begins an error about a broker
FATAL_ERRORS = frozenset({"_AUTHENTICATION", "SASL_AUTHENTICATION_FAILED", "_SSL"})


class Cluster:
    """One cluster as the settings describe it. Nothing is opened before it is used."""

    def __init__(self, settings: Settings) -> None:
        self.client_settings = settings.client_settings()
        self.bootstrap = self.client_settings["bootstrap.servers"]
        for server in self.bootstrap.split(","):
            _require_address(server.strip())
        self._trouble = Trouble(self.bootstrap)
        self._reached = False

    # -- clients ---------------------------------------------------------------------------------------------------

    @functools.cached_property
    def admin(self) -> AdminClient:
        from confluent_kafka.admin import AdminClient

        return self._open(AdminClient, self._config({}))

    def consumer(self, more: Mapping[str, Any]) -> Consumer:
        """A consumer with our settings, overridden by the user's."""
        from confluent_kafka import Consumer

        return self._open(Consumer, self._config(more))

    def producer(self, more: Mapping[str, Any]) -> Producer:
        from confluent_kafka import Producer

        return self._open(Producer, self._config(more))

    def _config(self, more: Mapping[str, Any]) -> dict[str, Any]:
        quiet = {} if "debug" in self.client_settings else {"log_level": 0}
        return {**QUICK_SETTINGS, **quiet, **more, **self.client_settings, "error_cb": self._trouble.saw}

    @staticmethod
    def _open(kind: type[Any], config: dict[str, Any]) -> Any:
        from confluent_kafka import KafkaException

        try:
            return uninterrupted(kind)(config)
        except KafkaException as error:
            raise bad_client_setting(error) from None

    # -- waiting ---------------------------------------------------------------------------------------------------

    def wait(self, answer: Future[Answer], seconds_max: float = ANSWER_S_MAX) -> Answer:
        """The answer, or the reason why there will be none."""
        ready = threading.Event()
        answer.add_done_callback(lambda _: ready.set())
        began_s, suspicion_s = time.monotonic(), SUSPICION_S
        while not ready.wait(0.02):
            self.admin.poll(0)
            self.check()
            waited_s = time.monotonic() - began_s
            if waited_s > suspicion_s:
                suspicion_s = 2 * waited_s
                self._require_advertised_reachable()
            if waited_s > seconds_max:
                raise OttlaError(f"{self.bootstrap} did not answer within {seconds_max:.0f} s: is the cluster healthy?")
        if (error := answer.exception()) is not None and _timed_out(error):
            self._require_advertised_reachable()
        return answer.result()

    def wait_about(self, subject: str, answer: Future[Answer]) -> Answer:
        """As `wait`; what a broker refuses is told of `subject`."""
        from confluent_kafka import KafkaException

        try:
            return self.wait(answer)
        except KafkaException as error:
            raise failed(error, subject) from None

    def _require_advertised_reachable(self) -> None:
        """The classic of Kafka in containers: bootstrap answers, and sends us to addresses that do not."""
        advertised = self._advertised()
        if advertised and not any_answers(advertised):
            raise OttlaError(misadvertised(self.bootstrap, advertised))

    def _advertised(self) -> str:
        """The client that waits is asked first: it learns by this where the controller has gone, which librdkafka does
        not look for by itself. It may also be backing off from the very address that would answer: then a new one."""
        from confluent_kafka import KafkaException
        from confluent_kafka.admin import AdminClient

        for is_new, seconds in ((False, 1.0), (True, CONNECT_S_MAX)):
            try:
                client = self._open(AdminClient, self._config({})) if is_new else self.admin
                brokers = client.list_topics(timeout=seconds).brokers.values()
            except KafkaException:
                continue
            return ",".join(f"{broker.host}:{broker.port}" for broker in brokers)
        return ""

    def check(self) -> None:
        """Raises when the clients' error callbacks have seen something that waiting will not mend."""
        self._trouble.raise_if_hopeless(self._reached)

    def is_lost(self) -> bool:
        """Whether all brokers went away since the last `is_well`; true once each time, for a notice."""
        return self._trouble.all_down and self._trouble.first_time()

    def is_well(self) -> None:
        """Something came from a broker: what the callbacks saw before is past."""
        self._trouble.clear()

    def reach(self) -> Any:
        """Cluster id, controller and brokers; the first call of every command, as it fails fast and says why."""
        described = self.wait(self.admin.describe_cluster(request_timeout=ANSWER_S_MAX))
        self._reached = True
        self._trouble.advertised = [f"{node.host}:{node.port}" for node in described.nodes]
        return described

    def all_topics(self) -> Any:
        """Every topic and partition, as one Metadata answer has them; creates nothing."""
        self._reach_once()
        return self.admin.list_topics(timeout=ANSWER_S_MAX)

    def topics(self, names: Iterable[str]) -> dict[str, Any]:
        """Descriptions (id, partitions with leader, replicas, isr) of topics that must exist."""
        from confluent_kafka import KafkaException, TopicCollection

        wanted = list(dict.fromkeys(names))
        for name in wanted:
            require_topic_name(name)
        self._reach_once()
        answers = self.admin.describe_topics(TopicCollection(wanted), request_timeout=ANSWER_S_MAX)
        found: dict[str, Any] = {}
        for name, answer in answers.items():
            try:
                found[name] = self.wait(answer)
            except KafkaException as error:
                if error.args[0].name() == "UNKNOWN_TOPIC_OR_PART":
                    raise self.no_topic(name) from None
                raise failed(error, f"topic '{name}'") from None
        return found

    def deleted_topic(self, names: Iterable[str]) -> str | None:
        """One that the cluster says is gone. No answer, or any other trouble, is no deletion."""
        from confluent_kafka import KafkaException, TopicCollection

        answers = self.admin.describe_topics(TopicCollection(list(names)), request_timeout=CONNECT_S_MAX)
        for name, answer in answers.items():
            try:
                answer.result(CONNECT_S_MAX)
            except KafkaException as error:
                if error.args[0].name() == "UNKNOWN_TOPIC_OR_PART":
                    return str(name)
            except TimeoutError:
                continue
        return None

    def no_topic(self, name: str) -> OttlaError:
        """The sentence for a topic that is not there, with the nearest name that is."""
        known = list(self.all_topics().topics)
        near = difflib.get_close_matches(name, known, n=1)
        hint = (
            f"did you mean '{near[0]}'?"
            if near
            else f"`ottla topic list` shows what there is, `ottla topic create {name}` makes it."
        )
        return OttlaError(f"there is no topic '{name}': {hint}")

    def _reach_once(self) -> None:
        if not self._reached:
            self.reach()


def require_topic_name(name: str) -> None:
    """Kafka's rule, checked here because librdkafka only says "Invalid argument"."""
    if not LEGAL_TOPIC.fullmatch(name) or name in (".", ".."):
        raise OttlaError(f"'{name}' is not a topic name: use up to 249 of letters, digits, '.', '_' and '-'.")


class Trouble:
    """What the error callbacks saw. They run inside poll(), so they only take notes."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap
        self.advertised: list[str] = []
        self.clear()

    def clear(self) -> None:
        self.all_down = False
        self._told = False
        self._since_s: float | None = None
        self._fatal: KafkaError | None = None
        self._last: KafkaError | None = None
        self._learned: set[str] = set()  # addresses from metadata, not from the user, that failed

    def saw(self, error: KafkaError) -> None:
        self._since_s = self._since_s or time.monotonic()
        if error.name() == "_ALL_BROKERS_DOWN":
            self.all_down = True
            return
        self._last = error
        if learned := LEARNED_BROKER.match(error.str()):
            self._learned.add(learned[1])
        if error.name() in FATAL_ERRORS or error.fatal():
            self._fatal = error

    def first_time(self) -> bool:
        first, self._told = not self._told, True
        return first

    def raise_if_hopeless(self, reached: bool) -> None:
        if self._fatal is not None:
            raise OttlaError(sentence(self._fatal))
        if not self.all_down or self._since_s is None:
            return
        patient = time.monotonic() - self._since_s < PATIENCE_S
        if reached:
            if not patient:
                self._raise_if_lost()
        elif not any_answers(self.bootstrap):
            raise OttlaError(unreachable(self.bootstrap))
        elif self._learned and not any_answers(learned := ",".join(sorted(self._learned))):
            raise OttlaError(misadvertised(self.bootstrap, learned))
        elif not patient:
            said = f" ({detail_of(self._last)})" if self._last is not None else ""
            raise OttlaError(
                f"{self.bootstrap} accepts connections but does not answer as a Kafka broker would{said}: "
                "check the port and security.protocol."
            )

    def _raise_if_lost(self) -> None:
        if any_answers(",".join(self.advertised) or self.bootstrap):
            self.clear()
            return
        told = ",".join(self.advertised)
        if told and told != self.bootstrap and any_answers(self.bootstrap):
            raise OttlaError(misadvertised(self.bootstrap, told))
        raise OttlaError(f"the connection to {self.bootstrap} was lost: is the broker still running?")


def _timed_out(error: BaseException) -> bool:
    from confluent_kafka import KafkaException

    return isinstance(error, KafkaException) and error.args[0].name() == "_TIMED_OUT"


def unreachable(bootstrap: str) -> str:
    return f"cannot reach any broker at {bootstrap}: is it running? start one with `ottla start`"


def misadvertised(bootstrap: str, advertised: str) -> str:
    return (
        f"{bootstrap} answers, but says that its brokers are at {advertised}, where nothing can be reached: "
        "check advertised.listeners of the brokers."
    )


def any_answers(servers: str) -> bool:
    """Whether a TCP connection to one of them succeeds."""
    outcomes: list[bool] = []
    attempts = [
        threading.Thread(target=lambda address=server: outcomes.append(_connects(address)), daemon=True)
        for server in servers.split(",")
    ]
    for attempt in attempts:
        attempt.start()
    deadline = time.monotonic() + CONNECT_S_MAX + 0.5
    while len(outcomes) < len(attempts) and not any(outcomes) and time.monotonic() < deadline:
        time.sleep(0.01)
    return any(outcomes)


def _require_address(server: str) -> None:
    """librdkafka takes anything, and then looks for a host of that name."""
    match = ADDRESS.fullmatch(server)
    if match is None or int(match["port"] or DEFAULT_PORT) > PORT_MAX:
        raise OttlaError(f"'{server}' is not the address of a broker: write HOST:PORT, such as {DEFAULT_BOOTSTRAP}.")


def _connects(server: str) -> bool:
    match = ADDRESS.fullmatch(server.strip())
    if match is None:
        return False
    try:
        address = match["host"].strip("[]"), int(match["port"] or DEFAULT_PORT)
        with socket.create_connection(address, CONNECT_S_MAX):
            return True
    except OSError:
        return False
