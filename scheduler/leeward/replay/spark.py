"""A quiet, small, local Spark whose Java process ends with the `with` block.

Quiet: the JVM's output goes to a log in the scratch folder and is shown only when the start fails. Local:
bound to 127.0.0.1, no user interface, scratch under the output folder. Small: a bounded heap, few partitions.
"""

from __future__ import annotations

import logging
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from leeward.replay.errors import SparkStartError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

JAVA_VERSIONS = range(17, 23)  # versions that Spark 4 runs on; 24 and later lack a class that Hadoop's login needs
SCRATCH = ".spark"
_LOG = "spark.log"
#: besides the heap: code cache, metaspace, direct buffers; with a 640 MB heap the process stays below 1.2 GB
_JVM_OPTIONS = (
    "-XX:+UseSerialGC -XX:MaxMetaspaceSize=256m -XX:ReservedCodeCacheSize=96m -XX:MaxDirectMemorySize=96m "
    "-Djava.net.preferIPv4Stack=true"
)


@contextmanager
def spark_session(
    folder: Path, *, memory_mb: int = 640, cores: int = 2, partitions: int = 4, brief: bool = True
) -> Iterator[SparkSession]:
    """A session with its scratch under `folder`/.spark; the JVM is gone afterwards, also after an error.

    `memory_mb`: heap of the one JVM; `partitions`: of shuffles; `brief`: little work, so only the fast compiler,
    which halves the time to the first result. Raises SparkStartError.
    """
    from pyspark import SparkConf, SparkContext
    from pyspark.java_gateway import launch_gateway
    from pyspark.sql import SparkSession

    # it warns of pandas 3 whenever it is started; nothing here uses pandas
    warnings.filterwarnings("ignore", message="PySpark does not yet fully support pandas")
    logging.getLogger().addFilter(_not_about_interrupts)
    scratch = _own_scratch(folder / SCRATCH)
    os.environ.update(
        JAVA_HOME=str(java_home()),
        SPARK_LOCAL_IP="127.0.0.1",
        SPARK_LOCAL_DIRS=str(scratch),
        PYSPARK_PYTHON=sys.executable,
        PYSPARK_DRIVER_PYTHON=sys.executable,
    )
    conf = SparkConf().setAll(_settings(scratch, memory_mb, cores, partitions, brief))
    gateway = context = None
    try:
        with (scratch / _LOG).open("wb") as log:
            try:
                with _signals_later():
                    gateway = launch_gateway(conf=conf, popen_kwargs={"stdout": log, "stderr": log})
                context = SparkContext(gateway=gateway, conf=conf)
            except Exception as error:
                raise _not_started(scratch / _LOG, error) from error
        yield SparkSession(context)
    finally:
        if context is not None:
            with suppress(Exception):  # nothing to cancel if the JVM is gone
                context.cancelAllJobs()  # else an interrupted job would run to its end first
            context.stop()
        if gateway is not None:
            _end_jvm(gateway)
        shutil.rmtree(scratch, ignore_errors=True)
        with suppress(OSError):  # another run may have its scratch there
            scratch.parent.rmdir()


