"""The ZooKeeper server inside PySpark's jars: how it is configured and started.

One server for development and tests, small and quiet. Production has an ensemble of its own.
"""

from __future__ import annotations

import os
import re
import shutil
import socket
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

from ottla.common.errors import OttlaError

# What the server needs of Spark's 300 jars; fewer jars, faster start.
_JARS = re.compile(r"(zookeeper|zookeeper-jute|slf4j-api|log4j-.*|metrics-core|snappy-java|netty-.*)-\d[\w.-]*\.jar")
_MAIN = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
_JVM = ("-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xss512k")
_TICK_MS = 1_000

_LOG4J = """\
status = error
rootLogger.level = warn
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = %d{ISO8601} %p %c{1}: %m%n
# That it is a single server.
logger.main.name = org.apache.zookeeper.server.quorum.QuorumPeerMain
logger.main.level = error
# That there is no limit for connections.
logger.factory.name = org.apache.zookeeper.server.ServerCnxnFactory
logger.factory.level = error
# That a client is gone, or came before the server was ready.
logger.connection.name = org.apache.zookeeper.server.NIOServerCnxn
logger.connection.level = error
# That a command came before the server was ready.
logger.command.name = org.apache.zookeeper.server.ServerCnxn
logger.command.level = off
"""


def jars() -> list[Path]:
    spec = find_spec("pyspark")
    folders = list(spec.submodule_search_locations or ()) if spec is not None else []
    found = [path for folder in folders for path in Path(folder, "jars").glob("*.jar") if _JARS.fullmatch(path.name)]
    if not any(path.name.startswith("zookeeper-") for path in found):
        raise OttlaError(
            "the ZooKeeper server comes with PySpark, which is not here: run `pip install 'ottla[spark]'`."
        )
    return sorted(found)


def java(environment: Mapping[str, str] = os.environ) -> str:
    home = environment.get("JAVA_HOME")
    found = shutil.which(Path(home, "bin", "java")) if home else shutil.which("java", path=environment.get("PATH"))
    if found is None:
        where = f"JAVA_HOME is {home}, where there is no Java" if home else "there is no Java here"
        raise OttlaError(
            f"the ZooKeeper server needs Java and {where}: install one, for example with "
            "`apt-get install openjdk-17-jre-headless`."
        )
    return found


def prepare(
    folder: Path, host: str, port: int, *, tick_ms: int = _TICK_MS, settings: Mapping[str, str] | None = None
) -> list[str]:
    """Write its configuration to the folder, where its data are kept too; the command that starts it.

    A session time-out is at least two ticks; `settings` are more lines of zoo.cfg.
    """
    program, class_path = java(), jars()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        configuration = folder / "zoo.cfg"
        configuration.write_text(_configuration(folder, host, port, tick_ms, settings or {}))
        logging = folder / "log4j2.properties"
        logging.write_text(_LOG4J)
    except OSError as error:
        raise OttlaError(f"cannot write to {folder}: {error.strerror}.") from None
    return [
        program,
        *_JVM,
        f"-Dlog4j2.configurationFile={logging}",
        "-Dzookeeper.jmx.log4j.disable=true",
        # Kilobytes that the log of changes grows by; 64 MB otherwise.
        "-Dzookeeper.preAllocSize=4096",
        "-cp",
        os.pathsep.join(map(str, class_path)),
        _MAIN,
        str(configuration),
    ]


def is_serving(host: str, port: int) -> bool:
    """Asked with `srvr`: to `ruok` it says yes before it can serve."""
    try:
        with socket.create_connection((host, port), 1.0) as connection:
            connection.sendall(b"srvr")
            return connection.recv(4096).startswith(b"Zookeeper version")
    except OSError:
        return False


def _configuration(folder: Path, host: str, port: int, tick_ms: int, settings: Mapping[str, str]) -> str:
    lines = {
        "dataDir": str(folder.resolve()),
        "clientPortAddress": host,
        "clientPort": str(port),
        "tickTime": str(tick_ms),
        "minSessionTimeout": str(2 * tick_ms),
        "maxSessionTimeout": "60000",
        # Brokers on one machine share an address.
        "maxClientCnxns": "0",
        "admin.enableServer": "false",
        "4lw.commands.whitelist": "ruok,srvr,mntr",
        "autopurge.snapRetainCount": "3",
        "autopurge.purgeInterval": "1",
        **settings,
    }
    return "".join(f"{name}={value}\n" for name, value in lines.items())
