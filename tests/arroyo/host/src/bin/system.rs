//! The host with the system's allocator.

fn main() {
    arroyo_test_host::main();
}
