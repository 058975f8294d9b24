"""The compiled kernel reads and writes nothing but its own memory, whatever bytes it is given: its tests and a fuzzer
run on a build with gcc's sanitizers."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kernel import sanitized

pytest.importorskip("Cython", reason="Cython is not installed: run `make setup`")

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3_600)]

ROUNDS = 1_000
# The twins need no such test, and Spark's executors none of the tests here.
OTHERS = "not pure and not on_executors"
PLANTED = """
def past_the_end(bytes data, Py_ssize_t at):
    cdef const unsigned char *begin = data
    return begin[at]

def too_far(long number, int places):
    cdef long shifted = number << places
    return shifted
"""


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    sanitized.runtimes()
    made = tmp_path_factory.mktemp("sanitized")
    sanitized.copy_of_package(made)
    sanitized.build(made)
    return made


@pytest.mark.parametrize(
    ("call", "told"),
    [
        ("past_the_end(b'abc', 2)", None),
        # Python ends its bytes with a zero that is not theirs.
        ("past_the_end(b'abc' * 99, 99 * 3 + 1)", "heap-buffer-overflow"),
        ("too_far(1, 63)", None),
        ("too_far(1, 64)", "shift exponent 64 is too large"),
    ],
)
def test_what_is_planted_is_found(tmp_path: Path, call: str, told: str | None) -> None:
    """Else nothing that the others find nothing in would say anything."""
    sanitized.runtimes()
    kernel = tmp_path / "src" / "ottla" / "kernel"
    kernel.mkdir(parents=True)
    (kernel / "planted.pyx").write_text(PLANTED)
    sanitized.build(tmp_path)
    code = f"import sys; sys.path.insert(0, {str(kernel)!r}); import _planted; _planted.{call}"
    done = sanitized.run(tmp_path, ["-c", code])
    assert (done.returncode == 0) == (told is None), done.stderr
    assert told is None or told in done.stderr


def test_damaged_bytes_lead_nowhere_else(tree: Path) -> None:
    done = sanitized.run(tree, ["-m", "tests.kernel.fuzz", "--rounds", str(ROUNDS)])
    assert done.returncode == 0, done.stderr[-6_000:]
    assert str(tree) in done.stdout, "another build was run"


def test_the_kernels_own_tests_pass_there(tree: Path) -> None:
    which = ["-m", "not slow", "-k", OTHERS, "tests/kernel", "tests/schemas"]
    done = sanitized.run(tree, ["-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *which])
    assert done.returncode == 0, done.stdout[-6_000:] + done.stderr[-6_000:]
