from arroyo_udf_plugin import udf


@udf
def mph(distance: int, air_time: int) -> float:
    """Miles and minutes to miles per hour. If an argument is null, so is the result; the function is not called."""
    return distance * 60.0 / air_time
