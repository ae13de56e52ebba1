//! What a plugin says of its functions.

use arroyo_udf_abi as abi;

#[cfg(feature = "arrow")]
use crate::arrow_types::Cache;
use crate::checks::{self, name, text};
use crate::{Error, ErrorKind, Result};

/// How a host calls a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FunctionKind {
    /// `Function::run`.
    Sync,
    /// `Function::start`.
    Async,
    /// A kind of a later version, which this host cannot call.
    Unknown(u32),
}

/// What a failed row does to a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OnError {
    /// It ends it, with the plugin, the function, the row and the author's text.
    Fail,
    /// It has no value: null.
    Null,
}

/// What a result depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Volatility {
    /// On the arguments alone.
    Immutable,
    /// And on what does not change during a query.
    Stable,
    /// On anything, or the function has effects.
    Volatile,
}

/// What a plugin says of one function.
pub(crate) struct Described {
    pub(crate) number: u32,
    pub(crate) name: &'static str,
    pub(crate) kind: FunctionKind,
    pub(crate) volatility: Option<Volatility>,
    pub(crate) documentation: Option<&'static str>,
    /// Bit i: argument number i may be a constant.
    pub(crate) constants: u64,
    /// None of a function of an unknown kind.
    types: Option<Types>,
    pub(crate) schemas: checks::Schemas,
    #[cfg(feature = "arrow")]
    pub(crate) arrow: Cache,
}

/// The types of a function. They are also the identity of its batches.
#[derive(Clone, Copy)]
pub(crate) struct Types {
    pub(crate) arguments: &'static abi::ArrowSchema,
    pub(crate) returns: &'static abi::ArrowSchema,
}

impl Described {
    pub(crate) fn new(number: u32, function: &abi::Function) -> std::result::Result<Self, String> {
        let name = name(function.name)?;
        let kind = match function.kind {
            abi::SYNC => FunctionKind::Sync,
            abi::ASYNC => FunctionKind::Async,
            other => return Ok(Described::unknown(number, name, other)),
        };
        // SAFETY: the contract: NULL, or constants of the plugin.
        let (arguments, returns) = unsafe { (function.arguments.as_ref(), function.returns.as_ref()) };
        let (Some(arguments), Some(returns)) = (arguments, returns) else {
            return Err(format!("function {name} has no types"));
        };
        checks::schema(arguments, 0).and_then(|()| checks::schema(returns, 0)).map_err(|why| format!("function {name}: {why}"))?;
        if text(arguments.format)? != "+s" {
            return Err(format!("the arguments of function {name} are no struct"));
        }
        Ok(Described {
            number,
            name,
            kind,
            volatility: match function.volatility {
                abi::IMMUTABLE => Some(Volatility::Immutable),
                abi::STABLE => Some(Volatility::Stable),
                abi::VOLATILE => Some(Volatility::Volatile),
                _ => None,
            },
            constants: if kind == FunctionKind::Sync { function.constants } else { 0 },
            documentation: if function.documentation.is_null() { None } else { Some(text(function.documentation)?) },
            types: Some(Types { arguments, returns }),
            schemas: Default::default(),
            #[cfg(feature = "arrow")]
            arrow: Default::default(),
        })
    }

    #[cfg(feature = "arrow")]
    pub(crate) fn arrow_types(&self) -> Result<&crate::arrow_types::ArrowTypes> {
        let types = self.types()?;
        self.arrow.types(self.name, types.arguments, types.returns)
    }

    /// An error for one of a kind that this host cannot call.
    pub(crate) fn types(&self) -> Result<Types> {
        self.types.ok_or_else(|| {
            let FunctionKind::Unknown(kind) = self.kind else { unreachable!("functions of a known kind have types") };
            let text = format!("function {} has kind {kind}, which this host cannot call", self.name);
            Error::new(ErrorKind::NotImplemented, text)
        })
    }

    fn unknown(number: u32, name: &'static str, kind: u32) -> Self {
        let kind = FunctionKind::Unknown(kind);
        Described {
            number,
            name,
            kind,
            volatility: None,
            documentation: None,
            constants: 0,
            types: None,
            schemas: Default::default(),
            #[cfg(feature = "arrow")]
            arrow: Default::default(),
        }
    }
}
