//! The toolkit's own threads: named, and with the signals that are for them.
//!
//! They block all signals, so that those stay with the host's threads: Python handles signals in the main thread, and a main
//! thread that waits does not learn of one that another thread has got. But whatever an author's code starts inherits the
//! mask, and a program with blocked signals cannot be asked to end. So starts of programs have the host's mask ([`as_host`]),
//! and so have children ([`as_child`]). In a worker process no thread waits for signals: there all threads that run an
//! author's code have the mask of the thread that caused them.

use std::cell::Cell;
use std::io;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::OnceLock;
use std::thread::{Builder, JoinHandle};

/// For a thread that runs an author's code. Larger than a main thread's stack, because C libraries below a Python function
/// may need it. Untouched pages cost no memory.
pub const AUTHORS_STACK: usize = 16 << 20;
/// For a thread that runs the toolkit's code alone.
pub const OWN_STACK: usize = 2 << 20;

/// This process works for a host.
static WORKER: AtomicBool = AtomicBool::new(false);

/// Says that this process is a worker, and that the calling thread works for its host: before its first thread.
pub fn work_for_a_host() {
    begin_work();
    WORKER.store(true, Ordering::Relaxed);
}

/// Whether this process is a worker.
fn is_worker() -> bool {
    WORKER.load(Ordering::Relaxed)
}

/// The mask of the first thread of the host that has caused one of the toolkit's: also for threads that authors start, which
/// inherit the toolkit's mask.
static FIRST_HOSTS_MASK: OnceLock<libc::sigset_t> = OnceLock::new();

/// How many forks lie between this process and the one that has begun to watch.
static FORKS: AtomicU32 = AtomicU32::new(0);

thread_local! {
    /// Of a thread that does the toolkit's work: how many forks there were when it began.
    static BEGUN: Cell<Option<u32>> = const { Cell::new(None) };
    /// Of a thread of the toolkit: the mask of the host's thread that caused it.
    static HOSTS_MASK: Cell<Option<libc::sigset_t>> = const { Cell::new(None) };
}

/// Starts a thread. The name has at most 15 bytes; the stack says whose code it runs.
pub fn spawn(name: &str, stack_bytes: usize, body: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
    let hosts = HOSTS_MASK.get().unwrap_or_else(hosts_mask);
    Builder::new().name(name.into()).stack_size(stack_bytes).spawn(move || {
        HOSTS_MASK.set(Some(hosts));
        begin_work();
        if stack_bytes != OWN_STACK && is_worker() {
            set_mask(&hosts);
        } else {
            block_signals();
        }
        body();
    })
}

/// Makes the calling thread one of the toolkit's, which runs an author's code. It was started by a thread that has such a
/// mask, in another way than by [`spawn`].
pub fn adopt() {
    HOSTS_MASK.set(Some(hosts_mask()));
    begin_work();
    if !is_worker() {
        block_signals();
    }
}

/// The mask of the calling thread; of a thread that has inherited the toolkit's, the host's.
fn hosts_mask() -> libc::sigset_t {
    let mask = mask();
    if blocks_as_ours(&mask) {
        FIRST_HOSTS_MASK.get().copied().unwrap_or_else(no_signals)
    } else {
        FIRST_HOSTS_MASK.get_or_init(|| mask);
        mask
    }
}

/// Calls what starts a program: with the host's mask, if this thread blocks signals as the toolkit does.
pub fn as_host<T>(start: impl FnOnce() -> T) -> T {
    let ours = mask();
    if !blocks_as_ours(&ours) {
        return start();
    }
    set_mask(&HOSTS_MASK.get().unwrap_or_else(hosts_mask));
    let result = start();
    set_mask(&ours);
    result
}

/// How many forks there were.
#[inline]
pub fn forks() -> u32 {
    FORKS.load(Ordering::Relaxed)
}

/// How many there were when the calling thread began to do the toolkit's work. None: it does not.
#[inline]
pub fn begun() -> Option<u32> {
    BEGUN.get()
}

#[inline]
pub fn set_begun(forks: Option<u32>) {
    BEGUN.set(forks);
}

fn begin_work() {
    set_begun(Some(forks()));
}

/// Counts the fork, and gives the only thread of a forked child the host's mask, if it has the toolkit's. Takes no lock.
pub fn as_child() {
    FORKS.fetch_add(1, Ordering::Relaxed);
    if blocks_as_ours(&mask()) {
        set_mask(&HOSTS_MASK.get().unwrap_or_else(hosts_mask));
    }
}

fn mask() -> libc::sigset_t {
    let mut mask = MaybeUninit::zeroed();
    // SAFETY: the set is local; the system fills it in.
    unsafe {
        libc::pthread_sigmask(libc::SIG_SETMASK, std::ptr::null(), mask.as_mut_ptr());
        mask.assume_init()
    }
}

fn no_signals() -> libc::sigset_t {
    let mut none = MaybeUninit::uninit();
    // SAFETY: the set is local, and sigemptyset initialises it.
    unsafe {
        libc::sigemptyset(none.as_mut_ptr());
        none.assume_init()
    }
}

/// Whether it is the mask that [`block_signals`] sets. Nobody else blocks just that.
fn blocks_as_ours(mask: &libc::sigset_t) -> bool {
    let others = (1..=31).filter(|signal| ![libc::SIGKILL, libc::SIGSTOP].contains(signal));
    // SAFETY: the set is initialised, and these are signals.
    others.into_iter().all(|signal| (unsafe { libc::sigismember(mask, signal) } == 1) != OWN.contains(&signal))
}

fn set_mask(mask: &libc::sigset_t) {
    // SAFETY: the set is initialised.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, mask, std::ptr::null_mut()) };
}

/// What a mistake of the thread itself causes: blocked, it would end the process without the host's handler.
const OWN: [libc::c_int; 5] = [libc::SIGSEGV, libc::SIGBUS, libc::SIGILL, libc::SIGFPE, libc::SIGTRAP];

/// Blocks the signals of the process for the thread that calls this.
fn block_signals() {
    let mut others = MaybeUninit::uninit();
    // SAFETY: the set is local, and sigfillset initialises it before use.
    let others = unsafe {
        libc::sigfillset(others.as_mut_ptr());
        for signal in OWN {
            libc::sigdelset(others.as_mut_ptr(), signal);
        }
        others.assume_init()
    };
    set_mask(&others);
}
