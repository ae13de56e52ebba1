"""Secrets in the database: never as they are, opened by the key file only."""

import contextlib
import json
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy
from cryptography.fernet import Fernet

from arroyo_udf_plugin.cluster.database import connections, jobs, pipelines
from arroyo_udf_plugin.cluster.database.database import Database
from arroyo_udf_plugin.cluster.database.models import Base
from arroyo_udf_plugin.cluster.database.sealing import Keys, opened
from arroyo_udf_plugin.cluster.job_program import JobProgram
from arroyo_udf_plugin.cluster.wishes import settings
from arroyo_udf_plugin.errors import InvalidArgument, InvalidState

SECRETS = ("secret of a profile", "secret of the environment", "secret of a program", "secret of a change")

Open = Callable[[], Database]


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.server)])
def reopen(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Open]:
    """Opens the same database again, as a program does that starts; its key file is tmp_path/keys/secrets.key."""
    url = f"sqlite:///{tmp_path / 'cluster.sqlite'}"
    if request.param == "postgresql":
        url = request.getfixturevalue("postgresql")
        with contextlib.closing(Database.open(url, tmp_path)) as database, database.engine.begin() as connection:
            connection.exec_driver_sql("DROP SCHEMA public CASCADE")
            connection.exec_driver_sql("CREATE SCHEMA public")
    opened: list[Database] = []

    def start() -> Database:
        opened.append(Database.open(url, tmp_path / "keys" / "secrets.key"))
        opened[-1].migrate()
        return opened[-1]

    yield start
    for database in opened:
        database.close()


@pytest.fixture
def key_file(tmp_path: Path) -> Path:
    return tmp_path / "keys" / "secrets.key"


def write_secrets(database: Database) -> None:
    profile, environment, program, change = SECRETS
    with database.begin() as session:
        connections.create_profile(session, name="p", connector="sqlite", config={"uri": profile})
        variables = {"CP_1_URI": program}
        whole = pipelines.create(
            session,
            name="p",
            query="",
            graph={},
            program=JobProgram({}, {}, variables),
            env_vars={"TOKEN": environment, "EMPTY": ""},
            checkpoint_interval_micros=1,
        )
        pipelines.change(session, whole.pipeline.id, {"env_vars": {"TOKEN": environment, "MORE": change}})
        facts = {"settings": settings(whole.job)}
        assert jobs.write(session, whole.job.id, state="Created", generation=0, facts=facts)


def read_secrets(database: Database) -> None:
    """Fails unless they are there."""
    profile, environment, program, change = SECRETS
    with database.read() as session:
        (found,) = connections.profiles(session)
        (whole,) = pipelines.all_listed(session)
        whole = pipelines.get(session, whole.pipeline.id)
        assert found.config == {"uri": profile}
        assert whole.job.env_vars == {"TOKEN": environment, "MORE": change}
        assert whole.opened_program.variables == {"CP_1_URI": program}
        assert whole.status.settings == settings(whole.job)


def dump(database: Database) -> str:
    """All that is in the tables, as the server has it; and SQLite's files."""
    found = []
    with database.engine.connect() as connection:
        for table in Base.metadata.sorted_tables:
            found += [str(tuple(row)) for row in connection.exec_driver_sql(f"SELECT * FROM {table.name}")]
    if database.is_sqlite:
        file = Path(database.engine.url.database or "")
        found += [path.read_bytes().decode("latin-1") for path in file.parent.glob("cluster.sqlite*")]
    return "\n".join(found)


def test_the_database_never_has_a_plain_secret(reopen: Open) -> None:
    database = reopen()
    write_secrets(database)
    text = dump(database)
    assert "TOKEN" in text  # names are no secrets
    assert not [secret for secret in SECRETS if secret in text]
    read_secrets(reopen())


def test_the_key_file_is_made_once_and_is_its_users_alone(reopen: Open, key_file: Path) -> None:
    reopen()
    made = key_file.read_bytes()
    assert stat.S_IMODE(key_file.stat().st_mode) == 0o600
    assert [path.name for path in key_file.parent.iterdir()] == ["secrets.key"]
    reopen()
    assert key_file.read_bytes() == made


def test_a_program_with_a_missing_or_wrong_key_does_not_start(reopen: Open, key_file: Path) -> None:
    write_secrets(reopen())
    right = key_file.read_bytes()
    key_file.unlink()
    with pytest.raises(InvalidState, match=f"the key file {key_file} is missing"):
        reopen()
    assert not key_file.exists()
    for wrong, told in (
        (Fernet.generate_key(), "has another key than the database"),
        (b"hello", "has a line that is no key"),
        (b"\xff", "has a line that is no key"),
        (b"", "is empty"),
    ):
        key_file.write_bytes(wrong)
        with pytest.raises(InvalidState, match=f"the key file {key_file} {told}"):
            reopen()
    key_file.write_bytes(right)
    read_secrets(reopen())


def test_a_new_first_key_replaces_the_others(reopen: Open, key_file: Path) -> None:
    write_secrets(reopen())
    old, new = key_file.read_bytes(), Fernet.generate_key() + b"\n"
    key_file.write_bytes(new + old)
    read_secrets(reopen())
    key_file.write_bytes(new)
    read_secrets(reopen())
    key_file.write_bytes(old)
    with pytest.raises(InvalidState, match="has another key"):
        reopen()


def test_a_changed_secret_is_not_opened(reopen: Open, key_file: Path) -> None:
    database = reopen()
    write_secrets(database)
    other = Fernet(Fernet.generate_key()).encrypt(b'"another"').decode()
    for planted in (other, "plain", 5):
        with database.engine.begin() as connection:
            connection.execute(
                sqlalchemy.text("UPDATE connection_profiles SET config = :config"),
                {"config": json.dumps({"uri": planted})},
            )
        with database.read() as session:
            (profile,) = connections.profiles(session)
            with pytest.raises(InvalidState, match=f"{key_file} does not open a secret"):
                opened(profile.config)


def test_postgresql_needs_to_be_told_the_key_file() -> None:
    with pytest.raises(InvalidArgument, match=r"set database\.key_file"):
        Database.open("postgresql://somebody@localhost/x")


@pytest.mark.parametrize("value", ["x", "ä\0", 1, True, ["a", {"b": None}]])
def test_every_json_value_comes_back(tmp_path: Path, value: Any) -> None:
    keys = Keys(tmp_path / "k")
    keys.make()
    assert keys.open(keys.seal(value)) == value
    assert keys.seal(value) != keys.seal(value)
