"""Draws the tables "In other engines" and "Beside others" of README.md: ns per row, on a logarithmic scale.

python3 bench/picture.py      engines.svg, peers-light.svg, peers-dark.svg
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from html import escape
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROW, LABELS, WIDTH = 22, 270, 420


@dataclass(frozen=True)
class Colors:
    text: str
    ours: str
    theirs: str


BOTH = Colors("#808080", "#2f6f9f", "#b9b9b9")
LIGHT, DARK = Colors("#303030", "#2f6f9f", "#b9b9b9"), Colors("#d0d0d0", "#5fa8dc", "#606060")


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


def peers(group: str, readme: str) -> list[Bar]:
    """All lines of a group, the quickest first."""
    pattern = rf"^\| {re.escape(group)}: ([^|]+) \| [^|]+ \| ([\d.,]+) ns/row \|"
    found = [
        Bar(who, float(value.replace(",", "")), who.startswith("ours"))
        for who, value in re.findall(pattern, readme, re.M)
    ]
    return sorted(found, key=lambda bar: bar.ns)


def drawn(groups: dict[str, list[Bar]], largest: float, below: str, colors: Colors = BOTH) -> str:
    lines: list[str] = []
    y = 10
    for engine, group in groups.items():
        y += ROW
        lines.append(f'<text x="4" y="{y}" font-weight="bold">{engine}</text>')
        for bar in group:
            y += ROW
            length = WIDTH * math.log10(bar.ns) / math.log10(largest)
            color = colors.ours if bar.is_ours else colors.theirs
            lines.append(f'<text x="{LABELS - 8}" y="{y}" text-anchor="end">{escape(bar.label)}</text>')
            lines.append(f'<rect x="{LABELS}" y="{y - 12}" width="{length:.0f}" height="15" fill="{color}"/>')
            lines.append(f'<text x="{LABELS + length + 6:.0f}" y="{y}">{shown(bar.ns)} ns</text>')
        y += 8
    lines.append(f'<text x="{LABELS}" y="{y + 12}">{below}; logarithmic</text>')
    y += ROW
    size = f'width="{LABELS + WIDTH + 80}" height="{y + 14}"'
    style = f'font-family="sans-serif" font-size="13" fill="{colors.text}"'
    return "\n".join([f'<svg xmlns="http://www.w3.org/2000/svg" {size} {style}>', *lines, "</svg>", ""])


def shown(ns: float) -> str:
    return f"{ns:,.0f}" if ns >= 100 else f"{ns:.3g}"


def pictures(readme: str) -> dict[str, str]:
    """By file name."""
    engines = {engine: bars(engine, readme) for engine in ("DuckDB", "Polars", "Spark")}
    below = "ns per row of mph = distance * 60 / air_time"
    groups = {
        group.replace("`", ""): peers(group, readme)
        for group in ("`mph`, row by row", "`mph`, whole columns", "`at_once`, async", "`sleep_ms`, async")
    }
    return {"engines.svg": drawn(engines, 1000.0, below)} | {
        f"peers-{name}.svg": drawn(groups, 100_000.0, "ns per row", colors)
        for name, colors in (("light", LIGHT), ("dark", DARK))
    }


if __name__ == "__main__":
    for name, picture in pictures((HERE / "README.md").read_text()).items():
        (HERE / name).write_text(picture)
