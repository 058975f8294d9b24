"""Real databases: PostgreSQL and MariaDB from Debian's packages, each in a temporary folder and on a free port.

    def test(postgres: Postgres): postgres.sql("CREATE TABLE ...")

One server is shared by a session of tests and each test has its own database. One that kills it takes `own_postgres`.
Where a server cannot be run, its tests are skipped, and the reason says what to install.
"""

from __future__ import annotations

import contextlib
import glob
import itertools
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg2
import pymysql
import pytest

from tests.support.process import descendants, free_ports

HOST = "127.0.0.1"
PASSWORD = "secret"
KEEPS_ALL = ("--innodb-flush-log-at-trx-commit=1", "--sync-binlog=1")
_numbers = itertools.count()


def postgres_programs() -> Path | None:
    found = sorted(glob.glob("/usr/lib/postgresql/*/bin/initdb"), key=lambda path: int(path.split("/")[4]))
    if found:
        return Path(found[-1]).parent
    initdb = shutil.which("initdb")
    return Path(initdb).parent if initdb else None


def why_no_postgres() -> str | None:
    if postgres_programs() is None:
        return "PostgreSQL is not installed: apt-get install postgresql"
    if os.geteuid() == 0 and _user("postgres") is None:
        return "PostgreSQL does not run as root, and there is no user postgres: apt-get install postgresql"
    return None


def why_no_mariadb() -> str | None:
    if shutil.which("mariadbd", path=_path()) is None or shutil.which("mariadb-install-db", path=_path()) is None:
        return "MariaDB is not installed: apt-get install mariadb-server"
    return None


def _path() -> str:
    return os.environ.get("PATH", "") + ":/usr/sbin:/usr/local/sbin"


def _user(name: str) -> pwd.struct_passwd | None:
    try:
        return pwd.getpwnam(name)
    except KeyError:
        return None


def _is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


class _Server:
    """What both have in common: a folder that belongs to whoever runs the server, a port, a process."""

    name: str
    user: str

    def __init__(self, *settings: str) -> None:
        self.settings = settings
        self.port = free_ports(1)[0]
        self.folder = Path(tempfile.mkdtemp(prefix=f"ottla-{self.name}-"))
        self.process: subprocess.Popen[bytes] | None = None
        self._own: str | None = self.user if os.geteuid() == 0 else None
        if self._own:
            shutil.chown(self.folder, self._own, _user(self._own).pw_gid)  # type: ignore[union-attr]

    def _run(self, *command: str, **more: Any) -> subprocess.CompletedProcess[bytes]:
        done = subprocess.run(command, user=self._own, cwd=self.folder, capture_output=True, **more)
        assert done.returncode == 0, (done.stdout + done.stderr).decode()
        return done

    def _spawn(self, *command: str) -> None:
        with open(self.folder / "log", "ab") as log:
            self.process = subprocess.Popen(command, user=self._own, cwd=self.folder, stdout=log, stderr=log)

    def start(self) -> None:
        raise NotImplementedError

    def connect(self, database: str | None = None) -> Any:
        raise NotImplementedError

    def _wait(self) -> None:
        deadline = time.monotonic() + 120
        while True:
            try:
                self.connect().close()
                return
            except (psycopg2.Error, pymysql.Error):
                assert self.process is not None and self.process.poll() is None, self.last_words()
                assert time.monotonic() < deadline, self.last_words()
                time.sleep(0.05)

    def last_words(self) -> str:
        return (self.folder / "log").read_text()[-2000:]

    def kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def stop(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGINT if self.name == "postgres" else signal.SIGTERM)
            try:
                self.process.wait(60)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


class Database:
    """One database of a server, empty at first."""

    def __init__(self, server: Postgres | Mariadb, name: str) -> None:
        self.server = server
        self.name = name

    @property
    def port(self) -> int:
        return self.server.port

    def connect(self) -> Any:
        return self.server.connect(self.name)

    @contextmanager
    def session(self) -> Iterator[Any]:
        """A cursor whose statements are committed one by one."""
        connection = self.connect()
        try:
            yield connection.cursor()
        finally:
            connection.close()

    def sql(self, *statements: str) -> list[tuple[Any, ...]]:
        with self.session() as cursor:
            for statement in statements:
                cursor.execute(statement)
            return list(cursor.fetchall()) if cursor.description else []

    @property
    def url(self) -> str:
        return self.server.url(self.name)

    @property
    def settings(self) -> dict[str, str]:
        return {
            "database.hostname": HOST,
            "database.port": str(self.port),
            "database.user": self.server.login,
            "database.password": PASSWORD,
        }


