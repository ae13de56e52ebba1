"""A Python plugin in a process that is not Python, with an empty environment; the errors when it cannot start."""

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from arroyo_udf_plugin import PluginEnvironmentError, UserCodeError, __version__, load, version
from arroyo_udf_plugin.build import cache, inner, python

BareHost = Callable[..., list[str]]
BuildPlugin = Callable[..., Path]

PLUS = """
    from arroyo_udf_plugin import udf

    @udf(native=False)
    def plus(x: int) -> int:
        return x + {}
    """


def test_boots_and_leaves_signals_alone(build_plugin: BuildPlugin, bare_host: BareHost) -> None:
    assert bare_host(build_plugin(PLUS.format(1))) == ["plugin: 2 3 null", "SIGINT is the host's"]


def test_two_plugins_and_threads_at_once(build_plugin: BuildPlugin, bare_host: BareHost) -> None:
    one, ten = build_plugin(PLUS.format(1), name="one"), build_plugin(PLUS.format(10), name="ten")
    lines = bare_host(one, ten, threads=4)
    assert sorted(lines[:-1]) == ["one: 2 3 null"] * 4 + ["ten: 11 12 null"] * 4


def test_copies_of_one_plugin(build_plugin: BuildPlugin, bare_host: BareHost, tmp_path: Path) -> None:
    plugin = build_plugin(PLUS.format(1))
    copy = shutil.copy(plugin, tmp_path / "copy.so")
    assert bare_host(plugin, copy, threads=3)[:-1] == ["plugin: 2 3 null"] * 6


def test_nonsense_environment_does_no_harm(build_plugin: BuildPlugin, bare_host: BareHost) -> None:
    lines = bare_host(build_plugin(PLUS.format(1)), PYTHONHOME="/nonsense", PYTHONPATH="/nonsense")
    assert lines[0] == "plugin: 2 3 null"


def test_threads_take_turns_quickly(build_plugin: BuildPlugin, bare_host: BareHost) -> None:
    """The switch interval is 200 us, not Python's 5 ms, so that sync calls and a busy loop do not starve each other."""
    plugin = build_plugin(
        """
        import sys
        from arroyo_udf_plugin import udf

        @udf(native=False)
        def interval(x: int) -> int:
            return round(sys.getswitchinterval() * 1e6)
        """
    )
    assert bare_host(plugin)[0] == "plugin: 200 200 null"


def test_prints_are_flushed_at_exit(build_plugin: BuildPlugin, bare_host: BareHost) -> None:
    lines = bare_host(
        build_plugin(
            """
            from arroyo_udf_plugin import udf

            @udf(native=False)
            def plus(x: int) -> int:
                print("called", x)
                return x
            """
        )
    )
    assert {"called 1", "called 2"} <= set(lines)


@pytest.mark.parametrize("threads", [1, 4])
def test_exit_while_rows_run(build_plugin: BuildPlugin, bare_host: BareHost, threads: int) -> None:
    """R18: the process exits with status 0 while rows run."""
    plugin = build_plugin(
        """
        import asyncio
        import pyarrow.compute as pc
        import pyarrow as pa
        from arroyo_udf_plugin import udf

        @udf
        async def busy(x: int) -> int:
            while True:
                pc.sum(pa.array(range(1000)))
                await asyncio.sleep(0)
        """
    )
    lines = bare_host(plugin, threads=threads)
    assert sorted(lines[:-1]) == ["plugin: send 0 "] * threads + ["plugin: start 0 "] * threads


@pytest.mark.parametrize(
    ("python", "said"),
    [
        ("/nowhere/python", "there is no Python at /nowhere/python"),
        ("/bin/sh", "/bin/sh is not the interpreter of an environment"),
    ],
)
def test_wrong_python(build_plugin: BuildPlugin, bare_host: BareHost, python: str, said: str) -> None:
    (line, *_) = bare_host(build_plugin(PLUS.format(1)), ARROYO_UDF_PYTHON=python)
    assert line.startswith('plugin: run 18 plugin "plugin": ')
    assert said in line
    assert "ARROYO_UDF_PYTHON" in line


def test_environment_without_the_package(build_plugin: BuildPlugin, bare_host: BareHost, tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "bare"], check=True)
    python = tmp_path / "bare" / "bin" / "python"
    lines = bare_host(build_plugin(PLUS.format(1)), ARROYO_UDF_PYTHON=str(python), threads=2)
    for line in lines[:2]:  # a failed start is remembered
        assert line.startswith('plugin: run 18 plugin "plugin": cffi cannot be imported: No module named')
        assert f"prefix {tmp_path / 'bare'}" in line


