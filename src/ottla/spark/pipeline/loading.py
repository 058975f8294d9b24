"""A pipeline from its file: Python with one `@pipeline` function in it, or SQL."""

from __future__ import annotations

import importlib.util
import sys
import traceback
from pathlib import Path
from types import ModuleType

from ottla.common.errors import OttlaError
from ottla.spark.pipeline.definition import Pipeline
from ottla.spark.pipeline.sql_file import parse_sql

_MODULE = "ottla_pipeline_file"
# Modules beside a pipeline's file that it imported.
_imported: set[str] = set()


def load(path: Path) -> Pipeline:
    """Raises OttlaError that says what is wrong with the file."""
    try:
        text = path.read_text()
    except FileNotFoundError:
        raise OttlaError(f"there is no file {path}.") from None
    except OSError as error:
        raise OttlaError(f"{path} cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError as error:
        raise OttlaError(f"{path} cannot be read: {error}.") from None
    if path.suffix == ".sql":
        return parse_sql(path, text)
    if path.suffix != ".py":
        raise OttlaError(f"{path} is not a pipeline: it must end in .py or .sql.")
    return _only_pipeline(path, execute_file(path))


def execute_file(path: Path) -> ModuleType:
    """Anew each time, with the modules beside it: what they made in a JVM (UDFs) is of no use in the next one."""
    folder = path.resolve().parent
    for name in _imported:
        sys.modules.pop(name, None)
    _imported.clear()
    before = set(sys.modules)
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    spec = importlib.util.spec_from_file_location(_MODULE, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[_MODULE] = module
    try:
        spec.loader.exec_module(module)
    except OttlaError:
        raise
    except SystemExit as error:
        raise OttlaError(f"{path}{line_of(error, path)} ends the program instead of defining a pipeline.") from None
    except ModuleNotFoundError as error:
        raise OttlaError(_missing_module(path, error)) from None
    except Exception as error:
        where = f"{path}{line_of(error, path)}"
        if "SESSION_OR_CONTEXT_NOT_EXISTS" in str(error):
            raise OttlaError(
                f"{where} needs Spark before it is started: move it into the pipeline's function, or declare a UDF's "
                "type with pyspark.sql.types."
            ) from None
        raise OttlaError(f"{where}: {named_error(error)}.") from None
    finally:
        _imported.update(module.__name__ for module in _beside(folder) if module.__name__ not in before)
    _send_by_value(folder)
    return module


def _missing_module(path: Path, error: ModuleNotFoundError) -> str:
    if error.name and error.name.partition(".")[0] in ("pyspark", "pyarrow"):
        return "pipelines need Spark, which is not installed: run `pip install 'ottla[spark]'`."
    return f"{path} needs the module '{error.name}', which is not installed."


def _send_by_value(folder: Path) -> None:
    """Functions of this file and of those beside it go to executors as code: they could not be imported there."""
    try:
        from pyspark import cloudpickle
    except ModuleNotFoundError:
        return
    for module in _beside(folder):
        cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]


def _beside(folder: Path) -> list[ModuleType]:
    # A copy: other threads, such as a broker's in a test, import what they need at any moment.
    return [module for module in list(sys.modules.values()) if _is_in(folder, module)]


def _is_in(folder: Path, module: ModuleType) -> bool:
    # Not the program itself, which may lie in the same folder.
    home = getattr(module, "__file__", None)
    return home is not None and Path(home).resolve().parent == folder and module.__name__ != "__main__"


def _only_pipeline(path: Path, module: ModuleType) -> Pipeline:
    found = [value for value in vars(module).values() if isinstance(value, Pipeline)]
    if not found:
        raise OttlaError(
            f"{path} has no pipeline: decorate a function with `@pipeline(to=...)` from ottla.spark.pipeline."
        )
    if len(found) > 1:
        names = ", ".join(pipeline.name for pipeline in found)
        raise OttlaError(f"{path} has several pipelines ({names}): keep each in a file of its own.")
    return found[0]


def line_of(error: BaseException, path: Path) -> str:
    if isinstance(error, SyntaxError):
        return f", line {error.lineno}" if error.lineno else ""
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if Path(frame.filename) == path.absolute()]
    return f", line {lines[-1]}" if lines else ""


def named_error(error: Exception) -> str:
    """`NameError: name 'x' is not defined`, as a traceback ends."""
    text = error.msg if isinstance(error, SyntaxError) else str(error)
    first = next(iter(text.strip().splitlines()), "").rstrip(".")
    return f"{type(error).__name__}: {first}" if first else type(error).__name__
