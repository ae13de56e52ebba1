"""Draws bench/engines.svg from the table "In other engines" of README.md: ns per row, on a logarithmic scale.

python3 bench/picture.py
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from html import escape
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROW, LABELS, WIDTH, LARGEST = 22, 270, 420, 1000.0
OURS, THEIRS = "#2f6f9f", "#b9b9b9"


@dataclass(frozen=True)
class Bar:
    label: str
    ns: float
    is_ours: bool


def bars(engine: str, readme: str) -> list[Bar]:
    """Ours and what the engine has of its own, the quickest first."""
    found: dict[str, Bar] = {}
    pattern = rf"^\| {engine}: `mph`, ([^|]+) \| ([^|]+) \| ([\d.]+) ns/row \| ([\d.]+) \|"
    for ours, reference, value, ratio in re.findall(pattern, readme, re.M):
        found.setdefault(ours, Bar(f"a function in {ours}", float(value), True))
        found.setdefault(reference, Bar(reference.replace("`", ""), float(value) / float(ratio), False))
    return sorted(found.values(), key=lambda bar: bar.ns)


def drawn(groups: dict[str, list[Bar]]) -> str:
    lines: list[str] = []
    y = 10
    for engine, group in groups.items():
        y += ROW
        lines.append(f'<text x="4" y="{y}" font-weight="bold">{engine}</text>')
        for bar in group:
            y += ROW
            length = WIDTH * math.log10(bar.ns) / math.log10(LARGEST)
            color = OURS if bar.is_ours else THEIRS
            lines.append(f'<text x="{LABELS - 8}" y="{y}" text-anchor="end">{escape(bar.label)}</text>')
            lines.append(f'<rect x="{LABELS}" y="{y - 12}" width="{length:.0f}" height="15" fill="{color}"/>')
            lines.append(f'<text x="{LABELS + length + 6:.0f}" y="{y}">{bar.ns:.3g} ns</text>')
        y += 8
    lines.append(f'<text x="{LABELS}" y="{y + 12}">ns per row of mph = distance * 60 / air_time; logarithmic</text>')
    y += ROW
    size = f'width="{LABELS + WIDTH + 80}" height="{y + 14}"'
    style = 'font-family="sans-serif" font-size="13" fill="#808080"'
    return "\n".join([f'<svg xmlns="http://www.w3.org/2000/svg" {size} {style}>', *lines, "</svg>", ""])


def picture(readme: str) -> str:
    return drawn({engine: bars(engine, readme) for engine in ("DuckDB", "Polars", "Spark")})


if __name__ == "__main__":
    (HERE / "engines.svg").write_text(picture((HERE / "README.md").read_text()))
