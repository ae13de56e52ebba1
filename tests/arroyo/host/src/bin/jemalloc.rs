//! The same host with jemalloc for the whole process, like the Arroyo worker.

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() {
    arroyo_test_host::main();
}
