from arroyo_udf_plugin import udf


@udf
def mph(distance: int, air_time: int) -> float:
    """Miles and minutes to miles per hour. A row where an argument is null is null; the function is not called."""
    return distance * 60.0 / air_time
