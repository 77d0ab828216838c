//! Load over the stock C client, on whatever driver serves a directory. Prints one JSON line.
//!
//!   stock-c-load MODE --dir D [--channel aeron:ipc] [--stream 1001] [--length 32] [--messages 1000000] [--seconds 0]
//!                [--warmup 0] [--batch 256] [--verify 0]
//!
//! pub     offers warmup + messages messages on an exclusive publication, waiting for a subscriber; then closes it.
//! sub     receives them; prints READY once it is subscribed; the time runs from the end of the warm-up to the last message.
//! stream  both, each on a thread and with a client of its own.
//! ping    sends on the stream and waits for each message on stream + 1: round trip times.
//! pong    echoes what comes on the stream to stream + 1.
//! rtt     both on one thread and one client, which spins.
//!
//! --seconds ends the measuring by time instead of by count; pub then goes on until the subscriber has left.
//! Every message begins with its number, which the receiver checks; --verify 1 fills and checks all of it and adds up a
//! checksum that pub and sub print. Message i has the 64-bit word j at 8 j: i * 0x9E3779B97F4A7C15 + j, save word 0, its
//! number. tests/bench/bench_load.c is the same program over our client.

use libaeron_sys::*;
use std::ffi::{c_void, CStr, CString};
use std::process::exit;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::{Duration, Instant};

const TIMEOUT: Duration = Duration::from_secs(60);
const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

#[derive(Clone)]
struct Run {
    mode: String,
    dir: String,
    channel: String,
    stream: i32,
    length: usize,
    messages: i64,
    seconds: f64,
    warmup: i64,
    batch: usize,
    verify: bool,
}

/// The subscriber has measured enough.
static MEASURED: AtomicBool = AtomicBool::new(false);
/// Of a publisher in the same process: what it sent, once it has ended.
static SENT: AtomicI64 = AtomicI64::new(i64::MAX);
/// The subscriber has read all that it will.
static DRAINED: AtomicBool = AtomicBool::new(false);

fn fail(what: &str) -> ! {
    eprintln!("stock-c-load: {what}");
    exit(1);
}

fn aeron_fail(what: &str) -> ! {
    fail(&format!("{what}: {}", unsafe { CStr::from_ptr(aeron_errmsg()) }.to_string_lossy()))
}

struct Client(*mut aeron_t, *mut aeron_context_t);

impl Client {
    fn connect(run: &Run) -> Client {
        let dir = CString::new(run.dir.as_str()).unwrap();
        unsafe {
            let mut context = std::ptr::null_mut();
            let mut client = std::ptr::null_mut();
            if aeron_context_init(&mut context) < 0
                || aeron_context_set_dir(context, dir.as_ptr()) < 0
                || aeron_init(&mut client, context) < 0
                || aeron_start(client) < 0
            {
                aeron_fail("cannot connect");
            }
            Client(client, context)
        }
    }

    fn publication(&self, run: &Run, stream: i32) -> *mut aeron_exclusive_publication_t {
        let channel = CString::new(run.channel.as_str()).unwrap();
        let mut adding = std::ptr::null_mut();
        let mut added = std::ptr::null_mut();
        unsafe {
            if aeron_async_add_exclusive_publication(&mut adding, self.0, channel.as_ptr(), stream) < 0 {
                aeron_fail("cannot publish");
            }
            loop {
                match aeron_async_add_exclusive_publication_poll(&mut added, adding) {
                    0 => std::thread::yield_now(),
                    1 => return added,
                    _ => aeron_fail("cannot publish"),
                }
            }
        }
    }

    fn subscription(&self, run: &Run, stream: i32) -> *mut aeron_subscription_t {
        let channel = CString::new(run.channel.as_str()).unwrap();
        let mut adding = std::ptr::null_mut();
        let mut added = std::ptr::null_mut();
        let none = std::ptr::null_mut();
        unsafe {
            if aeron_async_add_subscription(&mut adding, self.0, channel.as_ptr(), stream, None, none, None, none) < 0 {
                aeron_fail("cannot subscribe");
            }
            loop {
                match aeron_async_add_subscription_poll(&mut added, adding) {
                    0 => std::thread::yield_now(),
                    1 => return added,
                    _ => aeron_fail("cannot subscribe"),
                }
            }
        }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        unsafe {
            aeron_close(self.0);
            aeron_context_close(self.1);
        }
    }
}

