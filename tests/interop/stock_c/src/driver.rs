//! The stock media driver in C as a process, used as its own executable `aeronmd` is: settings from the environment by the
//! stock names, `-Dname=value` for the same by their property names, `-v` for the version. Runs until SIGTERM, SIGINT or a
//! permitted TERMINATE_DRIVER. Exit codes and texts as Spec: 05 §15.

use libaeron_driver_sys::*;
use std::ffi::{c_void, CStr};
use std::process::exit;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

static RUNNING: AtomicBool = AtomicBool::new(true);
static SIGNAL: AtomicI32 = AtomicI32::new(0);

extern "C" fn on_signal(number: libc::c_int) {
    SIGNAL.store(number, Ordering::SeqCst);
    RUNNING.store(false, Ordering::SeqCst);
}

extern "C" fn on_terminate(_state: *mut c_void) {
    RUNNING.store(false, Ordering::SeqCst);
}

fn ok(stage: &str, result: i32) {
    if result < 0 {
        let text = unsafe { CStr::from_ptr(aeron_errmsg()) }.to_string_lossy();
        eprintln!("ERROR: {stage} ({}) {text}", unsafe { aeron_errcode() });
        exit(1);
    }
}

fn settings() {
    for argument in std::env::args().skip(1) {
        if argument == "-v" {
            let version = unsafe { CStr::from_ptr(aeron_version_full()) }.to_string_lossy();
            println!("{version}");
            exit(0);
        }
        let define = argument.strip_prefix("-D").and_then(|text| text.split_once('='));
        let Some((name, value)) = define else {
            eprintln!("malformed define: {argument}");
            exit(1);
        };
        let variable = name.to_uppercase().replace('.', "_");
        if value.is_empty() {
            std::env::remove_var(variable);
        } else {
            std::env::set_var(variable, value);
        }
    }
}

fn main() {
    settings();
    unsafe {
        libc::signal(libc::SIGTERM, on_signal as *const () as libc::sighandler_t);
        libc::signal(libc::SIGINT, on_signal as *const () as libc::sighandler_t);
        let mut context: *mut aeron_driver_context_t = std::ptr::null_mut();
        let mut driver: *mut aeron_driver_t = std::ptr::null_mut();
        ok("context init", aeron_driver_context_init(&mut context));
        ok(
            "context set termination hook",
            aeron_driver_context_set_driver_termination_hook(context, Some(on_terminate), std::ptr::null_mut()),
        );
        ok("driver init", aeron_driver_init(&mut driver, context));
        ok("driver start", aeron_driver_start(driver, true));
        while RUNNING.load(Ordering::Relaxed) {
            aeron_driver_main_idle_strategy(driver, aeron_driver_main_do_work(driver));
        }
        println!("Shutting down driver...");
        ok("driver close", aeron_driver_close(driver));
        ok("driver context close", aeron_driver_context_close(context));
    }
    exit(SIGNAL.load(Ordering::SeqCst));
}
