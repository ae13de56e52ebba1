"""A plugin of pytest: a test whose child fails shows what the child has said. The exceptions of `subprocess` do not."""

from __future__ import annotations

import subprocess
from collections.abc import Generator
from typing import Any

import pytest


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(call: pytest.CallInfo[Any]) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    error = None if call.excinfo is None else call.excinfo.value
    if isinstance(error, subprocess.CalledProcessError | subprocess.TimeoutExpired):
        for name, said in (("stdout", error.stdout), ("stderr", error.stderr)):
            text = said.decode(errors="replace") if isinstance(said, bytes) else said
            report.sections += [(f"{name} of the child", text)] if text else []
    return report
