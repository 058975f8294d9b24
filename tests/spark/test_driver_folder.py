"""Files of a driver go with it, or with the next one."""

from __future__ import annotations

from pathlib import Path

from ottla.spark.driver_folder import DriverFolder


def test_what_nobody_holds_is_removed_and_what_somebody_holds_is_not(tmp_path: Path) -> None:
    killed = tmp_path / "files-of-a-killed-one"
    killed.mkdir()
    (killed / "lock").touch()
    (killed / "large").write_bytes(bytes(1000))
    (tmp_path / "other-files").mkdir()
    first, second = DriverFolder(tmp_path, "files-"), DriverFolder(tmp_path, "files-")
    assert {path.name for path in tmp_path.iterdir()} == {first.path.name, second.path.name, "other-files"}
    first.close()
    assert second.path.is_dir()
    second.close()
    assert [path.name for path in tmp_path.iterdir()] == ["other-files"]
