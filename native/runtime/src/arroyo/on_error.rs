//! Rows that failed, for an interface that has no place for them: the policy, and the texts.

/// What happens to a row that failed or timed out.
#[repr(u32)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnError {
    /// Its text goes to standard error, once, and the host's job ends.
    Fail = 0,
    /// Its value is null.
    Null = 1,
}

impl OnError {
    /// The policy by its name in a build.
    ///
    /// # Panics
    /// For another name; in a constant, that is a compiler error.
    pub const fn named(word: &str) -> OnError {
        match word.as_bytes() {
            b"fail" => OnError::Fail,
            b"null" => OnError::Null,
            _ => panic!("on_error is \"fail\" or \"null\""),
        }
    }
}

/// Reports an error to standard error: the interface has no other way to the host.
pub fn report(text: &str) {
    eprintln!("arroyo-udf: {text}");
}
