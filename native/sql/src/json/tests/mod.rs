//! What is answered, case by case, and against serde_json.

mod cases;
mod properties;
