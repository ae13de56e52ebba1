//! What proves the machine: `simulation.rs` has it agree with `model.rs` in random schedules, `cases.rs` shows single rules.

mod cases;
mod model;
mod simulation;
