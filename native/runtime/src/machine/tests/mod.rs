//! Proof of the machine: `simulation.rs` compares it with `model.rs` in random schedules, `cases.rs` tests single rules.
//! `shared.rs` and `shared_cases.rs` do so for rows that share calls, `pace.rs` for machines that share a budget of rate.

mod adaptive;
mod cases;
mod model;
mod pace;
mod shared;
mod shared_cases;
mod simulation;
