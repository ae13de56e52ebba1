//! The Python halves: modules of the package that native code calls.

use std::ffi::CStr;

pub const EXECUTOR: &CStr = c"arroyo_udf_plugin.plugin.executor";
pub const BLOCKING: &CStr = c"arroyo_udf_plugin.plugin.blocking";
pub const CONVERSION: &CStr = c"arroyo_udf_plugin.plugin.conversion";
pub const STACKS: &CStr = c"arroyo_udf_plugin.plugin.stacks";
pub const FORKED: &CStr = c"arroyo_udf_plugin.plugin.forked";
pub const SUBINTERPRETER: &CStr = c"arroyo_udf_plugin.plugin.subinterpreter";
