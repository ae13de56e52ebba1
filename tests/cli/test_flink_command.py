"""`arroyo-udf flink` where nothing is started: what is refused, and the configuration that Flink would get."""

from __future__ import annotations

import socket
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from arroyo_udf_plugin import InvalidArgument
from arroyo_udf_plugin.cli import main
from arroyo_udf_plugin.cluster.local_flink.python_jar import loopback_jar, with_address
from arroyo_udf_plugin.cluster.local_flink.session_conf import Ports, SessionOptions, as_yaml, configuration

SHIPPED = "env:\n  java:\n    opts:\n      all: --add-exports=java.rmi/sun.rmi.registry=ALL-UNNAMED --add-opens=x\n"

BEAM_CLASS = "org/apache/beam/sdk/fn/server/ServerFactory$InetSocketAddressServerFactory.class"
CONSTANTS = (
    b"\x01\x00\x07forPort",  # 1
    b"\x01\x00\x04(I)B",
    b"\x0c\x00\x01\x00\x02",  # 3: the name and type of forPort
    b"\x0a\x00\x09\x00\x03",  # 4: the method
    b"\x05" + bytes(8),  # 5 and 6: a long
    b"\x01\x00\x07getPort",  # 7
    b"\x0c\x00\x07\x00\x02",  # 8
    b"\x07\x00\x02",  # 9: a class
    b"\x0a\x00\x09\x00\x08",  # 10: the method getPort
)
CALLS = b"\x2b\xb6\x00\x0a\xb8\x00\x04\xb0"


def class_file(code: bytes, constants: tuple[bytes, ...] = CONSTANTS) -> bytes:
    """What is needed of one: constants, and instructions behind them."""
    number = len(constants) + 2  # one more than there are, and a long counts as two
    return b"\xca\xfe\xba\xbe\x00\x00\x00\x37" + number.to_bytes(2) + b"".join(constants) + code


@pytest.fixture
def python_with_flink(tmp_path: Path) -> Path:
    """Knows where a pyflink is that has what the command looks for."""
    home = tmp_path / "pyflink"
    for file, text in (
        ("bin/jobmanager.sh", "exit 3"),
        ("conf/config.yaml", SHIPPED),
        ("plugins/README.txt", ""),
    ):
        (home / file).parent.mkdir(parents=True, exist_ok=True)
        (home / file).write_text(text)
    (home / "opt").mkdir()
    with zipfile.ZipFile(home / "opt" / "flink-python-2.3.0.jar", "w") as jar:
        jar.writestr(BEAM_CLASS, class_file(CALLS))
        jar.writestr("another.class", b"stays")
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\necho \'["{home}", "{tmp_path}/package"]\'\n')
    python.chmod(0o755)
    return python


def flink(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["flink", *map(str, arguments)])


def refused(*arguments: object) -> str:
    result = flink(*arguments)
    assert result.exit_code in (1, 2), result.output
    return result.output


def test_a_python_without_flink_is_told_what_to_install(tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\necho '[null, \"/package\"]'\n")
    python.chmod(0o755)
    text = refused("up", "--folder", tmp_path / "c", "--python", python)
    assert (
        f"{python} has no pyflink: pip install apache-flink==2.3.0, then pip install 'arroyo_udf_plugin[engine]'"
        in text
    )


def test_a_machine_without_java_is_told_what_to_install(
    python_with_flink: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    text = refused("up", "--folder", tmp_path / "c", "--python", python_with_flink)
    assert "java is missing: install openjdk-17-jre-headless" in text


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--config", "parallelism.default"], "'parallelism.default' is not KEY=VALUE"),
        (["--config", "rest.bind-address=0.0.0.0"], "--config rest.bind-address: a session cluster sets this itself"),
        (["--slots", "0"], "0 is not in the range x>=1"),
        (["--jar", "/nowhere.jar"], "'/nowhere.jar' does not exist"),
    ],
)
def test_wrong_options_are_refused(
    python_with_flink: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], text: str
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(_java(tmp_path)))
    folder = tmp_path / "c"
    assert text in refused("up", "--folder", folder, "--python", python_with_flink, "--port", 0, *arguments)
    assert not (folder / "conf").exists()


