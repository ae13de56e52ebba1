"""The steps of .ci/run: which of them are to run, and why.

    .ci/run                     make test, and each step that has not passed yet with the files as they are, but no more
                                than fit in 75 minutes: the shortest first. Those that are left out stay due
    .ci/run all                 all steps
    .ci/run isolation server    these steps

A step that passes on a fresh clone when it was asked for by name, or by `all`, is noted in .ci/passed, with a digest of
its command and of all files on which it depends; commit that file. The history of the clone does not matter. Each step
depends on the Makefile, `scripts/`, the dependencies, and on files that no step declares.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PASSED = ROOT / ".ci" / "passed"

EVERYWHERE = ("Makefile", "scripts/", "pyproject.toml", "setup.py", "native/Cargo.lock", "native/Cargo.toml")
"""What each step depends on."""
ALWAYS = (
    *(
        "README.md",
        "CHANGELOG.md",
        "CONTRIBUTING.md",
        "LICENSE-APACHE",
        "LICENSE-MIT",
        ".gitignore",
        ".dockerignore",
        ".ci/",
    ),
    *("deploy/", "docs/", "examples/"),
    *("tests/cli/", "tests/engine/", "tests/fuzz/", "tests/native_functions/", "tests/simulation/"),
)
"""What `make test` tests, and no other step needs."""


def rooms(*names: str) -> tuple[str, ...]:
    """Of the package: folders end with a slash."""
    return tuple(f"python/arroyo_udf_plugin/{name}" for name in names)


TOOLKIT = (
    *rooms("__init__.py", "_native.pyi", "abi.py", "errors.py", "py.typed", "version.py", "worker.py"),
    *rooms("author/", "build/", "host/", "plugin/"),
    *("native/", "tests/conftest.py"),
)
OF_FUNCTIONS = ("tests/abi/", "tests/native/", "tests/python/")
SQL_WORLD = ("tests/engine/sql/conftest.py", "tests/engine/sql/sql_world.py")
ENGINE = (
    *TOOLKIT,
    *rooms("connectors.py", "failpoints.py", "pipeline.py", "testing/"),
    *rooms(*(f"engine/{name}" for name in ("__init__.py", "attribute_docs.py", "dead_letters.py"))),
    *rooms(*(f"engine/{name}/" for name in ("connectors", "datafusion", "execution", "file_run", "operators"))),
    *rooms(*(f"engine/{name}/" for name in ("pipeline", "planner", "windows"))),
)
ON_FLINK = rooms("engine/flink/")
BUILT_PAGE = tuple(f"web/{name}" for name in ("index.html", "package", "public/", "src/", "tools/", "vite.config.ts"))


MOST_MINUTES = 75


@dataclass(frozen=True)
class Step:
    """command: of make. minutes: on two idle processors, from a fresh clone. what: for people. paths: on which it
    depends; None: it always runs. is_remark: it may fail."""

    name: str
    command: str
    minutes: int
    what: str
    paths: tuple[str, ...] | None
    is_remark: bool = False


STEPS = (
    Step("test", "test REQUIRE_ALL=1", 50, "lints, Rust tests, pytest on each Python", None),
    Step(
        "lowest",
        "test-lowest",
        5,
        "the lowest versions of all dependencies",
        (
            *ENGINE,
            *OF_FUNCTIONS,
            *rooms("cli/"),
            *SQL_WORLD,
            "tests/engine/connectors/",
            "tests/engine/sql/test_query.py",
        ),
    ),
    Step(
        "integrations",
        "test-integrations",
        2,
        "libraries in DuckDB, Polars, Daft, SQLite, DataFusion and pandas",
        (*TOOLKIT, *rooms("integrations/"), "tests/integrations/"),
    ),
    Step(
        "rust_host",
        "test-rust-host",
        10,
        "the crate for engines in Rust, and a SQL shell over DataFusion",
        (*TOOLKIT, "examples/host/", "tests/integrations/plugins/", "tests/rust_host/"),
    ),
    Step(
        "spark",
        "test-spark",
        5,
        "libraries in Spark",
        (
            *(*TOOLKIT, *rooms("integrations/"), "tests/integrations/conftest.py", "tests/integrations/documented.py"),
            *("tests/integrations/plugins/", "tests/integrations/test_spark.py"),
        ),
    ),
    Step("datafusion", "test-datafusion", 6, "queries with the oldest DataFusion", (*ENGINE, "tests/engine/sql/")),
    Step(
        "isolation",
        "test-isolation REQUIRE_ALL=1",
        7,
        "functions in subinterpreters and worker processes",
        (*TOOLKIT, *OF_FUNCTIONS, "tests/isolation/"),
    ),
    Step(
        "arroyo",
        "test-arroyo REQUIRE_ALL=1",
        16,
        "against the published crates of the Arroyo engine",
        (*TOOLKIT, "docs/arroyo.md", "tests/arroyo/", "tests/cli/test_docs.py"),
    ),
    Step(
        "server",
        "test-server REQUIRE_ALL=1",
        3,
        "against a PostgreSQL server",
        (
            *(*ENGINE, *OF_FUNCTIONS, *SQL_WORLD, "tests/engine/connectors/", "tests/engine/pipeline/"),
            "tests/engine/sql/test_lookups.py",
        ),
    ),
    Step(
        "pipelines",
        "test-pipelines KILLS=10",
        6,
        "pipelines that are killed lose nothing; people run it with 20, check-kill with 100",
        (*ENGINE, "examples/", "tests/engine/execution/kill/", "tests/engine/pipeline/"),
    ),
    Step(
        "cluster",
        "test-cluster",
        12,
        "programs of a cluster that are killed; every job ends as its user wishes",
        (*ENGINE, *ON_FLINK, *rooms("cli/", "cluster/"), "deploy/", "tests/cluster/"),
    ),
    Step(
        "flink",
        "test-flink",
        17,
        "pipelines on Apache Flink, whose programs are killed",
        (*ENGINE, *ON_FLINK, *rooms("cli/", "cluster/"), "tests/engine/sql/", "tests/flink/"),
    ),
    Step(
        "connectors",
        "test-connectors",
        10,
        "sources and sinks against real servers",
        (*ENGINE, "tests/connectors/"),
    ),
    Step(
        "web",
        "test-web",
        10,
        "the web page in a real browser, over real clusters",
        (*ENGINE, *rooms("cli/", "cluster/"), "web/"),
    ),
    Step(
        "memory",
        "check-memory QUICK=1",
        2,
        "hosts in C over plugins in three languages, under valgrind",
        (*TOOLKIT, "tests/abi/", "tests/arroyo/"),
    ),
    Step(
        "package",
        "package REQUIRE_ALL=1",
        6,
        "sdist and wheels, each wheel installed elsewhere and used in three languages",
        (*ENGINE, *ON_FLINK, *rooms("cli/", "cluster/"), *BUILT_PAGE, "README.md", "LICENSE-APACHE", "LICENSE-MIT"),
    ),
    Step(
        "bench",
        "bench-compare",
        4,
        "main lines beside the table of bench/README.md; what fell is a remark",
        (*TOOLKIT, "bench/"),
        is_remark=True,
    ),
)


def depends(step: Step, path: str) -> bool:
    """Whether a file may decide about a step, beside `make test`."""
    if path.startswith((*EVERYWHERE, *(step.paths or ()))):
        return True
    return not path.startswith((*ALWAYS, *(each for other in STEPS for each in other.paths or ())))


def digest(step: Step, commit: str = "HEAD") -> str:
    """Of all that decides about a step in a commit."""
    listed = _git("ls-tree", "-r", "--full-tree", commit).splitlines()
    files = [line for line in listed if depends(step, line.partition("\t")[2])]
    return hashlib.sha256("\n".join([step.command, *files]).encode()).hexdigest()[:16]


def passed() -> dict[str, str]:
    """The digests with which steps have passed."""
    lines = PASSED.read_text().splitlines() if PASSED.exists() else []
    return {name: noted for name, _, noted in (line.partition(" ") for line in lines)}


def note(step: Step) -> None:
    """That this commit passes it, unless something here is not in the commit."""
    if any(line[3:] != ".ci/passed" for line in _git("status", "--porcelain").splitlines()):
        return
    found = passed() | {step.name: digest(step)}
    PASSED.write_text("".join(f"{each.name} {found[each.name]}\n" for each in STEPS if each.name in found))


def reasons(noted: Mapping[str, str]) -> dict[str, str]:
    """Why steps are to run, by their names. noted: see `passed`."""
    try:
        _git("rev-parse", "HEAD")
    except (OSError, subprocess.CalledProcessError):
        return dict.fromkeys((step.name for step in STEPS), "this is no clone, so nothing is known about it")
    found = {}
    for step in STEPS:
        if step.paths is None:
            found[step.name] = "it always runs"
        elif step.name not in noted:
            found[step.name] = "it is not known to have passed"
        elif noted[step.name] != digest(step):
            found[step.name] = "something on which it depends has changed since it passed"
    return found


def fitting(due: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    """Those of them that fit, the shortest first, and the others. A step that always runs fits."""
    left = MOST_MINUTES
    found: dict[str, str] = {}
    for step in sorted(_of(due), key=lambda step: (step.paths is not None, step.minutes)):
        if step.paths is None or step.minutes <= left:
            found[step.name] = due[step.name]
            left -= step.minutes
    return found, [name for name in due if name not in found]


def _git(*command: str) -> str:
    own = ["git", "-c", "safe.directory=*"]  # the clone may belong to somebody else
    return subprocess.run([*own, *command], cwd=ROOT, capture_output=True, text=True, check=True).stdout


def chosen(asked: Sequence[str]) -> tuple[dict[str, str], list[str]]:
    """The steps to run, each with its reason, and those that are due and left out. Raises SystemExit for a name that
    there is not."""
    names = [step.name for step in STEPS]
    if asked == ["all"]:
        return dict.fromkeys(names, "all were asked for"), []
    if unknown := next((name for name in asked if name not in names), None):
        raise SystemExit(f"there is no step {unknown}: there are {', '.join(names)}, and all")
    if asked:
        return {name: "it was asked for" for name in names if name in asked}, []
    return fitting(reasons(passed()))


def main(asked: Sequence[str]) -> int:
    found, left_out = chosen(asked)
    for step in STEPS:
        no = "due, and left out" if step.name in left_out else "not needed"
        print(f"{step.name}: {found.get(step.name, no)}", flush=True)
    for number, step in enumerate(_of(found), 1):
        print(f"{number} of {len(found)}: make {step.command}: {step.what}", flush=True)
        start = time.monotonic()
        status = subprocess.run(["make", *step.command.split()], cwd=ROOT).returncode
        print(f"{step.name}: {'passed' if status == 0 else 'failed'} in {time.monotonic() - start:.0f} s", flush=True)
        if status != 0 and not step.is_remark:
            return status
        if status == 0 and asked:
            note(step)
    if left_out:
        print(f"not run, because {MOST_MINUTES} minutes are full, and still due: .ci/run {' '.join(left_out)}")
    return 0


def _of(names: Iterable[str]) -> list[Step]:
    return [step for step in STEPS if step.name in set(names)]


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
