/*
 * Times the library called from C, the limit for every caller above it:
 *
 *   cc -O2 benches/kernel.c -o bench -ldl
 *   ./bench path/to/library.so [kernel bit]
 *
 * Reads one command per line and answers each with one line, so that a caller
 * can interleave it with rounds of its own:
 *
 *   mask BYTES CALLS [MISALIGNMENT]         in place
 *   mask_into BYTES CALLS [MISALIGNMENT]    the target's; the source is 64-byte
 * aligned memcpy BYTES CALLS [MISALIGNMENT]       likewise scan PAYLOAD_BYTES
 * CALLS                64 KiB (or one frame) of masked frames in place; bytes
 * is the payload, ns is per frame
 *
 * {"name":"mask","bytes":16384,"calls":1000,"ns":171.25}
 */
#define _POSIX_C_SOURCE 200809L

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../native/wsframe.h"

enum {
  MAX_BYTES = 64 << 20,
  SLACK = 4096,
  CHUNK = 65536,
  ROWS = CHUNK / 6 + 1
};

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static uint8_t *allocate(void) {
  void *memory;
  if (posix_memalign(&memory, 4096, MAX_BYTES + SLACK) != 0)
    exit(1);
  memset(memory, 0x5a, MAX_BYTES + SLACK);
  return memory;
}

static size_t write_frames(uint8_t *bytes, size_t payload, uint32_t *frames) {
  size_t at = 0;
  *frames = 0;
  do {
    bytes[at++] = 0x82;
    if (payload < 126) {
      bytes[at++] = (uint8_t)(0x80 | payload);
    } else {
      const int field = payload < 65536 ? 2 : 8;
      bytes[at++] = field == 2 ? 0xfe : 0xff;
      for (int i = field - 1; i >= 0; i--)
        bytes[at++] = (uint8_t)((uint64_t)payload >> 8 * i);
    }
    memcpy(bytes + at, "\x11\x22\x33\x44", 4);
    at += 4 + payload;
    (*frames)++;
  } while (at + 14 + payload <= CHUNK);
  return at;
}

int main(int count, char **arguments) {
  void *library = count > 1 ? dlopen(arguments[1], RTLD_NOW) : NULL;
  if (!library) {
    fprintf(stderr, "usage: bench LIBRARY [KERNEL]; %s\n",
            count > 1 ? dlerror() : "no library");
    return 1;
  }
  __typeof__(&wsframe_mask) mask;
  __typeof__(&wsframe_mask_into) mask_into;
  __typeof__(&wsframe_scan) scan;
  __typeof__(&wsframe_use_kernel) use_kernel;
  *(void **)&mask = dlsym(library, "wsframe_mask");
  *(void **)&mask_into = dlsym(library, "wsframe_mask_into");
  *(void **)&scan = dlsym(library, "wsframe_scan");
  *(void **)&use_kernel = dlsym(library, "wsframe_use_kernel");
  const uint32_t wanted = count > 2 ? (uint32_t)atoi(arguments[2]) : 0;
  const uint32_t kernel = use_kernel(wanted);
  if (wanted && kernel != wanted) {
    fprintf(stderr, "kernel %u cannot run here\n", (unsigned)wanted);
    return 1;
  }

  uint8_t *const target = allocate();
  uint8_t *const source = allocate();
  uint32_t *const table = calloc(4 + 4 * ROWS, sizeof *table);
  if (!table)
    return 1;
  char line[256];
  while (fgets(line, sizeof line, stdin)) {
    char name[16];
    unsigned long bytes, calls, offset = 0;
    if (sscanf(line, "%15s %lu %lu %lu", name, &bytes, &calls, &offset) < 3 ||
        bytes > MAX_BYTES - 16 || calls == 0 || offset > SLACK) {
      printf("{\"error\":\"not a command\"}\n");
      fflush(stdout);
      continue;
    }
    double divisor = (double)calls;
    double start = now();
    if (strcmp(name, "mask") == 0) {
      for (unsigned long i = 0; i < calls; i++) {
        mask(target, (double)offset, (double)bytes, 0x44332211);
      }
    } else if (strcmp(name, "mask_into") == 0) {
      for (unsigned long i = 0; i < calls; i++) {
        mask_into(target, (double)offset, source, 0, (double)bytes, 0x44332211);
      }
    } else if (strcmp(name, "memcpy") == 0) {
      for (unsigned long i = 0; i < calls; i++) {
        memcpy(target + offset, source, bytes);
        __asm__ volatile(""
                         :
                         : "r"(target)
                         : "memory"); /* or equal copies become one */
      }
    } else if (strcmp(name, "scan") == 0) {
      uint32_t frames;
      const size_t length = write_frames(target, bytes, &frames);
      divisor *= frames;
      start = now();
      for (unsigned long i = 0; i < calls; i++) {
        scan(target, 0, (double)length, target, 0, table, 4 + 4 * ROWS,
             WSFRAME_EXPECT_MASK, MAX_BYTES);
      }
      if (table[0] != length)
        return 1;
    } else {
      printf("{\"error\":\"not a command\"}\n");
      fflush(stdout);
      continue;
    }
    const double ns = (now() - start) / divisor;
    printf("{\"name\":\"%s\",\"bytes\":%lu,\"calls\":%lu,\"ns\":%.3f}\n", name,
           bytes, calls, ns);
    fflush(stdout);
  }
  return 0;
}