/// Writes message `number` and returns the sum of its words.
fn fill(message: &mut [u8], number: i64, verify: bool) -> u64 {
    message[..8].copy_from_slice(&number.to_le_bytes());
    let mut sum = number as u64;
    if verify {
        let seed = (number as u64).wrapping_mul(GOLDEN);
        for (j, word) in message.chunks_exact_mut(8).enumerate().skip(1) {
            let value = seed.wrapping_add(j as u64);
            word.copy_from_slice(&value.to_le_bytes());
            sum = sum.wrapping_add(value);
        }
    }
    sum
}

/// Offers until it is taken. False where the subscriber has left a run that ends by time.
unsafe fn offer(publication: *mut aeron_exclusive_publication_t, message: &[u8], run: &Run, seen: &mut bool, retries: &mut u64) -> bool {
    let mut since: Option<Instant> = None;
    loop {
        let position = aeron_exclusive_publication_offer(
            publication,
            message.as_ptr(),
            message.len(),
            None,
            std::ptr::null_mut(),
        );
        if position >= 0 {
            *seen = true;
            return true;
        }
        *retries += 1;
        let left = *seen && position == i64::from(AERON_PUBLICATION_NOT_CONNECTED);
        if run.seconds > 0.0 && (left || MEASURED.load(Ordering::Relaxed)) {
            return false;
        }
        if position < i64::from(AERON_PUBLICATION_ADMIN_ACTION) {
            fail(&format!("a message was refused with {position}"));
        }
        if *retries & 0xFFF == 0 {
            let now = Instant::now();
            if now - *since.get_or_insert(now) > TIMEOUT {
                fail(&format!("a message was refused for {TIMEOUT:?}, at last with {position}"));
            }
        }
        std::thread::yield_now();
    }
}

fn publish(run: &Run) -> (i64, u64, u64) {
    let client = Client::connect(run);
    let publication = client.publication(run, run.stream);
    let mut message = vec![0u8; run.length];
    let (mut checksum, mut retries, mut sent, mut seen) = (0u64, 0u64, 0i64, false);
    while run.seconds > 0.0 || sent < run.messages + run.warmup {
        let sum = fill(&mut message, sent, run.verify);
        if !unsafe { offer(publication, &message, run, &mut seen, &mut retries) } {
            break;
        }
        checksum = checksum.wrapping_add(sum);
        sent += 1;
    }
    SENT.store(sent, Ordering::SeqCst);
    // A stream that is being read stays open until it is read.
    while run.mode == "stream" && !DRAINED.load(Ordering::Relaxed) {
        std::thread::yield_now();
    }
    unsafe { aeron_exclusive_publication_close(publication, None, std::ptr::null_mut()) };
    (sent, checksum, retries)
}

struct Receiver {
    received: i64,
    warmup: i64,
    length: usize,
    verify: bool,
    checksum: u64,
    begin: Instant,
}

extern "C" fn on_message(context: *mut c_void, data: *const u8, length: usize, _header: *mut aeron_header_t) {
    let receiver = unsafe { &mut *(context as *mut Receiver) };
    let message = unsafe { std::slice::from_raw_parts(data, length) };
    let number = i64::from_le_bytes(message[..8].try_into().unwrap());
    if number != receiver.received || length != receiver.length {
        fail(&format!("message {number} of {length} bytes came where {} was due", receiver.received));
    }
    if receiver.verify {
        let seed = (number as u64).wrapping_mul(GOLDEN);
        receiver.checksum = receiver.checksum.wrapping_add(number as u64);
        for (j, word) in message.chunks_exact(8).enumerate().skip(1) {
            let value = u64::from_le_bytes(word.try_into().unwrap());
            if value != seed.wrapping_add(j as u64) {
                fail(&format!("message {number} is damaged at byte {}", j * 8));
            }
            receiver.checksum = receiver.checksum.wrapping_add(value);
        }
    }
    receiver.received += 1;
    if receiver.received == receiver.warmup {
        receiver.begin = Instant::now();
    }
}

