"""The few Java classes without which Flink cannot do what we need, compiled when a job is submitted.

    new_java(env, "OneFileEach")        an object of the class in OneFileEach.java; "kafka/...": in that folder

Assumes: PyFlink, in the process that submits the job. Its JVM has Janino, because Flink's SQL needs it, too.
"""

from __future__ import annotations

import atexit
import functools
import shutil
import tempfile
import zipfile
from pathlib import Path
from typing import Any

from pyflink.datastream import StreamExecutionEnvironment
from pyflink.java_gateway import get_gateway
from pyflink.util.java_utils import load_java_class

_PACKAGE = "arroyo_udf_plugin"


def new_java(env: StreamExecutionEnvironment, name: str) -> Any:
    """The job brings the class to Flink's processes."""
    env.add_jars(_jar(name).as_uri())
    return load_java_class(f"{_PACKAGE}.{Path(name).name}").newInstance()


@functools.cache
def _jar(name: str) -> Path:
    """It is there until this process ends, which is after the job has been submitted."""
    compiler = get_gateway().jvm.org.codehaus.janino.SimpleCompiler()
    source = Path(__file__).parent / f"{name}.java"
    compiler.cook(source.read_text())
    folder = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, folder)
    jar = Path(folder) / f"{source.stem}.jar"
    with zipfile.ZipFile(jar, "w") as archive:
        content = compiler.getBytecodes().get(f"{_PACKAGE}.{source.stem}")
        archive.writestr(f"{_PACKAGE}/{source.stem}.class", bytes(content))
    return jar
