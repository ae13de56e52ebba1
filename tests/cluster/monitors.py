"""What tests of metrics ask: /metrics as samples, and Prometheus."""

import json
import urllib.parse
import urllib.request
from typing import Any

from prometheus_client.parser import text_string_to_metric_families


def get(address: str, **headers: str) -> str:
    request = urllib.request.Request(address, headers=headers)
    with urllib.request.urlopen(request, timeout=60) as answer:
        found: str = answer.read().decode()
    return found


def samples(text: str) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    """By name and labels."""
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def value(text: str, name: str, /, **labels: object) -> float | None:
    """Of the only sample that has these labels, and maybe others."""
    wanted = {(label, str(one)) for label, one in labels.items()}
    found = [number for (own, has), number in samples(text).items() if own == name and wanted <= has]
    assert len(found) < 2, (name, labels, text)
    return found[0] if found else None


def query(prometheus: str, promql: str) -> list[dict[str, Any]]:
    """What Prometheus answers now: [{"metric": labels, "value": [time, text]}]."""
    answer = get(f"{prometheus}/api/v1/query?{urllib.parse.urlencode({'query': promql})}")
    found: list[dict[str, Any]] = json.loads(answer)["data"]["result"]
    return found
