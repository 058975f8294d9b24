"""Where ZooKeeper is and how to be let in."""

from __future__ import annotations

import ssl
from dataclasses import dataclass

from ottla.common.config.zookeeper import ZookeeperSettings
from ottla.common.errors import OttlaError
from ottla.metastore.port import CHROOT_BYTES_MAX, check_path


@dataclass(frozen=True, slots=True)
class ZookeeperOptions:
    # HOST:PORT,HOST:PORT
    servers: str
    # A path that all others are below; "" for none.
    chroot: str = ""
    session_timeout_ms: int = 9_000
    connection_timeout_ms: int = 18_000
    # USER:PASSWORD
    digest: str | None = None
    # Nodes that we make are for our user alone.
    is_acl_set: bool = False
    is_tls: bool = False
    # PEM files: a key with its certificates, and whom to trust.
    identity: str | None = None
    identity_password: str | None = None
    trusted: str | None = None
    is_host_checked: bool = True

    @classmethod
    def of(cls, config: ZookeeperSettings) -> ZookeeperOptions | None:
        """None where the configuration has no ZooKeeper. OttlaError names the property that cannot be used."""
        if config.zookeeper_connect is None:
            return None
        servers, slash, path = config.zookeeper_connect.partition("/")
        auth = config.ottla_zookeeper_auth
        options = cls(
            servers="".join(servers.split()),
            chroot=_chroot(slash + path),
            session_timeout_ms=config.zookeeper_session_timeout_ms,
            connection_timeout_ms=config.zookeeper_connection_timeout_ms,
            digest=auth.removeprefix("digest:") if auth else None,
            is_acl_set=config.zookeeper_set_acl,
            is_tls=config.zookeeper_ssl_client_enable,
            identity=config.zookeeper_ssl_keystore_location,
            identity_password=config.zookeeper_ssl_keystore_password,
            trusted=config.zookeeper_ssl_truststore_location,
            is_host_checked=bool(config.zookeeper_ssl_endpoint_identification_algorithm),
        )
        if options.is_acl_set and not (options.digest or (options.is_tls and options.identity)):
            raise OttlaError("zookeeper.set.acl is true, but nothing says who we are: set ottla.zookeeper.auth.")
        if options.is_tls:
            _check_files(options)
        return options


def _chroot(path: str) -> str:
    path = path.rstrip("/")
    if not path:
        return ""
    try:
        check_path(path)
    except ValueError as error:
        raise OttlaError(f"zookeeper.connect: {error}.") from None
    if len(path.encode()) > CHROOT_BYTES_MAX:
        raise OttlaError(f"zookeeper.connect: the path {path} is longer than {CHROOT_BYTES_MAX} bytes.")
    return path


def _check_files(options: ZookeeperOptions) -> None:
    """Before kazoo takes a file that it cannot read for a connection that breaks."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    try:
        name, location = "zookeeper.ssl.truststore.location", options.trusted
        if options.trusted:
            context.load_verify_locations(options.trusted)
        name, location = "zookeeper.ssl.keystore.location", options.identity
        if options.identity:
            # A password in any case: without one OpenSSL would ask for it at the terminal.
            context.load_cert_chain(options.identity, password=options.identity_password or "")
    except ssl.SSLError as error:
        reason = (error.reason or "it is no PEM file").lower().replace("_", " ")
        raise OttlaError(f"{name}: {location} cannot be used: {reason}.") from None
    except OSError as error:
        raise OttlaError(f"{name}: {location} cannot be read: {error.strerror}.") from None
