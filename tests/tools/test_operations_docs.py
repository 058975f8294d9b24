"""The systemd unit of docs/operations.md is one that systemd accepts."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parents[2] / "docs" / "operations.md"


def test_systemd_accepts_the_unit(tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("checking a systemd unit needs systemd-analyze")
    (unit,) = re.findall(r"```ini\n(.*?)```", PAGE.read_text(), re.DOTALL)
    program = tmp_path / "ottla"
    program.touch(0o755)
    assert "/opt/ottla/bin/ottla" in unit
    file = tmp_path / "ottla.service"
    file.write_text(unit.replace("/opt/ottla/bin/ottla", str(program)))
    checked = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(file)], capture_output=True, text=True, timeout=60
    )
    about_ours = [line for line in checked.stderr.splitlines() if "ottla" in line]
    assert checked.returncode == 0, checked.stderr
    assert about_ours == []
