//! Structs of the contract that begin with their size. The other side may have an older or a newer header, so its struct may
//! be smaller or larger than this library knows it: only the part that both know is read or filled in.
//!
//! Guarantees: a struct is not read or written beyond its size, and no reference to it is made; one that is smaller than in
//! version 1 is left alone.

use arroyo_udf_abi as abi;

/// Larger than any struct of the contract: a larger size was never initialised.
const MOST: u64 = 1 << 16;

/// A struct of the contract that may grow.
///
/// # Safety
/// It begins with its size as a u64, and all its fields may be zero.
pub unsafe trait Grows: Copy {
    const NAME: &'static str;
    /// Its size in version 1.
    const SIZE_1: u64;
}

macro_rules! grows {
    ($($name:ident, $text:literal, $size:ident;)*) => {$(
        // SAFETY: numbers, pointers and optional functions, after the size.
        unsafe impl Grows for abi::$name {
            const NAME: &'static str = $text;
            const SIZE_1: u64 = abi::$size;
        }
        const _: () = assert!(size_of::<abi::$name>() as u64 >= abi::$size && size_of::<abi::$name>() as u64 <= MOST);
    )*};
}

grows! {
    Error, "error", ERROR_SIZE_1;
    Options, "options", OPTIONS_SIZE_1;
    Function, "function", FUNCTION_SIZE_1;
    Descriptor, "descriptor", DESCRIPTOR_SIZE_1;
    BatchContext, "batch context", BATCH_CONTEXT_SIZE_1;
    Statistics, "statistics", STATISTICS_SIZE_1;
    Log, "log", LOG_SIZE_1;
    IsolationOptions, "isolation options", ISOLATION_OPTIONS_SIZE_1;
    Instance, "instance", INSTANCE_SIZE_1;
}

/// The size that a struct states. The error is a text for the host.
///
/// # Safety
/// `of` points to a struct of the size that it states, or at least to that size.
pub unsafe fn size<T: Grows>(of: *const T) -> Result<u64, String> {
    // SAFETY: the struct begins with its size.
    let size = unsafe { of.cast::<u64>().read() };
    if (T::SIZE_1..=MOST).contains(&size) {
        return Ok(size);
    }
    Err(format!("{} of size {size}, where version {} has {}; set `size`", T::NAME, abi::ABI_VERSION, T::SIZE_1))
}

/// The part of a struct that this library knows; what the struct lacks is zero. Its size stays as stated.
///
/// # Safety
/// As for [`size`].
pub unsafe fn read<T: Grows>(from: *const T) -> Result<T, String> {
    // SAFETY: passed on.
    let size = unsafe { size(from) }?;
    let mut known = std::mem::MaybeUninit::<T>::zeroed();
    // SAFETY: `size` bytes may be read, and `known` has room for as many as are copied. Zero is valid in all fields.
    unsafe {
        std::ptr::copy_nonoverlapping(from.cast::<u8>(), known.as_mut_ptr().cast(), (size as usize).min(size_of::<T>()));
        Ok(known.assume_init())
    }
}

/// As [`read`], for options. Those of a later header are larger; they are accepted if all bytes that this library does not
/// know are 0, which means: not chosen.
///
/// # Safety
/// As for [`size`].
pub unsafe fn read_options<T: Grows>(from: *const T) -> Result<T, String> {
    // SAFETY: passed on. The struct has the size that it states.
    let (known, beyond) = unsafe {
        let (known, size) = (read(from)?, size(from)? as usize);
        let beyond = from.cast::<u8>().wrapping_add(size_of::<T>());
        (known, std::slice::from_raw_parts(beyond, size.saturating_sub(size_of::<T>())))
    };
    if beyond.iter().any(|&byte| byte != 0) {
        return Err(
            "an option of a later version is chosen, unknown to this plugin: build the plugin again, or leave the option out".into()
        );
    }
    Ok(known)
}

/// Fills in the part of a struct that both sides know, all but its size. Returns how many bytes that are, with the size.
///
/// # Safety
/// As for [`size`], and the struct may be written.
pub unsafe fn write<T: Grows>(value: &T, to: *mut T) -> Result<u64, String> {
    // SAFETY: passed on.
    let filled = unsafe { size(to) }?.min(size_of::<T>() as u64);
    let own = size_of::<u64>();
    let from: *const T = value;
    // SAFETY: both structs have `filled` bytes.
    unsafe { std::ptr::copy_nonoverlapping(from.cast::<u8>().add(own), to.cast::<u8>().add(own), filled as usize - own) };
    Ok(filled)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[repr(C)]
    struct Later {
        known: abi::BatchContext,
        more: [u64; 2],
    }

    fn context(size: u64) -> abi::BatchContext {
        abi::BatchContext { size, deadline_ns: 7, trace_parent: c"x".as_ptr(), idempotency_keys: std::ptr::null(), constants: 0 }
    }

    #[test]
    fn a_larger_struct_is_read_and_filled_as_far_as_it_is_known() {
        let mut later = Later { known: context(size_of::<Later>() as u64), more: [1, 2] };
        let at: *mut abi::BatchContext = (&raw mut later).cast();
        // SAFETY: a struct of the size that it states.
        let (read, filled) = unsafe { (read(at), write(&abi::BatchContext { deadline_ns: 9, ..context(0) }, at)) };
        assert_eq!(read.map(|read| (read.size, read.deadline_ns)), Ok((56, 7)));
        assert_eq!((filled, later.known.size, later.known.deadline_ns, later.more), (Ok(40), 56, 9, [1, 2]));
    }

    #[test]
    fn a_size_that_no_version_has_is_refused_and_nothing_is_touched() {
        for size in [0, 8, 23, MOST + 1, u64::MAX] {
            let mut one = context(size);
            // SAFETY: the size is read, and nothing beyond it, because it is refused.
            let (read, filled) = unsafe { (read(&one).map(|_| ()), write(&context(24), &mut one)) };
            let text = format!("batch context of size {size}, where version 1 has 24; set `size`");
            assert_eq!((read, filled, one.size), (Err(text.clone()), Err(text), size));
        }
    }
}
