"""Libraries of functions: stored at a folder or in an object store, copied to where they are loaded, checked."""

from __future__ import annotations

import hashlib
import json
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import object_store_server
from arroyo_udf_plugin.cluster.functions.artifacts import copied, fetched, new_place, store
from arroyo_udf_plugin.cluster.job_program import JobProgram, libraries_in
from arroyo_udf_plugin.engine.execution.store import open_store
from arroyo_udf_plugin.errors import InvalidArgument, InvalidState, LoadError

BYTES = b"\x7fELF" + os.urandom(1 << 20)
HASH = hashlib.sha256(BYTES).hexdigest()


@pytest.fixture
def library(tmp_path: Path) -> Path:
    path = tmp_path / "built" / "libplane.so"
    path.parent.mkdir()
    path.write_bytes(BYTES)
    return path


@pytest.fixture(params=["folder", "memory", pytest.param("s3", marks=pytest.mark.cluster)])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where a library can be stored."""
    if request.param == "s3":
        return new_place(request.getfixturevalue("bucket"), HASH)
    return new_place(f"{'memory://' if request.param == 'memory' else ''}{tmp_path / 'artifacts'}", HASH)


@pytest.fixture(scope="module")
def bucket(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with (
        object_store_server.server(tmp_path_factory.mktemp("s3")) as server,
        pytest.MonkeyPatch.context() as patch,
    ):
        for name, value in server.environment.items():
            patch.setenv(name, value)
        yield server.bucket("artifacts")


def test_a_library_that_was_stored_is_fetched_whole(place: str, library: Path, tmp_path: Path) -> None:
    name = store(library, place, 10.0)
    assert store(library, place, 10.0) == name == f"{place}/libplane.so"
    library.unlink()
    for _ in range(2):
        assert fetched(name, HASH, tmp_path / "libraries").read_bytes() == BYTES


def test_a_damaged_library_is_neither_loaded_nor_copied_until_it_is_stored_again(
    place: str, library: Path, tmp_path: Path
) -> None:
    name, copies = store(library, place, 10.0), tmp_path / "libraries"
    open_store(place).put("libplane.so", BYTES[:-1])
    with pytest.raises(LoadError, match=r"libplane\.so is not the library that was built: create the"):
        fetched(name, HASH, copies)
    assert not copies.exists()
    store(library, place, 10.0)
    assert fetched(name, HASH, copies).read_bytes() == BYTES


def test_a_library_that_is_gone_says_what_to_do(place: str, library: Path, tmp_path: Path) -> None:
    name = store(library, place, 10.0)
    open_store(place).clear()
    with pytest.raises(LoadError, match=r"libplane\.so .*: create the"):
        fetched(name, HASH, tmp_path / "libraries")


def test_a_damaged_copy_is_fetched_again(library: Path, tmp_path: Path) -> None:
    name = store(library, new_place(f"memory://{tmp_path}", HASH), 10.0)
    copy = fetched(name, HASH, tmp_path / "libraries")
    copy.write_bytes(BYTES[:-1])
    assert fetched(name, HASH, tmp_path / "libraries") == copy
    assert copy.read_bytes() == BYTES


def test_a_store_that_does_not_answer_is_no_error_of_the_user(
    library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A job is tried again then."""
    nobody = dict.fromkeys(("AWS_ENDPOINT", "AWS_ENDPOINT_URL"), "http://127.0.0.1:9")
    secrets = {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "a secret of the store"}
    others = {"AWS_ALLOW_HTTP": "true", "AWS_REGION": "r", "NO_PROXY": "127.0.0.1"}
    for name, value in (nobody | secrets | others).items():
        monkeypatch.setenv(name, value)
    with pytest.raises(InvalidArgument, match=r"libplane\.so: the store cannot be asked") as caught:
        store(library, "s3://bucket/x", 0.0)
    assert "a secret of the store" not in str(caught.value)


def test_a_url_with_a_password_is_refused_and_not_repeated() -> None:
    with pytest.raises(InvalidArgument, match="leave out the password") as caught:
        open_store("s3://key:hidden@bucket/state")
    assert "hidden" not in str(caught.value)


def test_threads_that_store_the_same_library_at_once_all_succeed(place: str, library: Path, tmp_path: Path) -> None:
    names: list[str] = []
    threads = [threading.Thread(target=lambda: names.append(store(library, place, 10.0))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(names) == 4
    assert fetched(names[0], HASH, tmp_path / "libraries").read_bytes() == BYTES


def test_a_copy_that_is_made_again_leaves_the_one_that_is_loaded_as_it_is(library: Path, tmp_path: Path) -> None:
    """Two programs build the same function at once: neither removes or overwrites what the other one has answered."""
    path, sha256 = copied(library, tmp_path / "libraries")
    assert (path, sha256) == (tmp_path / "libraries" / HASH / "libplane.so", HASH)
    with path.open("rb") as loaded:
        assert copied(library, tmp_path / "libraries") == (path, HASH)
        assert not os.path.samestat(os.fstat(loaded.fileno()), path.stat())
        assert loaded.read() == path.read_bytes() == BYTES
    assert list(path.parent.iterdir()) == [path]


def test_a_program_moves_with_its_libraries() -> None:
    operators: list[dict[str, Any]] = [{"type": "functions", "plugin": "/a.so"}, {"type": "sql"}]
    program = JobProgram({"name": "p", "operators": operators}, {"/a.so": "ab"}, {"TOKEN": "secret"})
    there = program.moved({"/a.so": "s3://b/a.so"})
    assert there == JobProgram(
        {"name": "p", "operators": [{"type": "functions", "plugin": "s3://b/a.so"}, {"type": "sql"}]},
        {"s3://b/a.so": "ab"},
        {"TOKEN": "secret"},
    )
    over_all = JobProgram(
        {"operators": [{"type": "query", "functions": {"f": "/a.so", "g": "/b.so"}}]}, {"/a.so": "ab"}
    )
    assert libraries_in(over_all.pipeline) == {"/a.so", "/b.so"}
    assert libraries_in(over_all.moved({"/a.so": "s3://b/a.so"}).pipeline) == {"s3://b/a.so", "/b.so"}
    assert over_all.moved({"/a.so": "/c.so"}).means_the_same(over_all)
    assert program.moved({}) == program
    assert there.means_the_same(program)


def test_a_program_is_read_as_it_was_stored_and_one_of_a_newer_toolkit_refused() -> None:
    program = JobProgram({"name": "p", "parallelism": 3}, {"/a.so": "ab"}, {"TOKEN": "secret"})
    stored = json.loads(json.dumps(program.as_json()))
    assert stored["version"] == 1
    assert JobProgram.of_json(stored) == program
    assert program.parallelism == 3
    assert "variables" not in JobProgram({}, {}).as_json()
    with pytest.raises(InvalidState, match="version 2: upgrade"):
        JobProgram.of_json(stored | {"version": 2})
