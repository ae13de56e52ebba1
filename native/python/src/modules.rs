//! The Python halves: modules of the package that native code calls.

use std::ffi::CStr;

pub const EXECUTOR: &CStr = c"arroyo_udf_plugin._executor";
pub const BLOCKING: &CStr = c"arroyo_udf_plugin._blocking";
pub const PYARROW: &CStr = c"arroyo_udf_plugin._pyarrow";
pub const TRACEBACK: &CStr = c"arroyo_udf_plugin._traceback";
