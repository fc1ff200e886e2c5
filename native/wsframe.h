/*
 * The contract of the wsframe library: C11, freestanding, no libc, no state
 * besides the kernel choice. Used through bun:ffi, Deno FFI, Node-API and,
 * compiled to wasm32, through WebAssembly.
 *
 * Offsets and lengths are doubles because every FFI passes a JavaScript number
 * as a double without conversion; each is a whole number from 0 to 2^53 - 1.
 * No function reads or writes a byte outside the ranges named here.
 */
#ifndef WSFRAME_H
#define WSFRAME_H

#include <stdint.h>

#ifdef _WIN32
#define WSFRAME_API __declspec(dllexport)
#else
#define WSFRAME_API __attribute__((visibility("default")))
#endif

/*
 * XORs bytes[start .. start+length) in place. Byte i of the range meets byte
 * i & 3 of key, lowest byte first.
 */
WSFRAME_API void wsframe_mask(uint8_t *bytes, double start, double length,
                              int32_t key);

/*
 * The same from source into target, in one pass. The ranges may overlap in any
 * way.
 */
WSFRAME_API void wsframe_mask_into(uint8_t *target, double target_start,
                                   const uint8_t *source, double source_start,
                                   double length, int32_t key);

/*
 * Walks the complete frames of source[start .. start+length), length <= 2^30.
 * target NULL: headers only. Otherwise every masked payload is written unmasked
 * to target[target_start + offset from start]; target may be source with
 * target_start == start, and does not overlap it otherwise.
 * table: 4 words of head (0: consumed, 1: fault, 2 and 3 reserved), then rows
 * of 4 words; words is the size of the whole table in 32-bit words (below 4
 * nothing is done). Returns the number of rows. See src/backend/backend.ts for
 * rows and stops.
 */
WSFRAME_API uint32_t wsframe_scan(const uint8_t *source, double start,
                                  double length, uint8_t *target,
                                  double target_start, uint32_t *table,
                                  uint32_t words, uint32_t flags,
                                  double max_payload_length);

/* Scan flags */
enum {
  WSFRAME_EXPECT_MASK = 1,
  WSFRAME_EXPECT_NO_MASK = 2,
  WSFRAME_ALLOW_RSV1 = 4,
  WSFRAME_NO_CHECKS = 8,
};

/* Faults, in the order of src/check.ts; 0 is none. */
enum {
  WSFRAME_OK = 0,
  WSFRAME_UNEXPECTED_RSV_1 = 1,
  WSFRAME_UNEXPECTED_RSV_2_3 = 2,
  WSFRAME_INVALID_OPCODE = 3,
  WSFRAME_EXPECTED_FIN = 4,
  WSFRAME_INVALID_CONTROL_PAYLOAD_LENGTH = 5,
  WSFRAME_EXPECTED_MASK = 6,
  WSFRAME_UNEXPECTED_MASK = 7,
  WSFRAME_LENGTH_NOT_MINIMAL = 8,
  WSFRAME_INVALID_LENGTH = 9,
  WSFRAME_UNSUPPORTED_DATA_PAYLOAD_LENGTH = 10,
  WSFRAME_UNSUPPORTED_MESSAGE_LENGTH = 11,
};

/* Which kernels this CPU and system can run, as a bit set. */
enum {
  WSFRAME_CPU_SSE2 = 1,
  WSFRAME_CPU_AVX2 = 2,
  WSFRAME_CPU_NEON = 4,
  WSFRAME_CPU_SIMD128 = 8,
};
WSFRAME_API uint32_t wsframe_cpu(void);

/*
 * Uses the kernel with this bit from now on, for tests and the self-test; 0
 * means the best one. Returns the bit in use afterwards (unchanged if it cannot
 * run).
 */
WSFRAME_API uint32_t wsframe_use_kernel(uint32_t kernel);

#endif
