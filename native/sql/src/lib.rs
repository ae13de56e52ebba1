//! Functions of SQL that DataFusion lacks, over Arrow arrays.
//!
//! | module     | what it is for                                                         |
//! |------------|------------------------------------------------------------------------|
//! | [`json`]   | one JSON text: reading it, finding a value, answers; lines as rows     |
//! | [`column`] | a column of texts -> a column of answers                               |
//! | [`hash`]   | columns -> a column of hashes                                          |
//!
//! Modules use only those above them.
//!
//! Guarantees: a document costs no memory but that of the answer, however deep it is. A text that is no JSON answers null
//! and is no error.

pub mod column;
pub mod hash;
pub mod json;
