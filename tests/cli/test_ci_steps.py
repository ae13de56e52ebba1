""".ci/run chooses the steps that a change needs."""

import dataclasses
import importlib.util
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]


def _loaded() -> Any:
    spec = importlib.util.spec_from_file_location("ci_steps", ROOT / ".ci" / "steps.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["ci_steps"] = module
    spec.loader.exec_module(module)
    return module


def _is_clone() -> bool:
    try:
        steps._git("rev-parse", "HEAD")
    except (OSError, subprocess.CalledProcessError):
        return False
    return True


steps = _loaded()
in_a_clone = pytest.mark.skipif(not _is_clone(), reason="a source tree without its history has no commits")
NAMES = [step.name for step in steps.STEPS]
CHOOSING = [name for name in NAMES if name != "test"]


def chosen(path: str) -> set[str]:
    """The steps that may not pass any more when a file has changed."""
    return {step.name for step in steps.STEPS if step.paths is not None and steps.depends(step, path)}


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("docs/sql.md", set()),
        (".ci/steps.py", set()),
        ("tests/engine/operators/test_keys.py", set()),
        ("tests/isolation/test_stress.py", {"isolation"}),
        ("tests/integrations/test_calls.py", {"integrations"}),
        ("tests/integrations/plugins/one.rs", {"integrations", "rust_host", "spark"}),
        ("examples/host/datafusion/src/main.rs", {"rust_host", "pipelines"}),
        ("tests/integrations/test_spark.py", {"integrations", "spark"}),
        ("tests/arroyo/conftest.py", {"arroyo", "memory"}),
        ("tests/engine/sql/test_queries.py", {"datafusion", "flink"}),
        ("tests/engine/sql/test_lookups.py", {"datafusion", "flink", "server"}),
        ("tests/engine/sql/sql_world.py", {"lowest", "datafusion", "flink", "server"}),
        ("tests/engine/execution/test_stops.py", set()),
        ("tests/engine/pipeline/test_flights.py", {"server", "pipelines"}),
        ("tests/cluster/test_kills.py", {"cluster"}),
        ("python/arroyo_udf_plugin/cluster/task.py", {"cluster", "flink", "package", "web"}),
        ("tests/flink/conftest.py", {"flink"}),
        ("tests/connectors/kafka/pom.xml", {"connectors"}),
        ("python/arroyo_udf_plugin/engine/flink/cut.py", {"cluster", "flink", "package"}),
        ("web/src/main.tsx", {"package", "web"}),
        ("web/e2e/flow.spec.ts", {"web"}),
        (
            "python/arroyo_udf_plugin/engine/planner/text.py",
            set(CHOOSING) - {"isolation", "integrations", "rust_host", "spark", "arroyo", "memory", "bench"},
        ),
        ("bench/test_sync.py", {"bench"}),
        ("README.md", {"package"}),
        ("native/runtime/src/lib.rs", set(CHOOSING)),
    ],
)
def test_a_change_chooses_the_steps_that_depend_on_it(path: str, expected: set[str]) -> None:
    assert chosen(path) == expected


def test_each_step_is_chosen_by_one_of_its_paths() -> None:
    for step in steps.STEPS:
        for path in step.paths or ():
            assert step.name in chosen(path + "file" if path.endswith("/") else path), (step.name, path)


@pytest.mark.parametrize("path", ["Makefile", "scripts/environment.py", "pyproject.toml", "new/file"])
def test_some_changes_choose_all(path: str) -> None:
    assert chosen(path) == set(CHOOSING)


@in_a_clone
def test_make_test_always_runs_and_others_until_they_have_passed() -> None:
    everything = {step.name: steps.digest(step) for step in steps.STEPS}
    assert steps.reasons(everything) == {"test": "it always runs"}
    assert set(steps.reasons({})) == set(NAMES)
    assert set(steps.reasons(everything | {"arroyo": "0" * 16})) == {"test", "arroyo"}


def test_what_does_not_fit_is_left_out_and_named(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    """The shortest come first, so that most are run."""
    due = dict.fromkeys(NAMES, "due")
    found, left_out = steps.fitting(due)
    minutes = {step.name: step.minutes for step in steps.STEPS}
    assert "test" in found
    assert sum(minutes[name] for name in found) <= steps.MOST_MINUTES
    assert {*found} | {*left_out} == {*NAMES}
    assert max(minutes[name] for name in found if name != "test") <= min(minutes[name] for name in left_out)
    assert steps.fitting({"test": "due", "arroyo": "due"}) == ({"test": "due", "arroyo": "due"}, [])

    monkeypatch.setattr(steps, "reasons", lambda noted: due)
    monkeypatch.setattr(steps.subprocess, "run", lambda *command, **how: subprocess.CompletedProcess(command, 0))
    assert steps.main([]) == 0
    said = capsys.readouterr().out
    assert said.splitlines()[-1].endswith(f"still due: .ci/run {' '.join(left_out)}")
    assert f"{left_out[0]}: due, and left out" in said


@in_a_clone
def test_a_digest_is_of_the_command_and_of_the_files(monkeypatch: pytest.MonkeyPatch) -> None:
    (step,) = [step for step in steps.STEPS if step.name == "isolation"]
    before = steps.digest(step)
    assert steps.digest(dataclasses.replace(step, command="nothing")) != before
    listed = steps._git("ls-tree", "-r", "--full-tree", "HEAD")
    for path, is_other in (("docs/sql.md", False), ("python/arroyo_udf_plugin/host/function.py", True)):
        line = next(line for line in listed.splitlines() if line.endswith(f"\t{path}"))
        changed = listed.replace(line, line.replace(line.split()[2], "0" * 40))
        monkeypatch.setattr(steps, "_git", lambda *command, changed=changed: changed)
        assert (steps.digest(step) != before) == is_other


@in_a_clone
def test_each_path_of_the_project_is_declared() -> None:
    files = steps._git("ls-files").splitlines()
    declared = (*steps.EVERYWHERE, *steps.ALWAYS, *(path for step in steps.STEPS for path in step.paths or ()))
    assert [path for path in files if not path.startswith(declared)] == []
    there = [path for path in declared if any(each.startswith(path) for each in files) or path == ".ci/"]
    assert there == list(declared)


def test_without_a_clone_all_steps_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(steps, "ROOT", tmp_path)
    assert set(steps.reasons({step.name: "0" * 16 for step in steps.STEPS})) == set(NAMES)


def test_a_name_that_there_is_not_is_refused() -> None:
    with pytest.raises(SystemExit, match="there is no step tests: there are test, lowest"):
        steps.chosen(["tests"])