def test_environment_that_moved(
    build_plugin: BuildPlugin, bare_host: BareHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = sys.executable
    monkeypatch.setattr(sys, "executable", "/moved/bin/python")
    plugin = build_plugin(PLUS.format(5), name="moved")
    (line, *_) = bare_host(plugin)
    assert "there is no Python at /moved/bin/python; set ARROYO_UDF_PYTHON to" in line
    assert bare_host(plugin, ARROYO_UDF_PYTHON=here)[0] == "moved: 6 7 null"


def test_environment_of_another_version(build_plugin: BuildPlugin, bare_host: BareHost, tmp_path: Path) -> None:
    """To this Python, a virtual environment of another version lacks only lib/python3.x."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python").symlink_to(Path(sys.executable).resolve())
    (tmp_path / "pyvenv.cfg").write_text(f"home = {Path(sys.executable).resolve().parent}\n")
    (line, *_) = bare_host(build_plugin(PLUS.format(1)), ARROYO_UDF_PYTHON=str(tmp_path / "bin" / "python"))
    assert "plugin: run 18" in line
    assert "built for Python {}.{}, and ".format(*sys.version_info) in line
    assert f"(there is no {tmp_path}/lib/python" in line


OLD = {"PY_VERSION_HEX": "0x03090000", "PY_MINOR_VERSION": "9"}


def test_another_version_of_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process has one Python: a plugin built for another version is refused."""
    source = tmp_path / "old.py"
    source.write_text("from arroyo_udf_plugin import udf\n@udf(native=False)\ndef f(x: int) -> int: return x\n")
    template = tmp_path / "plugin_inner.c"
    old = [f"#undef {name}\n#define {name} {value}\n" for name, value in OLD.items()]
    template.write_text("".join(old) + inner._TEMPLATE.read_text())
    monkeypatch.setattr(inner, "_TEMPLATE", template)
    python.compile(source, tmp_path / "old.so", cache.PluginIdentity("old", "0" * 64, "0.1.0"), cache.Resolution())
    here = "{}.{}".format(*sys.version_info)
    with pytest.raises(PluginEnvironmentError, match=f"built for Python 3.9, and this process has Python {here}:"):
        load(tmp_path / "old.so").functions["f"](pa.array([1]))


def test_another_version_of_the_toolkit(
    build_plugin: BuildPlugin, bare_host: BareHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A plugin and the installed toolkit need the same plugin format, not the same version."""
    monkeypatch.setattr(cache, "__version__", "99.1.2")
    plugin = build_plugin(PLUS.format(1), name="newer")
    assert load(plugin).toolkit_version == "99.1.2"
    assert bare_host(plugin)[0] == "newer: 2 3 null"


def test_another_plugin_format(build_plugin: BuildPlugin, bare_host: BareHost, monkeypatch: pytest.MonkeyPatch) -> None:
    """Refused with both numbers. The other plugins of the process are not affected."""
    other = version.PLUGIN_FORMAT + 1
    with monkeypatch.context() as patched:
        patched.setattr(version, "PLUGIN_FORMAT", other)
        refused = build_plugin(PLUS.format(1), name="refused")
    lines = bare_host(refused, build_plugin(PLUS.format(1)))
    reason = (
        f"built in plugin format {other}, and the installed arroyo_udf_plugin {__version__} loads format "
        f"{version.PLUGIN_FORMAT}: build the plugin again"
    )
    assert sorted(lines[:-1]) == ["plugin: 2 3 null", f'refused: run 18 plugin "refused": {reason}']


FAILS_LATER = """
    from arroyo_udf_plugin import udf

    def prepare() -> None:
        if "build" not in __name__:  # the name of the module while it is built
            raise ValueError("not here")

    prepare()

    @udf(native=False)
    def plus(x: int) -> int:
        return x
    """


def test_module_that_fails_at_import(build_plugin: BuildPlugin, bare_host: BareHost) -> None:
    text = "\n".join(bare_host(build_plugin(FAILS_LATER)))
    assert text.startswith('plugin: run 19 plugin "plugin": its module failed at import\nTraceback')
    assert "line 8, in <module>\n    prepare()" in text
    assert 'line 6, in prepare\n    raise ValueError("not here")' in text
    assert "ValueError: not here" in text
    assert "/arroyo_udf_plugin/" not in text


def test_package_that_is_missing(build_plugin: BuildPlugin, bare_host: BareHost) -> None:
    source = FAILS_LATER.replace('raise ValueError("not here")', "import no_such_package")
    text = "\n".join(bare_host(build_plugin(source)))
    assert text.startswith('plugin: run 18 plugin "plugin": its module failed at import\nTraceback')
    assert "ModuleNotFoundError: No module named 'no_such_package'" in text


@pytest.mark.parametrize("ending", ["SystemExit(3)", "KeyboardInterrupt()"])
def test_module_that_raises_to_end_the_process(build_plugin: BuildPlugin, bare_host: BareHost, ending: str) -> None:
    text = "\n".join(bare_host(build_plugin(FAILS_LATER.replace('ValueError("not here")', ending))))
    assert text.startswith('plugin: run 19 plugin "plugin": its module failed at import')


def test_module_that_fails_in_python(build_plugin: BuildPlugin) -> None:
    """The same failure as an exception, at each call."""
    plugin = load(build_plugin(FAILS_LATER))
    for _ in range(2):
        with pytest.raises(UserCodeError, match="ValueError: not here") as caught:
            plugin.functions["plus"](pa.array([1]))
        assert caught.value.status == 19
