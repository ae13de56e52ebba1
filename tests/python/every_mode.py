"""The tests of functions in every isolation: `pytest --isolation=process`, or `subinterpreter`, or `thread`.

With this option the files of FILES run, and their `load` opens plugins in that isolation. Nothing else in them differs, so
what they promise holds there too. Single tests that an isolation cannot pass are in NOT_HERE, each with the reason, which
pytest prints. A plugin for pytest; tests/conftest.py names it.

Assumes: tests call `arroyo_udf_plugin.load` in the process of pytest. Programs that tests start decide for themselves.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from arroyo_udf_plugin import load

ROOT = Path(__file__).resolve().parents[2]
MODES = ("thread", "subinterpreter", "process")

# The number of workers; one where rows share what the plugin's module keeps.
FILES = {
    "tests/python/test_async.py": 1,
    "tests/python/test_asyncio.py": 1,
    "tests/python/test_arguments.py": 2,
    "tests/python/test_batches.py": 2,
    "tests/python/test_blocking.py": 1,
    "tests/python/test_call_info.py": 1,
    "tests/python/test_casting.py": 2,
    "tests/python/test_decorators.py": 2,
    "tests/python/test_ended.py": 1,
    "tests/python/test_executor.py": 1,
    "tests/python/test_interrupt.py": 1,
    "tests/python/test_large.py": 2,
    "tests/python/test_lifecycle.py": 1,
    "tests/python/test_map.py": 2,
    "tests/python/test_misbehaving.py": 1,
    "tests/python/test_policy.py": 2,
    "tests/python/test_retry.py": 1,
    "tests/python/test_send_context.py": 2,
    "tests/python/test_statistics.py": 1,
    "tests/python/test_sync.py": 2,
    "tests/python/test_types.py": 2,
    "tests/python/test_vectorized.py": 2,
    "tests/abi/test_c_async.py": 1,
    "tests/abi/test_c_functions.py": 2,
    "tests/abi/test_row_texts.py": 2,
    "tests/native/test_rust_functions.py": 2,
    "tests/operator/test_constants.py": 2,
    "tests/operator/test_model.py": 1,
    "tests/operator/test_operator.py": 1,
}

NOT_HERE: dict[str, dict[str, str]] = {"thread": {}, "subinterpreter": {}, "process": {}}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--isolation", choices=MODES, help="run the tests of functions with plugins in this isolation")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    if config.getoption("isolation") is None or collection_path.is_dir():
        return None
    return True if collection_path.relative_to(ROOT).as_posix() not in FILES else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    mode = config.getoption("isolation")
    if mode is None:
        return
    reasons = NOT_HERE[mode]
    names = {item.nodeid.partition("[")[0] for item in items}
    files = {name.partition("::")[0] for name in names}
    if gone := {name for name in reasons if name.partition("::")[0] in files} - names:
        raise pytest.UsageError(f"every_mode.py names tests that are not there: {', '.join(sorted(gone))}")
    for item in items:
        if reason := reasons.get(item.nodeid.partition("[")[0]):
            item.add_marker(pytest.mark.skip(reason=f"{mode}: {reason}"))


@pytest.fixture(scope="module", autouse=True)
def _isolation(request: pytest.FixtureRequest) -> Iterator[None]:
    """Gives `load` other defaults, which holds for every module that has imported it."""
    mode = request.config.getoption("isolation")
    if mode is None:
        yield
        return
    defaults = load.__kwdefaults__
    assert defaults is not None
    before = dict(defaults)
    workers = FILES[request.node.nodeid] if mode != "thread" else 1
    defaults.update(isolation=mode, workers=workers)
    yield
    defaults.update(before)
