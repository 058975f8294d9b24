"""What the authorizer decides, rule by rule."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace

import pytest

from ottla.metadata.acls import Acl, AclFilter, Operation, PatternType, Permission, ResourceType, decode_acl, encode_acl
from ottla.security.authorizer import Authorizer

HOST = "10.0.0.1"
READ_ORDERS = Acl(ResourceType.TOPIC, "orders", PatternType.LITERAL, "User:ada", "*", Operation.READ, Permission.ALLOW)


def may(
    authorizer: Authorizer,
    operation: Operation = Operation.READ,
    name: str = "orders",
    *,
    principal: str = "User:ada",
    host: str = HOST,
) -> bool:
    return authorizer.allows(principal, host, operation, ResourceType.TOPIC, name)


def test_nobody_may_do_what_no_acl_allows() -> None:
    authorizer = Authorizer([READ_ORDERS])
    assert may(authorizer)
    assert not may(authorizer, Operation.WRITE)
    assert not may(authorizer, name="orders2")
    assert not may(authorizer, principal="User:bob")
    assert not authorizer.allows("User:ada", HOST, Operation.READ, ResourceType.GROUP, "orders")


def test_a_deny_beats_every_allow() -> None:
    denial = replace(READ_ORDERS, resource_name="ord", pattern_type=PatternType.PREFIXED, permission=Permission.DENY)
    assert not may(Authorizer([READ_ORDERS, denial]))
    assert not may(Authorizer([denial, READ_ORDERS]))


def test_patterns_cover_a_name_a_prefix_or_everything() -> None:
    prefixed = Authorizer([replace(READ_ORDERS, resource_name="ord", pattern_type=PatternType.PREFIXED)])
    assert may(prefixed) and may(prefixed, name="ord") and not may(prefixed, name="or")
    everything = Authorizer([replace(READ_ORDERS, resource_name="*")])
    assert may(everything, name="anything")
    # As a prefix the star is a letter like any other.
    assert not may(Authorizer([replace(READ_ORDERS, resource_name="*", pattern_type=PatternType.PREFIXED)]))


def test_an_acl_may_be_for_everybody_or_for_one_address() -> None:
    assert may(Authorizer([replace(READ_ORDERS, principal="User:*")]), principal="User:bob")
    from_one = Authorizer([replace(READ_ORDERS, host=HOST)])
    assert may(from_one) and not may(from_one, host="10.0.0.2")


@pytest.mark.parametrize("written", ["0:0:0:0:0:0:0:1", "::1", "0000::0001"])
def test_an_address_may_be_written_in_every_way_it_has(written: str) -> None:
    """Java writes 0:0:0:0:0:0:0:1 for what a socket here calls ::1. A DENY must not depend on it."""
    denial = replace(READ_ORDERS, host=written, permission=Permission.DENY)
    authorizer = Authorizer([READ_ORDERS, denial])
    assert not may(authorizer, host="::1") and may(authorizer, host="::2")


def test_an_ipv4_address_in_ipv6_form_is_the_ipv4_address() -> None:
    denial = replace(READ_ORDERS, host=f"::ffff:{HOST}", permission=Permission.DENY)
    assert not may(Authorizer([READ_ORDERS, denial]))
    nonsense = replace(READ_ORDERS, host="not:an:address", permission=Permission.DENY)
    assert may(Authorizer([READ_ORDERS, nonsense]))


def test_names_that_no_topic_can_have_are_not_remembered() -> None:
    """They are the client's choice, up to 32 KiB each: 20,000 of them would be the broker's memory."""
    authorizer = Authorizer([replace(READ_ORDERS, resource_name="a", pattern_type=PatternType.PREFIXED)])
    tracemalloc.start()
    try:
        for number in range(300):
            assert may(authorizer, name=f"a{number:030000}")
        kept_bytes, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept_bytes < 1_000_000
    assert not may(authorizer, name="b" * 30_000)


def test_to_read_or_alter_implies_to_describe_but_a_deny_implies_nothing() -> None:
    for operation in (Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER):
        assert may(Authorizer([replace(READ_ORDERS, operation=operation)]), Operation.DESCRIBE)
    assert not may(Authorizer([replace(READ_ORDERS, operation=Operation.CREATE)]), Operation.DESCRIBE)
    assert may(Authorizer([replace(READ_ORDERS, operation=Operation.ALTER_CONFIGS)]), Operation.DESCRIBE_CONFIGS)
    deny_read = replace(READ_ORDERS, permission=Permission.DENY)
    describe = replace(READ_ORDERS, operation=Operation.DESCRIBE)
    assert may(Authorizer([deny_read, describe]), Operation.DESCRIBE)


def test_a_super_user_may_do_what_is_denied() -> None:
    denial = replace(READ_ORDERS, permission=Permission.DENY)
    assert may(Authorizer([denial], super_users=["User:ada"]))
    assert not may(Authorizer([denial], super_users=["User:ad"]))


def test_without_any_acl_for_a_resource_everybody_may_if_so_configured() -> None:
    open_to_all = Authorizer([READ_ORDERS], allows_without_acl=True)
    assert may(open_to_all, Operation.WRITE, "payments", principal="User:bob")
    assert not may(open_to_all, principal="User:bob")


def test_a_producer_needs_one_topic_that_no_denial_takes_away() -> None:
    write = replace(READ_ORDERS, operation=Operation.WRITE)
    denial = replace(write, permission=Permission.DENY)

    def has_one(*acls: Acl) -> bool:
        return Authorizer(acls).allows_on_any("User:ada", HOST, Operation.WRITE, ResourceType.TOPIC)

    assert has_one(write)
    assert not has_one(READ_ORDERS)
    assert not has_one(write, denial)
    assert not has_one(write, replace(denial, resource_name="o", pattern_type=PatternType.PREFIXED))
    assert has_one(write, replace(denial, resource_name="ordersX", pattern_type=PatternType.PREFIXED))
    assert not has_one(write, replace(denial, resource_name="*"))


def test_a_filter_finds_what_has_an_effect_on_a_name() -> None:
    prefixed = replace(READ_ORDERS, resource_name="ord", pattern_type=PatternType.PREFIXED)
    everything = replace(READ_ORDERS, resource_name="*")
    wanted = AclFilter(ResourceType.TOPIC, "orders", PatternType.MATCH)
    assert [acl for acl in (READ_ORDERS, prefixed, everything) if wanted.matches(acl)] == [
        READ_ORDERS,
        prefixed,
        everything,
    ]
    assert not AclFilter(ResourceType.TOPIC, "orders").matches(prefixed)
    assert not AclFilter(permission=Permission.DENY).matches(READ_ORDERS)


def test_an_acl_survives_the_metadata_store() -> None:
    assert decode_acl(encode_acl(READ_ORDERS)) == READ_ORDERS
