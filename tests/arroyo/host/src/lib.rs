//! A host for libraries of Arroyo's interface, built like the engine: on the published `arroyo-udf-common`, with `async-ffi`
//! and `dlopen2`. Each run is one command line; results go to stdout, one per line.
//!
//!     HOST call LIBRARY types=i64,string? rows=10 batch=4      sync: "ROW VALUE" or "batch failed"
//!     HOST stream LIBRARY types=i64 rows=10 cap=2 ...          async: "ID VALUE" as they come, then a summary
//!     HOST accepted LIBRARY types=i64 rows=10 cap=2            rows taken before a send is pending, after the first
//!     HOST unpolled LIBRARY types=i64 rows=10                  futures that are dropped without a poll
//!     HOST abandon LIBRARY types=i64 rows=10 how=stop|exit     leaves while rows run
//!     HOST bench LIBRARY types=i64 rows=1000000 cap=1000       CPU and wall time of a row
//!
//! Row n has the values n ("i64") or "r" and n ("string"); in a type that ends in "?" every fifth one is null. `from=`
//! moves n. Several libraries are separated by commas, each with `handles=` handles, each in a thread of its own.
//!
//! It counts the buffers that it lends: the line "lent 0" means that every argument has been released.

mod calls;
mod interface;
mod rows;

use std::collections::HashMap;

/// The command line.
#[derive(Clone)]
pub struct Task {
    pub libraries: Vec<String>,
    options: HashMap<String, String>,
}

impl Task {
    pub fn text<'a>(&'a self, name: &str, default: &'a str) -> &'a str {
        self.options.get(name).map_or(default, String::as_str)
    }

    pub fn number(&self, name: &str, default: u64) -> u64 {
        self.options.get(name).map_or(default, |text| text.parse().expect("a number"))
    }
}

pub fn main() {
    let mut words = std::env::args().skip(1);
    let (command, libraries) = (words.next().expect("a command"), words.next().expect("a library"));
    let task = Task {
        libraries: libraries.split(',').map(String::from).collect(),
        options: words
            .map(|word| {
                let (name, value) = word.split_once('=').expect("NAME=VALUE");
                (name.to_string(), value.to_string())
            })
            .collect(),
    };
    // The stack size of the engine's threads.
    let stack = task.number("stack", 2 << 20) as usize;
    let main = std::thread::Builder::new().stack_size(stack).spawn(move || calls::perform(&command, &task));
    main.expect("a thread").join().expect("no panic");
}
