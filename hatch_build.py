"""Compiles `src/ottla/kernel/*.pyx` next to their sources while the package is built, for wheels and editable installs.

The kernel is optional: every compiled module has a twin in plain Python that passes the same tests. Without a compiler
or Cython the build says so in one line and makes a wheel that runs everywhere, slower.

`python hatch_build.py` compiles in place without installing anything, for work on the kernel itself. Flags that follow
are the compiler's and the linker's in place of those of a release, as `-fsanitize=address -O1 -g`.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

KERNEL = Path("src") / "ottla" / "kernel"
RELEASE = ("-O3", "-g0")


def compile_kernel(root: Path, flags: Sequence[str] = RELEASE) -> str | None:
    """None when every module was compiled, else why not."""
    try:
        from Cython.Build import cythonize
        from setuptools import Distribution, Extension
        from setuptools.command.build_ext import build_ext
    except ImportError as error:
        return f"{error.name} is not installed"
    sources = sorted((root / KERNEL).glob("*.pyx"))
    # `decode.pyx` becomes `ottla.kernel._decode`: its last name is how the file is called wherever it is shipped.
    options = {"include_dirs": [str(root / KERNEL)], "extra_compile_args": list(flags)}
    if flags != RELEASE:
        options["extra_link_args"] = list(flags)
    extensions = [Extension(f"ottla.kernel._{one.stem}", [str(one)], **options) for one in sources]
    with tempfile.TemporaryDirectory(prefix="ottla-kernel-") as scratch:
        try:
            prepared = cythonize(extensions, build_dir=scratch, language_level=3, quiet=True)
            command = build_ext(Distribution({"name": "ottla", "ext_modules": prepared, "package_dir": {"": "src"}}))
            command.build_temp = scratch
            command.build_lib = str(root / "src")
            command.ensure_finalized()
            command.run()
        except Exception as error:  # whatever a compiler, or its absence, may raise: the twins work without it
            return f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else 'no details'}"
    return None


def tell(reason: str | None) -> None:
    if reason is not None:
        print(f"ottla: the kernel is not compiled ({reason}); its twin in plain Python is used.", file=sys.stderr)


if __name__ == "__main__":
    problem = compile_kernel(Path(__file__).resolve().parent, sys.argv[1:] or RELEASE)
    tell(problem)
    sys.exit(problem is not None)
else:
    from hatchling.builders.hooks.plugin.interface import BuildHookInterface

    class KernelBuildHook(BuildHookInterface):  # type: ignore[type-arg, unused-ignore]
        PLUGIN_NAME = "custom"

        def initialize(self, version: str, build_data: dict[str, Any]) -> None:
            if self.target_name != "wheel":
                return
            reason = compile_kernel(Path(self.root))
            tell(reason)
            if reason is None:
                build_data["pure_python"] = False
                build_data["infer_tag"] = True
                build_data["artifacts"].append(f"{KERNEL.as_posix()}/*.so")