fn subscribe(run: &Run, subscription: *mut aeron_subscription_t) -> String {
    let mut receiver = Receiver {
        received: 0,
        warmup: run.warmup,
        length: run.length,
        verify: run.verify,
        checksum: 0,
        begin: Instant::now(),
    };
    let context = &mut receiver as *mut Receiver;
    let mut assembler = std::ptr::null_mut();
    let mut quiet: Option<Instant> = None;
    let mut end: Option<(Instant, i64)> = None;
    unsafe {
        if aeron_fragment_assembler_create(&mut assembler, Some(on_message), context as *mut c_void) < 0 {
            aeron_fail("cannot assemble");
        }
        loop {
            let state = &*context;
            let enough = if run.seconds > 0.0 {
                state.received >= run.warmup && state.begin.elapsed().as_secs_f64() >= run.seconds
            } else {
                state.received >= run.messages + run.warmup
            };
            if enough && end.is_none() {
                end = Some((Instant::now(), state.received - run.warmup));
                MEASURED.store(true, Ordering::SeqCst);
            }
            // The rest of a publisher beside this thread is read, or the next run on the stream would begin with it.
            if enough && (run.mode != "stream" || state.received >= SENT.load(Ordering::Relaxed)) {
                break;
            }
            let handler = Some(aeron_fragment_assembler_handler as unsafe extern "C" fn(_, _, _, _));
            let fragments = aeron_subscription_poll(subscription, handler, assembler as *mut c_void, run.batch);
            if fragments < 0 {
                aeron_fail("cannot poll");
            }
            if fragments > 0 {
                quiet = None;
                continue;
            }
            let now = Instant::now();
            if now - *quiet.get_or_insert(now) > TIMEOUT {
                fail(&format!("the stream went quiet after {} messages", (*context).received));
            }
            std::thread::yield_now();
        }
        aeron_fragment_assembler_delete(assembler);
        DRAINED.store(true, Ordering::SeqCst);
        aeron_subscription_close(subscription, None, std::ptr::null_mut());
    }
    let (ended, measured) = end.unwrap();
    let seconds = (ended - receiver.begin).as_secs_f64();
    format!(
        "\"received\": {}, \"messages\": {measured}, \"seconds\": {seconds:.6}, \"messages_per_second\": {:.1}, \
         \"bytes_per_second\": {:.1}, \"checksum\": {}",
        receiver.received,
        measured as f64 / seconds,
        measured as f64 * run.length as f64 / seconds,
        receiver.checksum
    )
}

struct Got(i64);

extern "C" fn on_number(context: *mut c_void, data: *const u8, _length: usize, _header: *mut aeron_header_t) {
    let got = unsafe { &mut *(context as *mut Got) };
    got.0 = unsafe { std::ptr::read_unaligned(data as *const i64) };
}

/// Polls one fragment; true where it is message `number`.
unsafe fn arrives(subscription: *mut aeron_subscription_t, got: *mut Got, number: i64) -> bool {
    if aeron_subscription_poll(subscription, Some(on_number), got as *mut c_void, 1) < 0 {
        aeron_fail("cannot poll");
    }
    (*got).0 == number
}

