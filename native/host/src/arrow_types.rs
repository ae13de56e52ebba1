//! What the C schemas of a function are for Arrow: read once, because that costs more than a call.

use std::sync::{Arc, OnceLock, RwLock};

use arrow_array::ffi::FFI_ArrowSchema;
use arrow_schema::{ArrowError, DataType, Field, FieldRef, Fields};
use arroyo_udf_abi as abi;

use crate::error::broken;
use crate::{Error, ErrorKind, Result};

/// Of one function.
#[derive(Default)]
pub(crate) struct Cache {
    types: OnceLock<std::result::Result<ArrowTypes, String>>,
    /// By the address of the schema, of which a plugin has one or two for a function.
    results: RwLock<Vec<(usize, Arc<ResultFields>)>>,
}

impl Cache {
    /// The types of a function with this name and these schemas.
    pub(crate) fn types(&self, function: &str, arguments: &abi::ArrowSchema, returns: &abi::ArrowSchema) -> Result<&ArrowTypes> {
        let read = self.types.get_or_init(|| ArrowTypes::read(arguments, returns).map_err(|error| error.to_string()));
        let unknown = |why: &String| format!("function {function} has a type that this host does not know: {why}");
        read.as_ref().map_err(|why| Error::new(ErrorKind::NotImplemented, unknown(why)))
    }

    /// The columns of results with this schema. returns: the type of a value.
    pub(crate) fn results(&self, function: &str, schema: &abi::ArrowSchema, returns: &DataType) -> Result<Arc<ResultFields>> {
        let address = std::ptr::from_ref(schema) as usize;
        let known = self.results.read().unwrap_or_else(|poisoned| poisoned.into_inner());
        if let Some((_, fields)) = known.iter().find(|(other, _)| *other == address) {
            return Ok(fields.clone());
        }
        drop(known);
        let fields = Arc::new(ResultFields::read(schema, returns).map_err(|why| broken(function, &why))?);
        self.results.write().unwrap_or_else(|poisoned| poisoned.into_inner()).push((address, fields.clone()));
        Ok(fields)
    }
}

pub(crate) struct ArrowTypes {
    pub(crate) arguments: Fields,
    pub(crate) returns: FieldRef,
}

impl ArrowTypes {
    fn read(arguments: &abi::ArrowSchema, returns: &abi::ArrowSchema) -> std::result::Result<Self, ArrowError> {
        let DataType::Struct(arguments) = DataType::try_from(borrowed(arguments))? else {
            return Err(ArrowError::SchemaError("the arguments are no struct".into()));
        };
        Ok(ArrowTypes { arguments, returns: Arc::new(Field::try_from(borrowed(returns))?) })
    }
}

fn borrowed(schema: &abi::ArrowSchema) -> &FFI_ArrowSchema {
    // SAFETY: both mirror the ArrowSchema of the C Data Interface; a reference releases nothing.
    unsafe { &*std::ptr::from_ref(schema).cast::<FFI_ArrowSchema>() }
}

/// Where the columns of results are, and what they are.
pub(crate) struct ResultFields {
    pub(crate) value: (usize, DataType),
    pub(crate) outcome: Option<(usize, DataType)>,
    pub(crate) error: Option<(usize, DataType)>,
    pub(crate) id: Option<(usize, DataType)>,
    pub(crate) attempts: Option<(usize, DataType)>,
}

impl ResultFields {
    fn read(schema: &abi::ArrowSchema, returns: &DataType) -> std::result::Result<Self, String> {
        let found = DataType::try_from(borrowed(schema)).map_err(|error| error.to_string())?;
        let DataType::Struct(fields) = &found else { return Err("results are no struct".into()) };
        let place = |name: &str| fields.find(name).map(|(i, field)| (i, field.data_type().clone()));
        let typed = |name: &str, wanted: DataType| match place(name) {
            Some((_, other)) if other != wanted => Err(format!("the field {name} of results is {other}")),
            found => Ok(found),
        };
        let value = place("value").ok_or("results have no values")?;
        if !value.1.equals_datatype(returns) {
            return Err(format!("its values are {}, not {returns}", value.1));
        }
        Ok(ResultFields {
            value,
            outcome: typed("outcome", DataType::UInt8)?,
            error: typed("error", DataType::Utf8)?,
            id: typed("id", DataType::UInt64)?,
            attempts: typed("attempts", DataType::UInt16)?,
        })
    }
}
