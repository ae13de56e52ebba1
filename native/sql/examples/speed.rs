//! How long paths take over 8,192 texts of some 200 bytes, against a plain loop over their bytes that finds where strings
//! begin and end: `cargo run --release -p arroyo-udf-sql --example speed`. CPU time, the best of 50.

use arroyo_udf_sql::json::{as_text, first, value, Path, Step};
use std::hint::black_box;

fn document(n: usize) -> String {
    format!(
        r#"{{"icao": "a{n:05x}", "callsign": "DAL{n}", "alt": {}, "speed": {:.1}, "on_ground": {}, "position": {{"lat": {:.4}, "lon": -{:.4}}}, "tags": ["x", "y"], "note": "a \"quoted\" word", "seen": 1384{n}, "dest": "JFK{}"}}"#,
        n * 37 % 40000,
        n as f64 * 0.7,
        n % 3 == 0,
        n as f64 / 300.0,
        n as f64 / 200.0,
        n % 10
    )
}

/// Bytes inside strings.
fn plain(text: &[u8]) -> usize {
    let (mut inside, mut escaped, mut count) = (false, false, 0);
    for &byte in text {
        let quote = byte == b'"' && !escaped;
        escaped = byte == b'\\' && !escaped;
        inside ^= quote;
        count += usize::from(inside);
    }
    count
}

fn cpu_milliseconds(mut run: impl FnMut() -> usize) -> f64 {
    let now = || {
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: the kernel writes into the struct.
        unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
        time.tv_sec as f64 * 1e3 + time.tv_nsec as f64 / 1e6
    };
    let once = |run: &mut dyn FnMut() -> usize| {
        let begin = now();
        black_box(run());
        now() - begin
    };
    (0..50).map(|_| once(&mut run)).fold(f64::MAX, f64::min)
}

fn main() {
    let texts: Vec<String> = (0..8192).map(document).collect();
    println!("{} bytes each", texts.iter().map(String::len).sum::<usize>() / texts.len());
    let reference = cpu_milliseconds(|| texts.iter().filter(|text| plain(text.as_bytes()) > 0).count());
    println!("plain loop {reference:.2} ms");
    for path in [&["callsign"][..], &["position", "lon"], &["dest"], &["none"]] {
        let steps: Vec<Step> = path.iter().map(|key| Step::Key(key.as_bytes().into())).collect();
        let mut scratch = Vec::new();
        let cut = cpu_milliseconds(|| texts.iter().filter(|text| value(text.as_bytes(), &steps, &mut scratch).is_some()).count());
        let mut out = Vec::new();
        let told = cpu_milliseconds(|| {
            out.clear();
            texts.iter().filter(|text| as_text(text.as_bytes(), &steps, &mut scratch, &mut out)).count()
        });
        let by_path = Path::read(&format!("$.{}", path.join("."))).unwrap();
        let found = cpu_milliseconds(|| {
            out.clear();
            texts.iter().filter(|text| first(text.as_bytes(), &by_path, &mut out)).count()
        });
        println!("{}: get_first_json_object {found:.2} ms ({:.2})", path.join("."), found / reference);
        println!("{}: -> {cut:.2} ms ({:.2}), ->> {told:.2} ms ({:.2})", path.join("."), cut / reference, told / reference);
    }
}
