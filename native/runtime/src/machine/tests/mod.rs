//! Proof of the machine: `simulation.rs` compares it with `model.rs` in random schedules, `cases.rs` tests single rules.

mod cases;
mod model;
mod simulation;
