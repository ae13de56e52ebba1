"""The simulation finds what it is there for: defects that are put in on purpose."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from scenarios import of_kind

from arroyo_udf_plugin.engine.connectors import table
from arroyo_udf_plugin.engine.connectors.disk import Disk
from arroyo_udf_plugin.engine.connectors.folder import LocalFolder
from arroyo_udf_plugin.engine.connectors.interface import Json
from arroyo_udf_plugin.engine.connectors.parts_sink import PartsSink
from arroyo_udf_plugin.engine.execution import store
from arroyo_udf_plugin.engine.execution.epoch_files import RetainedEpoch
from arroyo_udf_plugin.engine.execution.manifest import Manifest
from arroyo_udf_plugin.engine.execution.restoring import Restoring
from arroyo_udf_plugin.engine.execution.staged_state import StagedState
from arroyo_udf_plugin.engine.operators.blocks import Block
from arroyo_udf_plugin.engine.operators.operator import Operator
from arroyo_udf_plugin.engine.pipeline.replayed import LetterSource
from arroyo_udf_plugin.testing import Broken, Simulation

pytestmark = pytest.mark.once


@contextlib.contextmanager
def found(request: pytest.FixtureRequest, text: str | None = None) -> Iterator[None]:
    """text: of the fault; it is printed, beside the report of `make simulate`."""
    with pytest.raises(Broken, match=text) as raised:
        yield
    defect = request.node.name.removeprefix("test_").replace("_", " ")
    print(f"\nfound: {defect}: {str(raised.value).partition(chr(10))[0]}")


def simulated(kind: str, folder: Path) -> Simulation:
    return Simulation(of_kind(kind, folder), most=1)


def test_a_part_without_a_fsync(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """Its name survives, and its bytes do not."""

    def keep(self: LocalFolder, name: str) -> None:
        self.disk.sync(self._folder)

    monkeypatch.setattr(LocalFolder, "keep", keep)
    with found(request, "missing: "):
        simulated("parts of csv", folder).stop_everywhere(["power"])


def test_an_epoch_without_a_fsync_of_its_folder(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, folder: Path
) -> None:
    """The epoch has happened, its rows are shown, and then nobody knows of it."""

    def create(self: store.LocalStore, name: str, data: bytes) -> None:
        path = self._folder / name
        with self._file(path.parent, lambda file: file.write(data)) as written:  # type: ignore[arg-type, return-value]
            try:
                self._disk.link(written, path)
            except FileExistsError:
                raise store.AlreadyThere(name) from None

    monkeypatch.setattr(store.LocalStore, "create", create)
    with found(request):
        simulated("sqlite", folder).stop_everywhere(["power"])


def test_rows_that_are_inserted_before_their_epoch_is_committed(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, folder: Path
) -> None:
    """The commit before the manifest: a crash between them, and the rows come again."""
    seal = table.TableSink.seal

    def sealed(self: table.TableSink, epoch: int) -> Any:
        found = seal(self, epoch)

        class Early:
            def store(self_) -> Json:
                assert found is not None
                stored = found.store()
                self._target.database.run(lambda each: self._apply(each, epoch, stored), 0)
                return stored

        return Early() if found is not None else None

    monkeypatch.setattr(table.TableSink, "seal", sealed)
    with found(request):
        simulated("sqlite", folder).stop_everywhere(["kill"])


def test_rows_in_flight_that_are_forgotten(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, folder: Path
) -> None:
    """Their files have been read, and nobody calls them."""
    monkeypatch.setattr(Operator, "restore", lambda *args, **named: None)
    with found(request, "missing"):
        simulated("calls", folder).stop_everywhere(["kill"])


def test_idempotency_keys_of_each_engine_its_own(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, folder: Path
) -> None:
    monkeypatch.setattr(Block, "keys", lambda self, mask=b"": memoryview(os.urandom(24 * len(self))))
    with found(request, "rows were called with several keys"):
        simulated("calls", folder).stop_everywhere(["kill"])


def test_a_replay_that_forgets_what_was_replayed(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, folder: Path
) -> None:
    open_ = LetterSource.open
    monkeypatch.setattr(LetterSource, "open", lambda self, partition, position: open_(self, partition, None))
    simulation = simulated("replayed", folder)
    with found(request, "too many"):
        simulation.lose_at_end(1, "kill")


def test_parts_of_windows_that_only_their_own_epoch_protects(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, folder: Path
) -> None:
    """Later epochs share them, and lose them when it is retained no longer."""

    def of(manifest: Manifest) -> RetainedEpoch:
        own = f"{manifest.epoch:010}"
        return RetainedEpoch({name for name in manifest.state_names if own in name}, manifest.time)

    monkeypatch.setattr(RetainedEpoch, "of", of)
    with found(request, "is missing"):
        simulated("kept windows", folder).stop_everywhere(["kill"])


def test_a_start_that_cleans_what_older_epochs_share(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, folder: Path
) -> None:
    """It looks at heads, and takes all other files of states for left over."""
    monkeypatch.setattr(Manifest, "state_names", property(lambda self: {state.name for state in self.state_files}))
    with found(request, "is missing"):
        simulated("kept windows", folder).stop_everywhere(["kill"])


def test_an_engine_that_was_overtaken_and_takes_shared_files_with_it(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, folder: Path
) -> None:
    """It removes all that its epoch would have needed, and not only what it has written."""
    monkeypatch.setattr(StagedState, "own_names", property(lambda self: [file.name for file in self.file.files]))
    with found(request, "is missing"):
        simulated("kept windows", folder).two_engines()


def test_parts_without_a_fsync(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """The head and the manifest survive, and name a file without its bytes."""

    def write(self: store.LocalStore, name: str, write: Any) -> None:
        path = self._folder / name
        self._disk.make(path.parent)
        with self._disk.file(self._disk.create(path)) as file:
            write(file)
        self._disk.sync(path.parent)

    monkeypatch.setattr(store.LocalStore, "write", write)
    with found(request, "is damaged"):
        simulated("kept windows", folder).stop_everywhere(["power"])


def test_a_disk_that_is_not_simulated_has_all_operations() -> None:
    """What the real disk does, a simulated one counts."""
    from arroyo_udf_plugin.testing.disk import ProcessDisk

    assert set(vars(Disk)) - set(vars(ProcessDisk)) <= {
        "__doc__",
        "__dict__",
        "__weakref__",
        "__module__",
        "make",
        "__static_attributes__",
        "__firstlineno__",
    }


def test_parts_that_stay_when_their_epochs_are_given_up(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, folder: Path
) -> None:
    monkeypatch.setattr(PartsSink, "withdraw", lambda self, epochs: None)
    with found(request, "too many: "):
        simulated("parts of csv", folder).restore(["kill"])


def test_parts_that_are_removed_before_their_epochs_are_given_up(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, folder: Path
) -> None:
    """A crash between: the newest checkpoint is still the truth, and nobody reads these rows again."""
    later_rows = PartsSink.later_rows

    def early(self: PartsSink, epoch: int, later: Any) -> Any:
        found = later_rows(self, epoch, later)
        self.withdraw([(epoch + 1, 1 << 30)])
        return found

    monkeypatch.setattr(PartsSink, "later_rows", early)
    monkeypatch.setattr("arroyo_udf_plugin.testing.world.planned_restore", lambda *_: Restoring(0, ()))
    with found(request, "missing: "):
        simulated("parts of csv", folder).restore(["kill"])
