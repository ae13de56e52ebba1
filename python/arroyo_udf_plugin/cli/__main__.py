"""python -m arroyo_udf_plugin.cli"""

from . import main

main()
