"""The simulation finds what it is there for: defects that are put in on purpose."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from scenarios import of_kind

from arroyo_udf_plugin.connectors import table
from arroyo_udf_plugin.connectors.disk import Disk
from arroyo_udf_plugin.connectors.folder import LocalFolder
from arroyo_udf_plugin.connectors.interface import Json
from arroyo_udf_plugin.engine import store
from arroyo_udf_plugin.operator.operator import Operator
from arroyo_udf_plugin.testing import Broken, Simulation

pytestmark = pytest.mark.once


def simulated(kind: str, folder: Path) -> Simulation:
    return Simulation(of_kind(kind, folder), most=1)


def test_a_part_without_a_fsync(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """Its name survives, and its bytes do not."""

    def keep(self: LocalFolder, name: str) -> None:
        self.disk.sync(self._folder)

    monkeypatch.setattr(LocalFolder, "keep", keep)
    with pytest.raises(Broken, match="missing: "):
        simulated("parts of csv", folder).stop_everywhere(["power"])


def test_an_epoch_without_a_fsync_of_its_folder(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """The epoch has happened, its rows are shown, and then nobody knows of it."""

    def create(self: store.LocalStore, name: str, data: bytes) -> None:
        path = self._folder / name
        with self._file(path.parent, data) as written:
            try:
                self._disk.link(written, path)
            except FileExistsError:
                raise store.AlreadyThere(name) from None

    monkeypatch.setattr(store.LocalStore, "create", create)
    with pytest.raises(Broken):
        simulated("sqlite", folder).stop_everywhere(["power"])


def test_rows_that_are_inserted_before_their_epoch_is_committed(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """The commit before the manifest: a crash between them, and the rows come again."""
    seal = table.TableSink.seal

    def sealed(self: table.TableSink, epoch: int) -> Any:
        found = seal(self, epoch)

        class Early:
            def store(self_) -> Json:
                assert found is not None
                stored = found.store()
                self._target.database.run(lambda each: self._apply(each, self._stage, epoch, stored), 0)  # type: ignore[arg-type]
                return stored

        return Early() if found is not None else None

    monkeypatch.setattr(table.TableSink, "seal", sealed)
    with pytest.raises(Broken):
        simulated("sqlite", folder).stop_everywhere(["kill"])


def test_rows_in_flight_that_are_forgotten(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """Their files have been read, and nobody calls them."""
    monkeypatch.setattr(Operator, "restore", lambda *args, **named: None)
    with pytest.raises(Broken, match="missing"):
        simulated("calls", folder).stop_everywhere(["kill"])


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
