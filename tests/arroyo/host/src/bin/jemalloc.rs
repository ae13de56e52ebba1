//! The same host with jemalloc for everything in the process, as the Arroyo worker has it.

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() {
    arroyo_test_host::main();
}
