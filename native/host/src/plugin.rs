//! Plugins, and what they say of themselves.

use std::path::Path;
use std::sync::Arc;

use arroyo_udf_abi as abi;
use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};

use crate::checks::{self, known, name, text};
use crate::instance::{Instance, Isolation};
use crate::runtime::Runtime;
use crate::{error, Batch, BatchContext, Error, ErrorKind, Options, Result, Results};

// Not in libloading. A plugin is never unloaded: its threads and release callbacks may outlive every handle.
const RTLD_NODELETE: i32 = 0x1000;

/// A loaded library. It stays loaded until the process ends, so everything that it says of itself lives as long.
#[derive(Clone)]
pub struct Plugin {
    table: Table,
    name: &'static str,
    language: &'static str,
    on_error: OnError,
    functions: Arc<[Arc<Described>]>,
}

impl Plugin {
    /// Loads a library, and checks its table and descriptor. Runs no user code.
    pub fn open(path: impl AsRef<Path>) -> Result<Plugin> {
        let path = path.as_ref();
        let (table, on_error) = Table::load(path).map_err(|text| Error::new(ErrorKind::Load, format!("{}: {text}", path.display())))?;
        let broken = |text: String| Error::new(ErrorKind::Load, format!("{}: the descriptor breaks the contract: {text}", path.display()));
        // SAFETY: a slot of version 1 of a checked table.
        let descriptor = known(unsafe { ((*table.0).describe)() }, abi::DESCRIPTOR_SIZE_1).map_err(broken)?;
        let n_functions =
            u32::try_from(descriptor.n_functions).map_err(|_| broken(format!("it has {} functions", descriptor.n_functions)))?;
        if n_functions > 0 && descriptor.functions.is_null() {
            return Err(broken("its functions are NULL".into()));
        }
        let functions = (0..n_functions).map(|number| {
            // SAFETY: the contract: n_functions pointers.
            let function = known(unsafe { *descriptor.functions.add(number as usize) }, abi::FUNCTION_SIZE_1)?;
            Described::new(number, &function).map(Arc::new)
        });
        let functions = functions.collect::<std::result::Result<Vec<_>, _>>().map_err(broken)?;
        if let Some(twice) = functions.iter().enumerate().find(|(i, one)| functions[..*i].iter().any(|other| other.name == one.name)) {
            return Err(broken(format!("two functions have the name {}", twice.1.name)));
        }
        Ok(Plugin {
            table,
            name: name(descriptor.name).map_err(broken)?,
            language: text(descriptor.language).map_err(broken)?,
            on_error,
            functions: functions.into(),
        })
    }

    /// For messages.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// `"python"`, `"rust"` or `"c"`.
    pub fn language(&self) -> &'static str {
        self.language
    }

    /// All functions, also those that this host cannot call.
    pub fn functions(&self) -> impl Iterator<Item = Function> + '_ {
        self.functions_of(None)
    }

    /// The function of this name.
    pub fn function(&self, name: &str) -> Result<Function> {
        self.function_of(None, name)
    }

    /// The same functions in workers.
    pub fn isolated(&self, isolation: &Isolation) -> Result<Instance> {
        Instance::open(self, isolation)
    }

    pub(crate) fn table(&self) -> Table {
        self.table
    }

    pub(crate) fn functions_of(&self, instance: Option<&Instance>) -> impl Iterator<Item = Function> + '_ {
        let instance = instance.cloned();
        self.functions.iter().map(move |described| {
            let (table, number) = match &instance {
                None => (self.table, described.number),
                Some(instance) => instance.place_of(described.number),
            };
            Function { table, number, described: described.clone(), plugin: self.name, on_error: self.on_error, instance: instance.clone() }
        })
    }

    pub(crate) fn function_of(&self, instance: Option<&Instance>, name: &str) -> Result<Function> {
        let mut functions = self.functions_of(instance);
        functions.find(|function| function.name() == name).ok_or_else(|| {
            let names: Vec<&str> = self.functions.iter().map(|described| described.name).collect();
            let text = format!("plugin {} has no function {name}: it has {}", self.name, names.join(", "));
            Error::new(ErrorKind::InvalidArgument, text)
        })
    }
}

