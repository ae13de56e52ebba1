//! A function over a column of texts.
//!
//! Guarantees: an answer for each row; null rows answer null, except that `json_contains` says false of null texts. Answers of texts are at
//! most as long as the texts, so that 32-bit offsets hold them.
//!
//! Assumes UTF-8 in the texts, as Arrow promises: what is cut from them at quotes, brackets and numbers is UTF-8, too.

use crate::json::{self, Path, Step};
use arroyo_udf_plugin::arrow::{ArrayData, Buffer, Column, Validity};

/// A function with the path that it was given.
#[derive(Debug)]
pub enum Function {
    /// By keys.
    Keys(ByKeys, Vec<Step>),
    /// By JSONPath.
    Path(ByPath, Path),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ByKeys {
    Value,
    Raw,
    AsText,
    Str,
    Int,
    Float,
    Bool,
    Array,
    Length,
    Contains,
    ObjectKeys,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ByPath {
    First,
    FirstString,
    All,
}

/// The last step of a path, which each row has itself.
pub enum Last<'a> {
    None,
    Key(&'a Column),
    Index(&'a Column),
}

impl ByKeys {
    /// By the name in SQL.
    pub fn named(name: &str) -> Option<ByKeys> {
        Some(match name {
            "json_get" => ByKeys::Value,
            "json_get_json" => ByKeys::Raw,
            "json_as_text" => ByKeys::AsText,
            "json_get_str" => ByKeys::Str,
            "json_get_int" => ByKeys::Int,
            "json_get_float" => ByKeys::Float,
            "json_get_bool" => ByKeys::Bool,
            "json_get_array" => ByKeys::Array,
            "json_length" => ByKeys::Length,
            "json_contains" => ByKeys::Contains,
            "json_object_keys" => ByKeys::ObjectKeys,
            _ => return None,
        })
    }
}

impl ByPath {
    /// By the name in SQL.
    pub fn named(name: &str) -> Option<ByPath> {
        Some(match name {
            "get_first_json_object" => ByPath::First,
            "extract_json_string" => ByPath::FirstString,
            "extract_json" => ByPath::All,
            _ => return None,
        })
    }
}

impl Function {
    /// The answers for the rows of a column of texts. last: only for a function by keys.
    pub fn run(&self, texts: &Column, rows: usize, last: &Last) -> ArrayData {
        match self {
            Function::Keys(what, path) => Rows { texts, rows, path, last }.by_keys(*what),
            Function::Path(what, path) => by_path(*what, path, texts, rows),
        }
    }
}

struct Rows<'a> {
    texts: &'a Column,
    rows: usize,
    path: &'a [Step],
    last: &'a Last<'a>,
}

impl Rows<'_> {
    fn by_keys(&self, what: ByKeys) -> ArrayData {
        match what {
            ByKeys::Value => self.texts(|text, path, scratch, out| put(json::value(text, path, scratch), out)),
            ByKeys::Raw => self.texts(|text, path, scratch, out| put(json::raw(text, path, scratch), out)),
            ByKeys::AsText => self.texts(json::as_text),
            ByKeys::Str => self.texts(json::string),
            ByKeys::Int => self.numbers(json::int),
            ByKeys::Float => self.numbers(json::float),
            ByKeys::Length => self.numbers(json::length),
            ByKeys::Bool => self.booleans(json::boolean, None),
            ByKeys::Contains => self.booleans(json::contains, Some(false)),
            ByKeys::Array => {
                self.lists(|text, path, scratch, items| json::array(text, path, scratch, |item| items.push(|out| put(Some(item), out))))
            }
            ByKeys::ObjectKeys => {
                self.lists(|text, path, scratch, items| json::keys_of(text, path, scratch, |key| items.push(|out| put(Some(key), out))))
            }
        }
    }

    /// Calls `each` for each row, with None for one that has no text, or lacks its own step; and whether it has the step.
    #[inline]
    fn each(&self, mut each: impl FnMut(Option<(&[u8], &[Step])>, bool)) {
        let Last::None = self.last else {
            let mut path = self.path.to_vec();
            for row in 0..self.rows {
                path.truncate(self.path.len());
                path.extend(self.step(row));
                let has_step = path.len() > self.path.len();
                each(text_of(self.texts, row).filter(|_| has_step).map(|text| (text, &path[..])), has_step);
            }
            return;
        };
        for row in 0..self.rows {
            each(text_of(self.texts, row).map(|text| (text, self.path)), true);
        }
    }

    fn step(&self, row: usize) -> Option<Step> {
        match self.last {
            Last::Key(keys) => text_of(keys, row).map(|key| Step::Key(key.into())),
            Last::Index(indices) => indices.is_valid(row).then(|| Step::Index(indices.fixed(row))),
            Last::None => None,
        }
    }

    fn texts(&self, write: impl Fn(&[u8], &[Step], &mut Vec<u8>, &mut Vec<u8>) -> bool) -> ArrayData {
        let (mut answers, mut scratch) = (Texts::new(self.rows), Vec::new());
        self.each(|row, _| {
            answers.push(|out| row.is_some_and(|(text, path)| write(text, path, &mut scratch, out)));
        });
        answers.finish()
    }

    fn numbers<T: Default + Send + 'static>(&self, read: impl Fn(&[u8], &[Step], &mut Vec<u8>) -> Option<T>) -> ArrayData {
        let (mut validity, mut values, mut scratch) = (Validity::with_capacity(self.rows), Vec::with_capacity(self.rows), Vec::new());
        self.each(|row, _| {
            let value = row.and_then(|(text, path)| read(text, path, &mut scratch));
            validity.push(value.is_some());
            values.push(value.unwrap_or_default());
        });
        finish(validity, vec![values.into()])
    }

