"""Functions that are compiled to C (docs/native.md), and the same ones that are not."""

from arroyo_udf_plugin import udf


@udf(native=True)
def mph(distance: int, air_time: int) -> float:
    return distance * 60.0 / air_time


@udf(native=False)
def mph_python(distance: int, air_time: int) -> float:
    return distance * 60.0 / air_time


@udf(native=True)
def tail(carrier: str, tailnum: str) -> str:
    if tailnum.startswith("N"):
        return f"{carrier}-{tailnum[1:]}"
    return tailnum.upper() if carrier == "AA" else tailnum + "?"


@udf(native=False)
def tail_python(carrier: str, tailnum: str) -> str:
    if tailnum.startswith("N"):
        return f"{carrier}-{tailnum[1:]}"
    return tailnum.upper() if carrier == "AA" else tailnum + "?"


# ---- Three functions that are called in one pass, and the one that somebody would write of them ----


@udf(native=True)
def late(distance: int, air_time: int) -> float:
    worse = air_time - (30.0 + distance * 0.12)
    return worse * 1.5 if worse > 0.0 else 0.0


@udf(native=True)
def score(speed: float, late: float) -> int:
    return round(speed - late) if speed > 100.0 else 0


@udf(native=True)
def score_by_hand(distance: int, air_time: int) -> int:
    speed = distance * 60.0 / air_time
    worse = air_time - (30.0 + distance * 0.12)
    late = worse * 1.5 if worse > 0.0 else 0.0
    return round(speed - late) if speed > 100.0 else 0


@udf(native=True)
def lowered(name: str) -> str:
    return name.lower()


@udf(native=True)
def ending(name: str, code: str) -> str:
    return f"{name.removesuffix('?')}.{code}" if len(name) > 4 else name


@udf(native=True)
def name_by_hand(carrier: str, tailnum: str) -> str:
    if tailnum.startswith("N"):
        name = f"{carrier}-{tailnum[1:]}"
    else:
        name = tailnum.upper() if carrier == "AA" else tailnum + "?"
    name = name.lower()
    return f"{name.removesuffix('?')}.{carrier}" if len(name) > 4 else name
