"""The folder that `ottla security` keeps: the authority, and for each broker and client all that it needs.

    DIR/security.json               what was decided; with secrets
        ca.pem  ca.key              whom to trust; how more is signed, to be kept away from brokers
        profiles.toml               for `ottla --profile NAME`
        broker-1/                   server.properties, broker.pem
        clients/NAME/               client.properties (Java), librdkafka.properties, settings.py, spark.json, client.pem

All but `ca.pem` is readable for its owner alone. Files are replaced whole: who reads one gets the old or the new.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shlex
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from ottla.cli.security import files
from ottla.cli.security.plan import LOOPBACK, BrokerPlan, ClientPlan, Plan
from ottla.common.certificates import Authority, Issued, certificates_in, expires
from ottla.common.errors import OttlaError

CA_DAYS = 3650


class SecurityFolder:
    def __init__(self, path: Path) -> None:
        self.path = path.absolute()
        self._plan_file = self.path / "security.json"
        self.ca = self.path / "ca.pem"
        self._ca_key = self.path / "ca.key"
        self.profiles = self.path / "profiles.toml"

    # -- the plan --------------------------------------------------------------------------------------------------

    @property
    def exists(self) -> bool:
        return self._plan_file.exists()

    def plan(self) -> Plan:
        try:
            return Plan.from_json(self._plan_file.read_text())
        except FileNotFoundError:
            raise OttlaError(f"there is no {self._plan_file}: make it with `ottla security init`.") from None
        except OSError as error:
            raise OttlaError(f"cannot read {self._plan_file}: {error.strerror}.") from None
        except (ValueError, TypeError, KeyError):
            raise OttlaError(f"{self._plan_file} is not what `ottla security` has written.") from None

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """One command at a time: two that add would forget one another."""
        try:
            self.path.mkdir(parents=True, exist_ok=True, mode=0o700)
            lock = os.open(self.path, os.O_RDONLY)
        except OSError as error:
            raise OttlaError(f"cannot use {self.path}: {error.strerror}.") from None
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
        except OSError as error:
            raise OttlaError(f"cannot write {error.filename or self.path}: {error.strerror}.") from None
        finally:
            os.close(lock)

    def keep(self, plan: Plan) -> None:
        """Settings of clients follow from the plan, and are written again. Those of a broker are written once: they are
        its owner's from then on."""
        self._write(self._plan_file, plan.to_json())
        for broker in plan.brokers:
            if not self.server_properties(broker).exists():
                text = files.server_properties(plan, broker, folder=self.broker(broker), ca=self.ca)
                self._write(self.server_properties(broker), text)
        for client in plan.clients:
            self._write_settings(plan, client)
        profiles = {
            client.name: files.librdkafka_settings(plan, client, identity=self.identity(client), ca=self.ca)
            for client in plan.clients
        }
        self._write(self.profiles, files.profiles_text(profiles))

    def _write_settings(self, plan: Plan, client: ClientPlan) -> None:
        folder, identity = self.client(client), self.identity(client)
        java = files.java_settings(plan, client, identity=identity, ca=self.ca)
        ours = files.librdkafka_settings(plan, client, identity=identity, ca=self.ca)
        identity_pem = identity.read_text() if client.password is None else ""
        spark = files.spark_options(plan, client, identity_pem=identity_pem, ca_pem=self.ca.read_text())
        self._write(folder / "client.properties", files.properties_text(java, "settings for Java's clients and tools"))
        self._write(folder / "librdkafka.properties", files.properties_text(ours, "settings for librdkafka, kcat -F"))
        self._write(folder / "settings.py", files.python_text(ours))
        self._write(folder / "spark.json", json.dumps(spark, indent=2) + "\n")

    # -- places ----------------------------------------------------------------------------------------------------

    def broker(self, broker: BrokerPlan) -> Path:
        return self.path / broker.name

    def server_properties(self, broker: BrokerPlan) -> Path:
        return self.broker(broker) / "server.properties"

    def client(self, client: ClientPlan) -> Path:
        return self.path / "clients" / client.name

    def identity(self, client: ClientPlan) -> Path:
        return self.client(client) / "client.pem"

    # -- certificates ----------------------------------------------------------------------------------------------

    def make_authority(self) -> None:
        """The first one, or one more: the old one is trusted until `forget_old_authorities`."""
        old = self.ca.read_text() if self.ca.exists() else ""
        issued = Authority.new("Ottla CA", CA_DAYS).issued
        self._write(self._ca_key, issued.key_pem.decode())
        self._write(self.ca, issued.certificate_pem.decode() + old, 0o644)

    def forget_old_authorities(self) -> int:
        """How many there were."""
        newest, *older = certificates_in(self.ca.read_text())
        self._write(self.ca, newest, 0o644)
        return len(older)

    def _authority(self) -> Authority:
        try:
            return Authority(Issued(self._ca_key.read_bytes(), certificates_in(self.ca.read_text())[0].encode()))
        except FileNotFoundError as error:
            raise OttlaError(
                f"there is no {error.filename}: bring it back from where you keep it; without it nothing can be signed."
            ) from None
        except (ValueError, IndexError):
            raise OttlaError(f"{self.ca} or {self._ca_key} is no PEM file that can be read.") from None

    def check_days(self, days: int) -> None:
        """No certificate is good for longer than its authority."""
        end = expires(self._authority().issued.certificate_pem.decode())
        most = (end - datetime.now(UTC)).days
        if days > most:
            raise OttlaError(
                f"the CA is good until {end:%Y-%m-%d}, and no certificate is for longer: give at most {most} --days, "
                "or make a new CA first with `ottla security renew --ca`."
            )

    def issue_to_broker(self, broker: BrokerPlan, days: int) -> datetime:
        hosts = list(dict.fromkeys([*broker.hosts, *LOOPBACK]))
        issued = self._authority().issue(broker.common_name, days, unit="brokers", hosts=hosts)
        return self._write(self.broker(broker) / "broker.pem", issued.pem)

    def issue_to_client(self, client: ClientPlan, days: int) -> datetime:
        return self._write(self.identity(client), self._authority().issue(client.user, days).pem)

    def expiry(self) -> Iterator[tuple[str, Path, datetime]]:
        """Of the authorities and all certificates: name, file, end."""
        plan = self.plan()
        places = [("ca", self.ca), *((one.name, self.broker(one) / "broker.pem") for one in plan.brokers)]
        places += [(one.name, self.identity(one)) for one in plan.clients if one.password is None]
        for name, file in places:
            try:
                yield name, file, expires(file.read_text())
            except OSError as error:
                raise OttlaError(f"cannot read {file}: {error.strerror}.") from None
            except ValueError:
                raise OttlaError(f"{file} is no PEM file that can be read.") from None

    def _write(self, path: Path, text: str, mode: int = 0o600) -> datetime:
        """When what is in it expires, if there is a certificate in it."""
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        fresh = path.with_name(path.name + ".new")
        with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode), "w") as out:
            os.fchmod(out.fileno(), mode)
            out.write(text)
        os.replace(fresh, path)
        return expires(text) if "BEGIN CERTIFICATE" in text and path.suffix == ".pem" else datetime.max

    # -- what to do next -------------------------------------------------------------------------------------------

    def first_steps(self, broker: BrokerPlan, client: ClientPlan) -> list[str]:
        """Three lines for a shell: start, say which cluster, see that it works."""
        server = shlex.quote(str(self.server_properties(broker)))
        return [
            f"ottla start --config {server} &",
            f"export OTTLA_PROFILES={shlex.quote(str(self.profiles))} OTTLA_PROFILE={client.name}",
            'ottla cluster health --wait 60 && ottla produce hello "it works" && ottla consume hello -e',
        ]