    fn booleans(&self, read: impl Fn(&[u8], &[Step], &mut Vec<u8>) -> Option<bool>, of_null: Option<bool>) -> ArrayData {
        let (mut validity, mut values) = (Validity::with_capacity(self.rows), Validity::with_capacity(self.rows));
        let mut scratch = Vec::new();
        self.each(|row, has_step| {
            let value = row.map_or(of_null.filter(|_| has_step), |(text, path)| read(text, path, &mut scratch));
            validity.push(value.is_some());
            values.push(value.unwrap_or_default());
        });
        finish(validity, vec![values.into_bits()])
    }

    fn lists(&self, write: impl Fn(&[u8], &[Step], &mut Vec<u8>, &mut Texts) -> bool) -> ArrayData {
        let (mut answers, mut scratch) = (Lists::new(self.rows), Vec::new());
        self.each(|row, _| answers.push(|items| row.is_some_and(|(text, path)| write(text, path, &mut scratch, items))));
        answers.finish()
    }
}

fn by_path(what: ByPath, path: &Path, texts: &Column, rows: usize) -> ArrayData {
    if what == ByPath::All {
        let mut answers = Lists::new(rows);
        for row in 0..rows {
            answers.push(|items| {
                let compact = |value| {
                    items.push(|out| {
                        json::append_compact(value, out);
                        true
                    });
                };
                text_of(texts, row).is_some_and(|text| json::query(text, path, compact))
            });
        }
        return answers.finish();
    }
    let write = if what == ByPath::First { json::first } else { json::first_string };
    let mut answers = Texts::new(rows);
    for row in 0..rows {
        answers.push(|out| text_of(texts, row).is_some_and(|text| write(text, path, out)));
    }
    answers.finish()
}

/// None: it is null. (Offsets that are no range are no text either.)
#[inline]
fn text_of(column: &Column, row: usize) -> Option<&[u8]> {
    column.is_valid(row).then(|| column.bytes(row)).flatten()
}

#[inline]
fn put(text: Option<&[u8]>, out: &mut Vec<u8>) -> bool {
    out.extend_from_slice(text.unwrap_or_default());
    text.is_some()
}

/// A column of texts under construction.
struct Texts {
    validity: Validity,
    offsets: Vec<i32>,
    data: Vec<u8>,
}

impl Texts {
    fn new(rows: usize) -> Texts {
        let mut offsets = Vec::with_capacity(rows + 1);
        offsets.push(0);
        Texts { validity: Validity::with_capacity(rows), offsets, data: Vec::new() }
    }

    /// A row: what `write` appends, if it answers true.
    #[inline]
    fn push(&mut self, write: impl FnOnce(&mut Vec<u8>) -> bool) {
        let valid = write(&mut self.data);
        self.validity.push(valid);
        self.offsets.push(self.data.len() as i32);
    }

    fn finish(self) -> ArrayData {
        finish(self.validity, vec![self.offsets.into(), self.data.into()])
    }
}

/// A column of lists of texts under construction.
struct Lists {
    validity: Validity,
    offsets: Vec<i32>,
    items: Texts,
}

impl Lists {
    fn new(rows: usize) -> Lists {
        let mut offsets = Vec::with_capacity(rows + 1);
        offsets.push(0);
        Lists { validity: Validity::with_capacity(rows), offsets, items: Texts::new(0) }
    }

    /// A row: the items that `write` pushes; if it answers false, it has pushed none, and the list is null.
    fn push(&mut self, write: impl FnOnce(&mut Texts) -> bool) {
        let valid = write(&mut self.items);
        self.validity.push(valid);
        self.offsets.push(self.items.validity.len() as i32);
    }

    fn finish(self) -> ArrayData {
        let mut lists = finish(self.validity, vec![self.offsets.into()]);
        lists.children.push(self.items.finish().export());
        lists
    }
}

fn finish(validity: Validity, values: Vec<Buffer>) -> ArrayData {
    let (length, null_count) = (validity.len(), validity.nulls());
    let buffers = std::iter::once(validity.into_buffer()).chain(values).collect();
    ArrayData { length, null_count, buffers, children: vec![] }
}
