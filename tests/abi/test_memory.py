"""Memory at the boundary, under AddressSanitizer and UBSan: no read beyond a buffer, one release per array."""

import shutil
from pathlib import Path

import pytest

from arroyo_udf_plugin import build
from arroyo_udf_plugin.build import c, rust
from arroyo_udf_plugin.build.cache import Resolution

HERE = Path(__file__).parent
SANITIZED = ["-g", "-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
LIBRARY = ["-shared", "-fPIC", "-fvisibility=hidden"]


@pytest.mark.once
def test_helpers_with_exact_buffers_and_counted_releases(plain_cc, bare):
    host = plain_cc(HERE / "exact.c", *SANITIZED)
    library = plain_cc('#define FIRST_HALF 0\n#include "functions.c"\n', f"-I{HERE}", *SANITIZED, *LIBRARY)
    done = bare(host, library)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "2376 batches are right\n"


def groups(plain_cc, bare, *flags):
    """Runs exact_groups.c over groups.c, both with AddressSanitizer."""
    library = plain_cc(HERE / "groups.c", *flags, *SANITIZED, *LIBRARY, libraries=["-lm"])
    return bare(plain_cc(HERE / "exact_groups.c", *SANITIZED, libraries=["-ldl"]), library)


@pytest.mark.once
def test_groups_and_rows_with_exact_buffers(plain_cc, bare):
    done = groups(plain_cc, bare)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "174 batches are right\n"


@pytest.mark.once
@pytest.mark.parametrize(
    ("part", "old", "new", "seen"),
    [
        ("results", "  arroyo_udf_c_free_rows(result->rows);\n", "", "LeakSanitizer"),
        ("arrays", "  column->offset = array->offset + first;", "  column->offset = array->offset;", "exact_groups.c"),
    ],
    ids=["rows never freed", "no offset"],
)
def test_the_host_of_groups_notices_mistakes(plain_cc, bare, tmp_path, part, old, new, seen):
    done = groups(plain_cc, bare, f"-I{changed(tmp_path, part, old, new)}")
    assert done.returncode != 0
    assert seen in done.stderr


def changed(folder, part, old, new):
    """A folder with the headers, of which one is changed."""
    include = folder / "include"
    shutil.copytree(HERE.parents[1] / "native" / "include", include)
    header = include / f"arroyo_udf_c_{part}.h"
    text = header.read_text()
    assert text.count(old) == 1
    header.write_text(text.replace(old, new))
    return include


@pytest.mark.once
@pytest.mark.parametrize(
    ("part", "old", "new", "seen"),
    [
        ("arrays", "  if (n_bytes >= 8) {", "  if (true) {", "heap-buffer-overflow"),
        ("functions", "  batch->release(batch);\n", "", "struct_releases == 1"),
    ],
    ids=["one byte too many", "never released"],
)
def test_the_exact_host_notices_mistakes(plain_cc, bare, tmp_path, part, old, new, seen):
    include = changed(tmp_path, part, old, new)
    source = "#define FIRST_HALF 0\n" + (HERE / "functions.c").read_text()
    done = bare(plain_cc(HERE / "exact.c", *SANITIZED), plain_cc(source, f"-I{include}", *SANITIZED, *LIBRARY))
    assert done.returncode != 0
    assert seen in done.stderr


@pytest.mark.parametrize("suffix", [".py", ".rs"])
def test_releases_of_other_languages_are_counted(plain_cc, bare, built, suffix):
    host = plain_cc(HERE / "exact.c", "-g")
    done = bare(host, built(f"counted{suffix}"))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "2376 batches are right\n"


@pytest.mark.parametrize("source", ["counted.py", "counted.rs", "plus.c"])
def test_one_runtime_called_from_all_sides(plain_cc, bare, built, source):
    """R1, R13, R14, R19 while six threads send, drain, arm, wait, cancel and stop."""
    host = plain_cc(HERE / "storm.c", "-g", "-Wall", "-Wextra", "-Werror", "-pthread")
    done = bare(host, built(source), 100)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "100 cycles are right\n"


@pytest.mark.parametrize("source", ["counted.py", "counted.rs", "plus.c"])
def test_release_frees_inputs_that_were_not_drained(plain_cc, bare, built, source):
    """R19: before `release` returns, whether or not a collector of garbage has run."""
    host = plain_cc(HERE / "releases.c", "-g", "-Wall", "-Wextra", "-Werror")
    done = bare(host, built(source))
    assert (done.returncode, done.stderr) == (0, "")


def test_inputs_are_released_in_calls_into_their_own_plugin(plain_cc, bare, built, tmp_path):
    """R19: also if user code keeps them, and another Python plugin of the process drops them."""
    host = plain_cc(HERE / "releases.c", "-g", "-Wall", "-Wextra", "-Werror")
    other = shutil.copy(HERE / "keeps.py", tmp_path / "other.py")
    done = bare(host, built("keeps.py"), build(other))
    assert (done.returncode, done.stderr) == (0, "")


def test_async_functions_in_c_keep_no_memory(plain_cc, bare, tmp_path):
    """As above, with the author's code under AddressSanitizer: each job is freed once, none leaks."""
    rust.runtime_for_c(HERE / "plus.c", tmp_path / "runtime.a", Resolution())
    linked = [str(tmp_path / "runtime.a"), "-Wl,--require-defined=arroyo_udf_plugin", *c.ASYNC_LIBRARIES, *c.LIBRARIES]
    library = plain_cc(HERE / "plus.c", *SANITIZED, *LIBRARY, "-Wall", "-Wextra", "-Werror", libraries=linked)
    done = bare(plain_cc(HERE / "storm.c", *SANITIZED, "-pthread"), library, 20)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "20 cycles are right\n"


def test_example_host_with_example_plugins(plain_cc, bare, examples):
    host = plain_cc(examples / "host" / "c" / "host.c", *SANITIZED)
    for source, functions in {"flights/udf.c": ["mph", "tail"], "by_hand/udf.c": ["kilometres"]}.items():
        library = plain_cc(examples / source, *SANITIZED, *LIBRARY)
        for function in functions:
            done = bare(host, library, function)
            assert (done.returncode, done.stderr) == (0, "")
            assert done.stdout.count("value=") == 5