def test_a_port_in_use_is_refused(python_with_flink: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(_java(tmp_path)))
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        text = refused("up", "--folder", tmp_path / "c", "--python", python_with_flink, "--port", port)
    assert f"port {port} is in use: --port 0 takes a free one" in text


def test_a_program_that_ends_as_it_starts_is_told_with_its_log(
    python_with_flink: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(_java(tmp_path)))
    for script in ("jobmanager.sh", "taskmanager.sh"):
        file = tmp_path / "pyflink" / "bin" / script
        file.write_text("#!/bin/sh\necho no room for Java\nexit 3\n")
        file.chmod(0o755)
    text = refused("up", "--folder", tmp_path / "c", "--python", python_with_flink, "--port", 0)
    assert "the cluster does not start" in text
    assert "no room for Java" in text


def test_down_where_nothing_runs(tmp_path: Path) -> None:
    result = flink("down", "--folder", tmp_path / "nothing")
    assert result.exit_code == 0
    assert result.output == f"arroyo-udf flink: nothing runs in {tmp_path / 'nothing'}\n"
    assert not (tmp_path / "nothing").exists()


def test_the_configuration_binds_to_loopback_and_takes_what_the_user_says() -> None:
    options = SessionOptions(slots=3, config={"heartbeat.interval": "5 s", "s3.endpoint": 'http://"a"'})
    found = configuration(SHIPPED, Path("/python"), Path("/c"), Ports(8081, 6123, 2181), options)
    binding = {key: value for key, value in found.items() if key.endswith(("bind-host", "bind-address"))}
    assert binding == dict.fromkeys(("jobmanager.bind-host", "taskmanager.bind-host", "rest.bind-address"), "127.0.0.1")
    assert found["env.java.opts.all"] == "--add-exports=java.rmi/sun.rmi.registry=ALL-UNNAMED --add-opens=x"
    assert found["heartbeat.interval"] == "5 s"
    assert 's3.endpoint: "http://\\"a\\""\n' in as_yaml(found)
    assert "high-availability.type" not in found
    with pytest.raises(InvalidArgument, match=r"no env\.java\.opts\.all"):
        configuration("a: b\n", Path("/python"), Path("/c"), Ports(1, 2, 3), SessionOptions())


def test_jobs_bring_a_class_that_listens_at_the_address_itself(python_with_flink: Path, tmp_path: Path) -> None:
    added = (
        b"\x01\x00\x0aforAddress",  # 11
        b"\x01\x00\x1b(Ljava/net/SocketAddress;)B",
        b"\x0c\x00\x0b\x00\x0c",
        b"\x0a\x00\x09\x00\x0d",  # 14
    )
    changed = class_file(b"\x2b\x00\x00\x00\xb8\x00\x0e\xb0", CONSTANTS + added)
    jar = loopback_jar(tmp_path / "pyflink" / "opt" / "flink-python-2.3.0.jar", tmp_path)
    with zipfile.ZipFile(jar) as archive:
        assert sorted(archive.namelist()) == ["another.class", BEAM_CLASS]
        assert archive.read(BEAM_CLASS) == changed
        assert archive.read("another.class") == b"stays"
    with pytest.raises(ValueError, match="unpack"):
        with_address(changed)


def test_the_command_needs_nothing_that_the_python_of_flink_lacks() -> None:
    """The extra `flink` brings no httpx and no database."""
    program = (
        "import sys; sys.modules |= dict.fromkeys(('httpx', 'sqlalchemy', 'fastapi', 'pydantic_settings')); "
        "from arroyo_udf_plugin.cli import main; main(['flink', 'up', '--help'])"
    )
    subprocess.run([sys.executable, "-c", program], check=True, stdout=subprocess.DEVNULL)


def _java(folder: Path) -> Path:
    """A JAVA_HOME that has a program `java`."""
    java = folder / "java" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text("#!/bin/sh\n")
    java.chmod(0o755)
    return java.parents[1]
