/* Atomic operations: the only place that names a memory order.
 *
 * Fields live in mapped files whose layout the specification fixes, so they are plain integers at byte offsets. The
 * compiler's atomic builtins work on those directly, are lock-free for the naturally aligned widths asserted below, and are
 * visible to ThreadSanitizer. Names follow Spec: 01 §0 - acquire (A), release (R), sequentially consistent update (X).
 *
 * Thread rule: any thread, any process sharing the mapping. */
#ifndef ASI_BASE_ATOMIC_H
#define ASI_BASE_ATOMIC_H

#include <stdbool.h>
#include <stdint.h>

_Static_assert(__atomic_always_lock_free(sizeof(int32_t), 0), "32-bit atomics must be lock-free to be shared by processes");
_Static_assert(__atomic_always_lock_free(sizeof(int64_t), 0), "64-bit atomics must be lock-free to be shared by processes");

static inline int32_t asi_load_acquire_i32(const int32_t *at) { return __atomic_load_n(at, __ATOMIC_ACQUIRE); }
static inline int64_t asi_load_acquire_i64(const int64_t *at) { return __atomic_load_n(at, __ATOMIC_ACQUIRE); }
static inline uint8_t asi_load_acquire_u8(const uint8_t *at) { return __atomic_load_n(at, __ATOMIC_ACQUIRE); }
static inline bool asi_load_acquire_bool(const bool *at) { return __atomic_load_n(at, __ATOMIC_ACQUIRE); }
static inline void *asi_load_acquire_ptr(void *const *at) { return __atomic_load_n(at, __ATOMIC_ACQUIRE); }

static inline void asi_store_release_i32(int32_t *at, int32_t value) { __atomic_store_n(at, value, __ATOMIC_RELEASE); }
static inline void asi_store_release_i64(int64_t *at, int64_t value) { __atomic_store_n(at, value, __ATOMIC_RELEASE); }
static inline void asi_store_release_u8(uint8_t *at, uint8_t value) { __atomic_store_n(at, value, __ATOMIC_RELEASE); }
static inline void asi_store_release_bool(bool *at, bool value) { __atomic_store_n(at, value, __ATOMIC_RELEASE); }
static inline void asi_store_release_ptr(void **at, void *value) { __atomic_store_n(at, value, __ATOMIC_RELEASE); }

/* Relaxed: for the only writer of a field to read its own value, or for a hint that may be stale. */
static inline int32_t asi_load_relaxed_i32(const int32_t *at) { return __atomic_load_n(at, __ATOMIC_RELAXED); }
static inline int64_t asi_load_relaxed_i64(const int64_t *at) { return __atomic_load_n(at, __ATOMIC_RELAXED); }
static inline bool asi_load_relaxed_bool(const bool *at) { return __atomic_load_n(at, __ATOMIC_RELAXED); }
static inline void asi_store_relaxed_bool(bool *at, bool value) { __atomic_store_n(at, value, __ATOMIC_RELAXED); }
static inline void asi_store_relaxed_i32(int32_t *at, int32_t value) { __atomic_store_n(at, value, __ATOMIC_RELAXED); }
static inline void asi_store_relaxed_i64(int64_t *at, int64_t value) { __atomic_store_n(at, value, __ATOMIC_RELAXED); }

static inline int32_t asi_fetch_add_i32(int32_t *at, int32_t delta) { return __atomic_fetch_add(at, delta, __ATOMIC_SEQ_CST); }
static inline int64_t asi_fetch_add_i64(int64_t *at, int64_t delta) { return __atomic_fetch_add(at, delta, __ATOMIC_SEQ_CST); }

static inline bool asi_cas_i32(int32_t *at, int32_t expected, int32_t desired)
{
    return __atomic_compare_exchange_n(at, &expected, desired, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

static inline bool asi_cas_i64(int64_t *at, int64_t expected, int64_t desired)
{
    return __atomic_compare_exchange_n(at, &expected, desired, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

/* ThreadSanitizer does not model stand-alone fences, and gcc warns about that. Every fence here is paired with an atomic
 * access that ThreadSanitizer does see. */
#if defined(__SANITIZE_THREAD__)
#pragma GCC diagnostic ignored "-Wtsan"
#endif
static inline void asi_fence_acquire(void) { __atomic_thread_fence(__ATOMIC_ACQUIRE); }
static inline void asi_fence_release(void) { __atomic_thread_fence(__ATOMIC_RELEASE); }
static inline void asi_fence_full(void) { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
/* Orders for the compiler alone: the frequent side of a pair whose rare side is asi_fence_for_all. */
static inline void asi_fence_compiler(void) { __atomic_signal_fence(__ATOMIC_SEQ_CST); }

static inline void asi_cpu_pause(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb" ::: "memory");
#endif
}

#endif
