/* What the tests share: the library under test, memory with unreadable ends,
 * counters. */
#ifndef TEST_H
#define TEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../wsframe.h"

/* The functions under test, linked in or looked up in a library that was
 * opened. */
struct library {
  __typeof__(&wsframe_mask) mask;
  __typeof__(&wsframe_mask_into) mask_into;
  __typeof__(&wsframe_scan) scan;
  __typeof__(&wsframe_cpu) cpu;
  __typeof__(&wsframe_use_kernel) use_kernel;
};
extern struct library library;

/* size bytes between two pages that may be neither read nor written. */
struct guarded {
  uint8_t *bytes;
  size_t size;
};
struct guarded guarded(size_t at_least);

/* Seeded; the seed is printed. */
uint64_t random_64(void);
uint32_t random_below(uint32_t limit);
void random_bytes(uint8_t *bytes, size_t length);

/* Counts one case; prints the message of the first few that fail. */
#ifdef __MINGW32__
__attribute__((format(gnu_printf, 2, 3)))
#else
__attribute__((format(printf, 2, 3)))
#endif
void check(bool ok, const char *format, ...);

void test_mask(void);
void test_scan(void);

#endif