class Postgres(_Server):
    name = "postgres"
    user = "postgres"
    login = "ottla"

    def __init__(self, *settings: str) -> None:
        super().__init__(*settings)
        programs = postgres_programs()
        assert programs is not None
        self._programs = programs
        password = self.folder / "password"
        password.write_text(PASSWORD)
        password.chmod(0o644)
        self._run(
            str(programs / "initdb"),
            "-D",
            str(self.folder / "data"),
            "-U",
            self.login,
            "-N",
            "--locale=C.UTF-8",
            "-E",
            "UTF8",
            "--auth=scram-sha-256",
            f"--pwfile={password}",
        )

    def start(self) -> None:
        options = [
            f"port={self.port}", f"listen_addresses={HOST}", f"unix_socket_directories={self.folder}",
            "wal_level=logical", "max_replication_slots=40", "max_wal_senders=40", "shared_buffers=32MB",
            "max_connections=80", "fsync=off", "restart_after_crash=off", *self.settings,
        ]  # fmt: skip
        self._spawn(
            str(self._programs / "postgres"),
            "-D",
            str(self.folder / "data"),
            *itertools.chain(*(("-c", o) for o in options)),
        )
        self._wait()

    def kill(self) -> None:
        """The postmaster and every backend at once, as a host that is gone."""
        assert self.process is not None
        self.process.send_signal(signal.SIGSTOP)  # it starts none meanwhile
        children = descendants(self.process.pid)
        for pid in [self.process.pid, *children]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait()
        # Another one does not start beside their shared memory.
        deadline = time.monotonic() + 120
        while any(map(_is_alive, children)):
            assert time.monotonic() < deadline, f"some of {children} do not end"
            time.sleep(0.01)
        (self.folder / "data" / "postmaster.pid").unlink(missing_ok=True)

    def connect(self, database: str | None = None) -> Any:
        connection = psycopg2.connect(
            host=HOST, port=self.port, user=self.login, password=PASSWORD, dbname=database or "postgres"
        )
        connection.autocommit = True
        return connection

    def url(self, database: str) -> str:
        return f"jdbc:postgresql://{HOST}:{self.port}/{database}"

    def database(self) -> Database:
        name = f"db{next(_numbers)}"
        Database(self, "postgres").sql(f"CREATE DATABASE {name}")
        return Database(self, name)


class Mariadb(_Server):
    name = "mariadb"
    user = "mysql"
    login = "ottla"

    def __init__(self, *settings: str) -> None:
        super().__init__(*settings)
        install = shutil.which("mariadb-install-db", path=_path())
        assert install is not None
        # Of its own: a server that starts removes the temporary tables of others that it finds.
        temporary = self.folder / "tmp"
        temporary.mkdir()
        temporary.chmod(0o777)
        self._run(
            install,
            "--no-defaults",
            f"--datadir={self.folder / 'data'}",
            f"--tmpdir={self.folder / 'tmp'}",
            "--auth-root-authentication-method=normal",
            "--skip-test-db",
            "--skip-name-resolve",
        )

    def start(self) -> None:
        init = self.folder / "init.sql"
        init.write_text(
            f"CREATE USER IF NOT EXISTS '{self.login}'@'%' IDENTIFIED BY '{PASSWORD}';\n"
            f"GRANT ALL ON *.* TO '{self.login}'@'%';\n"
        )
        init.chmod(0o644)
        program = shutil.which("mariadbd", path=_path())
        assert program is not None
        self._spawn(
            program,
            "--no-defaults",
            f"--datadir={self.folder / 'data'}",
            f"--tmpdir={self.folder / 'tmp'}",
            f"--port={self.port}",
            f"--bind-address={HOST}",
            f"--socket={self.folder / 'socket'}",
            f"--pid-file={self.folder / 'pid'}",
            f"--init-file={init}",
            "--log-bin=binlog",
            "--binlog-format=ROW",
            "--binlog-row-metadata=FULL",
            "--server-id=1",
            "--skip-name-resolve",
            "--innodb-buffer-pool-size=32M",
            "--innodb-log-file-size=16M",
            "--innodb-flush-log-at-trx-commit=2",
            "--character-set-server=utf8mb4",
            "--sync-binlog=0",
            *self.settings,
        )
        self._wait()

    def connect(self, database: str | None = None) -> Any:
        return pymysql.connect(
            host=HOST, port=self.port, user=self.login, password=PASSWORD, database=database, autocommit=True
        )

    def url(self, database: str) -> str:
        return f"jdbc:mysql://{HOST}:{self.port}/{database}"

    def database(self) -> Database:
        name = f"db{next(_numbers)}"
        with self.connect() as connection:
            connection.cursor().execute(f"CREATE DATABASE {name}")
        return Database(self, name)


def _started(kind: type[Postgres | Mariadb], *settings: str) -> Iterator[Any]:
    reason = why_no_postgres() if kind is Postgres else why_no_mariadb()
    if reason is not None:
        pytest.skip(reason)
    server = kind(*settings)
    try:
        server.start()
        yield server
    finally:
        server.stop()


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[Postgres]:
    yield from _started(Postgres)


@pytest.fixture
def postgres(postgres_server: Postgres) -> Database:
    return postgres_server.database()


@pytest.fixture
def own_postgres() -> Iterator[Postgres]:
    yield from _started(Postgres)


@pytest.fixture(scope="session")
def mariadb_server() -> Iterator[Mariadb]:
    yield from _started(Mariadb)


@pytest.fixture
def mariadb(mariadb_server: Mariadb) -> Database:
    return mariadb_server.database()


@pytest.fixture
def own_mariadb() -> Iterator[Mariadb]:
    """With what a server promises only then: after a crash its tables have what its binlog has."""
    yield from _started(Mariadb, *KEEPS_ALL)


@pytest.fixture
def forgetful_mariadb() -> Iterator[Mariadb]:
    """After a crash its tables lack what was committed last, and its binlog has it."""
    yield from _started(Mariadb, "--innodb-flush-log-at-trx-commit=0")