@contextmanager
def _signals_later() -> Iterator[None]:
    """Puts off Ctrl-C and SIGTERM, once: a launch cut short would leave a JVM that nobody knows of."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []

    def note(signum: int, frame: object) -> None:
        if came:  # the second time is meant
            signal.signal(signum, before[signum])
            signal.raise_signal(signum)
        came.append(signum)

    before: dict[int, Any] = {int(s): signal.signal(s, note) for s in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for signum, handler in before.items():
            signal.signal(signum, handler)
    for first in came[:1]:
        signal.raise_signal(first)


def _settings(scratch: Path, memory_mb: int, cores: int, partitions: int, brief: bool) -> list[tuple[str, str]]:
    options = f'{_JVM_OPTIONS} -Djava.io.tmpdir="{scratch}"'
    if brief:
        options += " -XX:TieredStopAtLevel=1"
    return [
        ("spark.master", f"local[{cores}]"),
        ("spark.app.name", "leeward replay"),
        ("spark.driver.memory", f"{memory_mb}m"),
        ("spark.driver.extraJavaOptions", options),
        ("spark.driver.host", "127.0.0.1"),
        ("spark.driver.bindAddress", "127.0.0.1"),
        ("spark.ui.enabled", "false"),
        ("spark.ui.showConsoleProgress", "false"),
        ("spark.log.level", "ERROR"),
        ("spark.local.dir", str(scratch)),
        ("spark.sql.warehouse.dir", str(scratch / "warehouse")),
        ("spark.sql.shuffle.partitions", str(partitions)),
        # a shuffle partition is a range of slices: joined ones would only make the sorts larger
        ("spark.sql.adaptive.enabled", "false"),
        ("spark.sql.session.timeZone", "UTC"),
        ("spark.python.worker.reuse", "true"),
        ("spark.sql.parquet.columnarReaderBatchSize", "1024"),
    ]


def java_home() -> Path:
    """A JDK that Spark runs on: JAVA_HOME, the path's `java`, the usual folder. Raises SparkStartError."""
    named = os.environ.get("JAVA_HOME")
    java = shutil.which("java")
    candidates = [Path(named)] if named else []
    candidates += [Path(java).resolve().parent.parent] if java else []
    candidates += sorted(Path("/usr/lib/jvm").glob("*")) if Path("/usr/lib/jvm").is_dir() else []
    seen = []
    for home in candidates:
        version = _java_version(home)
        if version in JAVA_VERSIONS:
            return home
        if version is not None:
            seen.append(f"{home} (Java {version})")
    raise SparkStartError(
        f"no JDK {JAVA_VERSIONS[0]} to {JAVA_VERSIONS[-1]}{'; only ' + ', '.join(seen) if seen else ''}.",
        remedy="Install one (Debian: apt-get install openjdk-17-jdk-headless) or point JAVA_HOME at it.",
    )


def _java_version(home: Path) -> int | None:
    with suppress(OSError):
        if (home / "bin" / "java").is_file():
            match = re.search(r'^JAVA_VERSION="(?:1\.)?(\d+)', (home / "release").read_text(), re.MULTILINE)
            return int(match.group(1)) if match else None
    return None


def _not_about_interrupts(record: logging.LogRecord) -> bool:
    """Py4J logs a whole trace for an interrupted call, which the caller gets as an exception anyway."""
    return "while sending command" not in str(record.msg)


def _own_scratch(parent: Path) -> Path:
    """A scratch folder of this process; those of dead processes (killed runs) go away."""
    parent.mkdir(parents=True, exist_ok=True)
    for other in parent.iterdir():
        if other.name.isdigit() and not Path("/proc", other.name).exists():
            shutil.rmtree(other, ignore_errors=True)
    scratch = (parent / str(os.getpid())).resolve()
    scratch.mkdir(exist_ok=True)
    return scratch


def _not_started(log: Path, error: Exception) -> SparkStartError:
    lines = [line for line in log.read_text(errors="replace").splitlines() if line.strip()]
    story = "\n  ".join(lines[-8:])
    return SparkStartError(
        f"Spark did not start: {java_cause(error)}\n  {story}\n",
        remedy="Check the JDK (17 to 22) and that about 1.2 GB of memory are free.",
    )


def _end_jvm(gateway: Any) -> None:
    """Close the gateway and wait for its process; PySpark alone would keep it until this program ends."""
    from pyspark import SparkContext

    process = gateway.proc
    with suppress(Exception):  # the JVM may be gone already, and then there is nothing to close
        gateway.shutdown()
    with suppress(OSError):
        process.stdin.close()  # the JVM ends at the end of its input
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    SparkContext._gateway = SparkContext._jvm = None


def spark_path(path: Path) -> str:
    """A path to read, absolute: Hadoop takes it unencoded, but sees patterns in brackets and stars."""
    return "file://" + re.sub(r"([\\*?\[\]{}])", r"\\\1", str(path.absolute()))


def java_cause(error: BaseException) -> str:
    """The innermost message of an error that came through Spark, one line."""
    causes = re.findall(r"^(?:Caused by: )?(?:[\w$]+\.)+\w*(?:Exception|Error): (.+)$", str(error), re.MULTILINE)
    text = causes[-1] if causes else (str(error).splitlines() or [type(error).__name__])[0]
    return text.strip()