/// How a host calls a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FunctionKind {
    /// [`Function::run`].
    Sync,
    /// [`Function::start`].
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
    number: u32,
    pub(crate) name: &'static str,
    kind: FunctionKind,
    volatility: Option<Volatility>,
    documentation: Option<&'static str>,
    /// None of a function of an unknown kind.
    pub(crate) types: Option<Types>,
    pub(crate) schemas: checks::Schemas,
    #[cfg(feature = "arrow")]
    pub(crate) arrow: crate::rows::Cache,
}

/// The types of a function. They are also the identity of its batches.
#[derive(Clone, Copy)]
pub(crate) struct Types {
    pub(crate) arguments: &'static abi::ArrowSchema,
    pub(crate) returns: &'static abi::ArrowSchema,
}

impl Described {
    fn new(number: u32, function: &abi::Function) -> std::result::Result<Self, String> {
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
            documentation: if function.documentation.is_null() { None } else { Some(text(function.documentation)?) },
            types: Some(Types { arguments, returns }),
            schemas: Default::default(),
            #[cfg(feature = "arrow")]
            arrow: Default::default(),
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
            types: None,
            schemas: Default::default(),
            #[cfg(feature = "arrow")]
            arrow: Default::default(),
        }
    }
}

/// A function of a plugin, or of its instance in workers. Clones are the same function.
#[derive(Clone)]
pub struct Function {
    table: Table,
    number: u32,
    pub(crate) described: Arc<Described>,
    plugin: &'static str,
    on_error: OnError,
    /// Keeps the workers.
    instance: Option<Instance>,
}

impl Function {
    /// Its name in the plugin.
    pub fn name(&self) -> &'static str {
        self.described.name
    }

    /// The name of its plugin.
    pub fn plugin(&self) -> &'static str {
        self.plugin
    }

    /// How it is called.
    pub fn kind(&self) -> FunctionKind {
        self.described.kind
    }

    /// What its results depend on, if its author has said so.
    pub fn volatility(&self) -> Option<Volatility> {
        self.described.volatility
    }

    /// Its author's text.
    pub fn documentation(&self) -> Option<&'static str> {
        self.described.documentation
    }

    /// What a failed row does to a query, as the library was built (`arroyo-udf build --on-error`); an engine may decide
    /// otherwise.
    pub fn on_error(&self) -> OnError {
        self.on_error
    }

    /// Whether it runs in workers.
    pub fn is_isolated(&self) -> bool {
        self.instance.is_some()
    }

    /// The schemas of its arguments, a struct, and of a value, for another library of Arrow. Nobody releases them.
    pub fn schemas(&self) -> Result<(&'static abi::ArrowSchema, &'static abi::ArrowSchema)> {
        self.types().map(|types| (types.arguments, types.returns))
    }

    /// Rows for one call, from another library of Arrow.
    ///
    /// # Safety
    /// `array` is a valid struct array of the schema of the arguments, and from here on nobody else releases it.
    pub unsafe fn batch_from_raw(&self, array: abi::ArrowArray) -> Result<Batch> {
        // SAFETY: the caller's promise.
        self.types().map(|types| unsafe { Batch::new(array, types) })
    }

    /// Calls a sync function for a batch. Waits; a function in Python takes the interpreter's lock.
    ///
    /// A row that fails is no failed call: see [`Results`].
    pub fn run(&self, batch: Batch) -> Result<Results> {
        self.run_with(batch, &BatchContext::default())
    }

    /// The same, with what is true of the batch's rows.
    pub fn run_with(&self, mut batch: Batch, context: &BatchContext) -> Result<Results> {
        batch.check_types(self.types()?, self.name())?;
        let n_rows = batch.len();
        let mut results = Results::none(&self.described);
        context.with(n_rows, |context| {
            error::check(self.name(), &[abi::OK], |error| {
                let (rows, schema) = results.places();
                // SAFETY: the contract of `run`: the batch has the function's types, and all pointers are to locals. On OK
                // the plugin has taken the batch, and its `release` is NULL; else the batch is dropped here.
                unsafe { ((*self.table.0).run)(self.number, batch.raw_mut(), context, rows, schema, error) }
            })
        })?;
        batch.taken(self.name())?;
        let results = results.checked()?;
        if results.len() != n_rows {
            return Err(error::broken(self.name(), &format!("it answered {} rows for {n_rows}", results.len())));
        }
        Ok(results)
    }

    /// Starts an async function. Waits until the init of its Context has returned.
    pub fn start(&self, options: &Options) -> Result<Runtime> {
        let types = self.types()?;
        let (mut handle, options) = (0, options.raw());
        // SAFETY: the contract of `start`; all pointers are to locals.
        error::check(self.name(), &[abi::OK], |error| unsafe { ((*self.table.0).start)(self.number, &options, &mut handle, error) })?;
        if handle == 0 {
            return Err(error::broken(self.name(), "it answered no handle"));
        }
        Ok(Runtime::new(self.clone(), types, handle))
    }

    pub(crate) fn table(&self) -> Table {
        self.table
    }

    pub(crate) fn types(&self) -> Result<Types> {
        self.described.types.ok_or_else(|| {
            let FunctionKind::Unknown(kind) = self.kind() else { unreachable!("functions of a known kind have types") };
            let text = format!("function {} has kind {kind}, which this host cannot call", self.name());
            Error::new(ErrorKind::NotImplemented, text)
        })
    }
}

