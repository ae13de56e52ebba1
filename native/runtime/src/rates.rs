//! The budgets of rate of this process (R22). All started functions of one name and one rate share one: the slices of a
//! pipeline, and a function that is started again. A budget stays for good, so that a start after a stop does not begin anew.

use crate::machine::{Pace, Rate};
use crate::sync::Unpoisoned;
use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex};

type Budgets = HashMap<(String, Rate), Arc<Pace>>;

static BUDGETS: LazyLock<Mutex<Budgets>> = LazyLock::new(Mutex::default);

/// The budget that functions of this name share.
pub fn shared(name: &str, rate: Rate) -> Arc<Pace> {
    let mut budgets = BUDGETS.lock().unpoisoned();
    Arc::clone(budgets.entry((name.into(), rate)).or_insert_with(|| Arc::new(Pace::new(rate))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r22_a_budget_is_of_a_name_and_a_rate() {
        let (slow, fast) = (Rate { starts: 1, window: 1 }, Rate { starts: 2, window: 1 });
        let first = shared("rates.f", slow);
        assert!(Arc::ptr_eq(&first, &shared("rates.f", slow)));
        assert!(!Arc::ptr_eq(&first, &shared("rates.g", slow)));
        assert!(!Arc::ptr_eq(&first, &shared("rates.f", fast)));
    }
}