/// Which halves of the round trip this process does: it sends and times, it echoes, or both.
fn round_trips(run: &Run, pings: bool, pongs: bool) -> String {
    let client = Client::connect(run);
    let none: (*mut aeron_exclusive_publication_t, *mut aeron_subscription_t) = (std::ptr::null_mut(), std::ptr::null_mut());
    let near = if pongs { client.subscription(run, run.stream) } else { none.1 };
    let far = if pings { client.subscription(run, run.stream + 1) } else { none.1 };
    println!("READY");
    let ping = if pings { client.publication(run, run.stream) } else { none.0 };
    let pong = if pongs { client.publication(run, run.stream + 1) } else { none.0 };
    let count = run.messages + run.warmup;
    let mut times: Vec<u64> = Vec::with_capacity(run.messages as usize);
    let mut message = vec![0u8; run.length];
    let (mut retries, mut seen) = (0u64, false);
    let mut echo = Got(-1);
    let mut answer = Got(-1);
    let mut last = Instant::now();
    unsafe {
        for number in 0..count {
            let begin = Instant::now();
            if pings {
                fill(&mut message, number, false);
                offer(ping, &message, run, &mut seen, &mut retries);
            }
            let mut turns = 0u32;
            loop {
                if pongs && echo.0 < number && arrives(near, &mut echo, number) {
                    fill(&mut message, number, false);
                    offer(pong, &message, run, &mut seen, &mut retries);
                }
                if if pings { arrives(far, &mut answer, number) } else { echo.0 == number } {
                    break;
                }
                turns = turns.wrapping_add(1);
                if turns & 0xF_FFFF == 0 && last.elapsed() > TIMEOUT {
                    fail(&format!("message {number} did not come back"));
                }
            }
            last = Instant::now();
            if number >= run.warmup {
                times.push((last - begin).as_nanos() as u64);
            }
        }
        if pings {
            aeron_exclusive_publication_close(ping, None, std::ptr::null_mut());
            aeron_subscription_close(far, None, std::ptr::null_mut());
        }
        if pongs {
            aeron_exclusive_publication_close(pong, None, std::ptr::null_mut());
            aeron_subscription_close(near, None, std::ptr::null_mut());
        }
    }
    if !pings {
        return format!("\"messages\": {}", times.len());
    }
    times.sort_unstable();
    let at = |share: f64| times[((times.len() as f64 * share) as usize).min(times.len() - 1)];
    let mut figures = format!(
        "\"messages\": {}, \"min_ns\": {}, \"p50_ns\": {}, \"p99_ns\": {}, \"p999_ns\": {}, \"p9999_ns\": {}, \"max_ns\": {}",
        times.len(),
        times[0],
        at(0.5),
        at(0.99),
        at(0.999),
        at(0.9999),
        times[times.len() - 1]
    );
    for power in 6..63 {
        let (from, to) = (if power == 6 { 0 } else { 1u64 << (power - 1) }, 1u64 << power);
        let count = times.iter().filter(|time| (from..to).contains(time)).count();
        if count > 0 {
            figures += &format!(", \"below_{to}_ns\": {count}");
        }
    }
    figures
}

fn parse() -> Run {
    let mut run = Run {
        mode: String::new(),
        dir: String::new(),
        channel: "aeron:ipc".into(),
        stream: 1001,
        length: 32,
        messages: 1_000_000,
        seconds: 0.0,
        warmup: 0,
        batch: 256,
        verify: false,
    };
    let mut arguments = std::env::args().skip(1);
    run.mode = arguments.next().unwrap_or_default();
    while let Some(name) = arguments.next() {
        let Some(value) = arguments.next() else { fail(&format!("option {name} has no value")) };
        let number: f64 = value.parse().unwrap_or(-1.0);
        match name.as_str() {
            "--dir" => run.dir = value,
            "--channel" => run.channel = value,
            "--stream" => run.stream = number as i32,
            "--length" => run.length = number as usize,
            "--messages" => run.messages = number as i64,
            "--seconds" => run.seconds = number,
            "--warmup" => run.warmup = number as i64,
            "--batch" => run.batch = number as usize,
            "--verify" => run.verify = number != 0.0,
            _ => fail(&format!("option {name} is unknown")),
        }
    }
    if run.dir.is_empty() || run.length < 8 || run.messages < 1 || run.warmup < 0 || run.batch < 1 {
        fail("--dir is needed; length must be at least 8, messages and batch at least 1");
    }
    run
}

fn main() {
    let run = parse();
    let figures = match run.mode.as_str() {
        "pub" => {
            let (sent, checksum, retries) = publish(&run);
            format!("\"messages\": {sent}, \"checksum\": {checksum}, \"retries\": {retries}")
        }
        "sub" | "stream" => {
            let client = Client::connect(&run);
            let subscription = client.subscription(&run, run.stream);
            println!("READY");
            let publisher = (run.mode == "stream").then(|| {
                let run = run.clone();
                std::thread::spawn(move || publish(&run))
            });
            let received = subscribe(&run, subscription);
            let retries = publisher.map_or(0, |thread| thread.join().map_or(0, |(_, _, retries)| retries));
            format!("{received}, \"retries\": {retries}")
        }
        "ping" => round_trips(&run, true, false),
        "pong" => round_trips(&run, false, true),
        "rtt" => round_trips(&run, true, true),
        mode => fail(&format!("mode {mode:?} is none of pub, sub, stream, ping, pong, rtt")),
    };
    let version = unsafe { CStr::from_ptr(aeron_version_full()) }.to_string_lossy();
    let version = version.replace('"', "'");
    println!(
        "{{\"program\": \"stock-c-load\", \"aeron\": \"{version}\", \"mode\": \"{}\", \"length\": {}, {figures}}}",
        run.mode, run.length
    );
}