/// A checked table. A pointer, because a table may be larger than the mirror, and the mirror than the table.
#[derive(Clone, Copy)]
pub(crate) struct Table(pub(crate) *const abi::Table);

// SAFETY: the table is a constant of a library that is never unloaded, and any thread may call any slot.
unsafe impl Send for Table {}
// SAFETY: as above.
unsafe impl Sync for Table {}

impl Table {
    fn load(path: &Path) -> std::result::Result<(Table, OnError), String> {
        // A name without a slash would be looked for in the system's folders of libraries.
        let path = if path.components().count() == 1 { &Path::new(".").join(path) } else { path };
        // SAFETY: loading runs the library's constructors, which are harmless in a plugin.
        let library = unsafe { Library::open(Some(path), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE) };
        let library = library.map_err(|error| format!("it cannot be loaded: {error}"))?;
        // SAFETY: the symbol is a constant; its fields are checked one by one below.
        let table = unsafe { library.get::<*const abi::Table>(b"arroyo_udf_plugin\0") };
        let table: *const abi::Table = *table.map_err(|_| "not a plugin: it has no symbol arroyo_udf_plugin")?;
        // SAFETY: the first 16 bytes of the table are the same in all versions. No reference to the whole table yet.
        let (magic, version, size) = unsafe { ((*table).magic, (*table).abi_version, u64::from((*table).table_size)) };
        if magic != abi::MAGIC {
            return Err("not a plugin, or built before ABI version 1 was final (build it again): its table does not begin with the \
                magic number"
                .into());
        }
        if version != abi::ABI_VERSION {
            return Err(format!("it has ABI version {version}, this host has {}: build it again", abi::ABI_VERSION));
        }
        if size < abi::TABLE_SIZE_1 {
            return Err(format!("its table is truncated: it has {size} bytes, this host needs {}", abi::TABLE_SIZE_1));
        }
        // SAFETY: only the presence of the symbol counts.
        let nulls = unsafe { library.get::<*const u8>(b"arroyo_udf_on_error_null\0") }.is_ok();
        Ok((Table(table), if nulls { OnError::Null } else { OnError::Fail }))
    }
}
