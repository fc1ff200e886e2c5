/*
 * The scan against a second parser that works byte by byte and copies nothing
 * from the first, on vectors with known faults and on random and mutated
 * frames.
 */
#include "test.h"

enum { MAX_SOURCE = 1 << 17, MAX_ROWS = 600, MAX_WORDS = 4 + 4 * MAX_ROWS };

static const double NO_LIMIT = 9007199254740991.0;

struct input {
  const uint8_t *bytes;
  size_t length;
  uint32_t flags;
  double max;
};

struct frame {
  unsigned first, header, fault;
  bool masked, complete;
  size_t payload;
  uint8_t key[4];
};

/* One rule after the other, in the order of the table; bytes beyond the range
 * do not exist. */
static struct frame parse(const struct input *in, size_t at) {
  struct frame frame = {0};
  const uint8_t *b = in->bytes + at;
  const size_t have = in->length - at;
  const bool strict = !(in->flags & WSFRAME_NO_CHECKS);
  if (have == 0)
    return frame;

  frame.first = b[0];
  const unsigned opcode = b[0] % 16;
  const bool fin = b[0] / 128 == 1, rsv1 = b[0] / 64 % 2 == 1;
  const bool reserved = (opcode > 2 && opcode < 8) || opcode > 10,
             control = opcode > 7;
  const bool rsv1_fine =
      (in->flags & WSFRAME_ALLOW_RSV1) && opcode > 0 && opcode < 3;
  if (strict) {
    if (rsv1 && !rsv1_fine)
      return frame.fault = 1, frame;
    if (b[0] / 16 % 4 != 0)
      return frame.fault = 2, frame;
    if (reserved)
      return frame.fault = 3, frame;
    if (control && !fin)
      return frame.fault = 4, frame;
  }
  if (have == 1)
    return frame;

  const unsigned short_length = b[1] % 128;
  frame.masked = b[1] > 127;
  if (strict) {
    if (control && short_length > 125)
      return frame.fault = 5, frame;
    if (opcode == 8 && short_length == 1)
      return frame.fault = 5, frame;
    if (!frame.masked && (in->flags & WSFRAME_EXPECT_MASK))
      return frame.fault = 6, frame;
    if (frame.masked && (in->flags & WSFRAME_EXPECT_NO_MASK))
      return frame.fault = 7, frame;
  }
  const unsigned field = short_length == 126 ? 2 : short_length == 127 ? 8 : 0;
  if (have < 2 + field)
    return frame;
  double length =
      field ? 0 : short_length; /* not exact above 2^53, but above it */
  for (unsigned i = 0; i < field; i++)
    length = length * 256 + b[2 + i];
  if (field && strict) {
    if (length < (field == 2 ? 126 : 65536))
      return frame.fault = 8, frame;
    if (field == 8 && b[2] > 127)
      return frame.fault = 9, frame;
  }
  if (length > NO_LIMIT)
    return frame.fault = 10, frame;
  if (length > in->max)
    return frame.fault = 11, frame;

  frame.header = 2 + field + (frame.masked ? 4 : 0);
  if (have < frame.header || (double)(have - frame.header) < length)
    return frame;
  if (frame.masked)
    memcpy(frame.key, b + 2 + field, 4);
  frame.payload = (size_t)length;
  frame.complete = true;
  return frame;
}

enum target { NOWHERE, IN_PLACE, ELSEWHERE };

static struct guarded source_page, target_page;
static uint8_t copy[MAX_SOURCE], wanted[MAX_SOURCE];
static uint32_t
    table[MAX_WORDS + 8]; /* the last ones are never the library's */

/*
 * Scans a copy of the bytes whose end (or start) is an unreadable page, and
 * compares the rows, the head, every byte of the target, and what must not
 * change.
 */
static void scans(const uint8_t *bytes, size_t length, uint32_t flags,
                  double max, uint32_t words, enum target target, bool at_end) {
  uint8_t *const source = at_end ? source_page.bytes + source_page.size - length
                                 : source_page.bytes;
  uint8_t *const other = at_end ? target_page.bytes + target_page.size - length
                                : target_page.bytes;
  uint8_t *const written = target == IN_PLACE ? source : other;
  memcpy(source, bytes, length);
  memcpy(copy, bytes, length);
  memset(other, 0xa5, length);
  const size_t watched = words + 8;
  memset(table, 0xee, watched * sizeof *table);
  memcpy(wanted, written, length);

  /* any split of an address into base and offset is the same place */
  const size_t offset = random_below(2) * 8;
  const uint32_t rows = library.scan(
      (uint8_t *)((uintptr_t)source - offset), (double)offset, (double)length,
      target == NOWHERE ? NULL : (uint8_t *)((uintptr_t)written - offset),
      (double)offset, table, words, flags, max);

  const struct input in = {copy, length, flags, max};
  const uint32_t capacity = words < 4 ? 0 : words / 4 - 1;
  uint32_t row = 0;
  size_t at = 0;
  unsigned fault = 0;
  bool ok = true;
  for (; row < capacity; row++) {
    const struct frame frame = parse(&in, at);
    fault = frame.fault;
    if (!frame.complete)
      break;
    const uint32_t *cells = table + 4 + 4 * (size_t)row;
    const size_t payload = at + frame.header;
    ok = ok && cells[0] == (frame.first + (frame.masked ? 256 : 0) +
                            frame.header * 65536);
    ok = ok && cells[1] == payload && cells[2] == frame.payload;
    ok = ok && memcmp(cells + 3, frame.key, 4) == 0;
    if (frame.masked && target != NOWHERE) {
      for (size_t i = 0; i < frame.payload; i++) {
        wanted[payload + i] = copy[payload + i] ^ frame.key[i % 4];
      }
    }
    at = payload + frame.payload;
  }
  ok = ok && rows == row;
  if (words >= 4)
    ok = ok && table[0] == at && table[1] == fault;
  for (size_t i = words < 4 ? 0 : 4 + 4 * (size_t)row; i < watched; i++) {
    ok = ok && table[i] == 0xeeeeeeee;
  }
  ok = ok && memcmp(written, wanted, length) == 0;
  if (target != IN_PLACE)
    ok = ok && memcmp(source, copy, length) == 0;
  check(ok,
        "scan of %zu bytes, flags %u, limit %.0f, %u words, target %d: %u "
        "rows, fault %u",
        length, (unsigned)flags, max, (unsigned)words, target, (unsigned)rows,
        fault);
}

/* RFC 6455 section 5: what is wrong, as bytes, and its number. */
static void test_known_faults(void) {
  enum {
    NONE = 0,
    SERVER = WSFRAME_EXPECT_MASK,
    CLIENT = WSFRAME_EXPECT_NO_MASK
  };
  enum { RSV1 = WSFRAME_ALLOW_RSV1, ANY = WSFRAME_NO_CHECKS };
  static const struct {
    const char *bytes;
    size_t length;
    uint32_t flags;
    double max;
    unsigned rows, consumed, fault;
  } cases[] = {
      {"\x81\x00", 2, NONE, 9, 1, 2, 0},
      {"\x81", 1, NONE, 9, 0, 0, 0},
      {"\xc1", 1, NONE, 9, 0, 0, 1},
      {"\xc1\x00", 2, RSV1, 9, 1, 2, 0},
      {"\xc2\x00", 2, RSV1, 9, 1, 2, 0},
      {"\xc0\x00", 2, RSV1, 9, 0, 0, 1},
      {"\xc9\x00", 2, RSV1, 9, 0, 0, 1},
      {"\xf3", 1, NONE, 9, 0, 0, 1},
      {"\xf1", 1, RSV1, 9, 0, 0, 2},
      {"\xa3", 1, NONE, 9, 0, 0, 2},
      {"\x91", 1, NONE, 9, 0, 0, 2},
      {"\x03", 1, NONE, 9, 0, 0, 3},
      {"\x07", 1, NONE, 9, 0, 0, 3},
      {"\x0b", 1, NONE, 9, 0, 0, 3},
      {"\x8f", 1, NONE, 9, 0, 0, 3},
      {"\x09", 1, NONE, 9, 0, 0, 4},
      {"\x89\x7e", 2, SERVER, 9, 0, 0, 5},
      {"\x89\xff", 2, CLIENT, 9, 0, 0, 5},
      {"\x88\x01", 2, SERVER, 0, 0, 0, 5},
      {"\x88\x00", 2, NONE, 9, 1, 2, 0},
      {"\x81\x05", 2, SERVER, 1, 0, 0, 6},
      {"\x81\x85", 2, CLIENT, 1, 0, 0, 7},
      {"\x81\x7e\x00\x7d", 4, NONE, 9, 0, 0, 8},
      {"\x81\x7e\x00", 3, NONE, 9, 0, 0, 0},
      {"\x81\x7f\x00\x00\x00\x00\x00\x00\xff\xff", 10, NONE, 9, 0, 0, 8},
      {"\x81\x7f\x80\x00\x00\x00\x00\x00\x00\x00", 10, NONE, 9, 0, 0, 9},
      {"\x81\x7f\xff\xff\xff\xff\xff\xff\xff\xff", 10, NONE, 9, 0, 0, 9},
      {"\x81\x7f\x7f\xff\xff\xff\xff\xff\xff\xff", 10, NONE, 9, 0, 0, 10},
      {"\x81\x7f\x00\x20\x00\x00\x00\x00\x00\x00", 10, NONE, 9, 0, 0, 10},
      {"\x81\x7f\x00\x1f\xff\xff\xff\xff\xff\xff", 10, NONE, 9, 0, 0, 11},
      {"\x81\x7f\x00\x1f\xff\xff\xff\xff\xff\xff", 10, NONE, 9007199254740991.0,
       0, 0, 0},
      {"\x81\x7f\x00\x00\x00\x00\x00\x01\x00\x00", 10, NONE, 65535, 0, 0, 11},
      {"\x81\x7e\x00\x7e", 4, NONE, 125, 0, 0, 11},
      {"\x81\x7e\x00\x7e", 4, NONE, 126, 0, 0, 0},
      {"\x81\x05", 2, NONE, 4, 0, 0, 11},
      {"\x81\x01", 2, NONE, 0, 0, 0, 11},
      {"\x81\x00", 2, NONE, 0, 1, 2, 0},
      {"\x89\x01", 2, NONE, 0, 0, 0, 11},
      /* without checks the limits are left */
      {"\xff\x00", 2, ANY | SERVER, 9, 1, 2, 0},
      {"\x0b\x7e\x00\x00", 4, ANY, 9, 1, 4, 0},
      {"\x88\x01\x00", 3, ANY, 9, 1, 3, 0},
      {"\x81\x7f\x00\x00\x00\x00\x00\x00\x00\x00", 10, ANY, 9, 1, 10, 0},
      {"\x81\x7f\x80\x00\x00\x00\x00\x00\x00\x00", 10, ANY, 9, 0, 0, 10},
      {"\x81\x7f\x00\x20\x00\x00\x00\x00\x00\x00", 10, ANY, 9, 0, 0, 10},
      {"\x81\x0a", 2, ANY, 9, 0, 0, 11},
      /* what came before a fault is there */
      {"\x81\x01\x61\x82\x00\x03", 6, NONE, 9, 2, 5, 3},
      /* RFC 6455 section 5.7: "Hello" unmasked and masked, then half a frame */
      {"\x81\x05Hello\x81\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58\x81\x85\x37"
       "\xfa\x21\x3d\x7f",
       25, NONE, 9, 2, 18, 0},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    memset(table, 0, sizeof table);
    uint8_t *const end = source_page.bytes + source_page.size - cases[i].length;
    memcpy(end, cases[i].bytes, cases[i].length);
    const uint32_t rows =
        library.scan(end, 0, (double)cases[i].length, end, 0, table, MAX_WORDS,
                     cases[i].flags, cases[i].max);
    check(rows == cases[i].rows && table[0] == cases[i].consumed &&
              table[1] == cases[i].fault,
          "case %zu: %u rows, %u consumed, fault %u", i, (unsigned)rows,
          (unsigned)table[0], (unsigned)table[1]);
    if (i == sizeof cases / sizeof *cases - 1)
      check(memcmp(end + 13, "Hello", 5) == 0, "Hello");
  }
}

static size_t random_length(void) {
  static const uint32_t edges[] = {0,   1,   2,   15,  16,  31,  124,
                                   125, 126, 127, 128, 255, 256, 257};
  switch (random_below(8)) {
  case 0:
    return edges[random_below(sizeof edges / sizeof *edges)];
  case 1:
    return random_below(3000);
  case 2:
    return random_below(40) ? random_below(600) : 65500 + random_below(100);
  default:
    return random_below(140);
  }
}

/* A frame that is mostly right, for a reader that is mostly the one it is for.
 */
static size_t write_frame(uint8_t *bytes, size_t room, bool masked) {
  static const uint8_t firsts[] = {0x81, 0x82, 0x01, 0x02, 0x00,
                                   0x80, 0x88, 0x89, 0x8a, 0xc1};
  const uint8_t first = firsts[random_below(sizeof firsts)];
  size_t length = random_length();
  if (first >= 0x88 && first < 0x90 && length > 125)
    length = 125;
  if (length + 14 > room)
    return 0;
  size_t at = 0;
  bytes[at++] = first;
  const size_t field = length < 126 ? 0 : length < 65536 ? 2 : 8;
  bytes[at++] = (uint8_t)((masked ? 0x80 : 0) | (field == 0   ? length
                                                 : field == 2 ? 126
                                                              : 127));
  for (size_t i = field; i > 0; i--)
    bytes[at++] = (uint8_t)((uint64_t)length >> 8 * (i - 1));
  random_bytes(bytes + at, length + 4);
  return at + length + (masked ? 4 : 0);
}

static void test_random(int rounds) {
  static const double limits[] = {0,     1,     125,     126,         1000,
                                  65535, 65536, 1048576, 4294967296.0};
  static uint8_t bytes[MAX_SOURCE];
  for (int i = 0; i < rounds; i++) {
    const bool masked = random_below(4) > 0;
    const size_t room =
        1 + random_below(random_below(20) ? 4000 : MAX_SOURCE - 1);
    size_t length = 0, written;
    while (length < room &&
           (written = write_frame(bytes + length, room - length, masked))) {
      length += written;
    }
    if (random_below(10) == 0)
      random_bytes(bytes, length = random_below(64));
    for (uint32_t k = random_below(6); k > 0 && k < 4 && length > 0; k--) {
      bytes[random_below((uint32_t)length)] = (uint8_t)random_64();
    }
    if (random_below(2))
      length = random_below((uint32_t)length + 1);
    const uint32_t flags = random_below(3)
                               ? (masked ? WSFRAME_EXPECT_MASK : 0) |
                                     random_below(2) * WSFRAME_ALLOW_RSV1
                               : random_below(16);
    const double max = random_below(3) ? NO_LIMIT : limits[random_below(9)];
    const uint32_t words = random_below(3) ? MAX_WORDS : random_below(40);
    scans(bytes, length, flags, max, words, (enum target)random_below(3),
          random_below(2));
  }
}

/* Short inputs cut at every byte, both ends unreadable in turn. */
static void test_cuts(void) {
  uint8_t bytes[400];
  for (int i = 0; i < 40; i++) {
    size_t length = 0, written;
    while ((written = write_frame(bytes + length, sizeof bytes - length, true)))
      length += written;
    for (size_t cut = 0; cut <= length; cut++) {
      scans(bytes, cut, random_below(16), NO_LIMIT, MAX_WORDS,
            (enum target)(cut % 3), cut % 2);
    }
  }
}

/* Every pair of first bytes under every set of flags, alone and with more
 * behind them. */
static void test_all_first_bytes(void) {
  uint8_t bytes[140];
  random_bytes(bytes, sizeof bytes);
  for (unsigned pair = 0; pair < 65536; pair++) {
    bytes[0] = (uint8_t)(pair >> 8);
    bytes[1] = (uint8_t)pair;
    for (uint32_t flags = 0; flags < 16; flags++) {
      const size_t length =
          random_below(2) ? sizeof bytes : 1 + random_below(14);
      scans(bytes, length, flags, random_below(4) ? NO_LIMIT : 100, 8, NOWHERE,
            false);
    }
  }
}

void test_scan(void) {
  if (!source_page.bytes) {
    source_page = guarded(MAX_SOURCE);
    target_page = guarded(MAX_SOURCE);
  }
  test_known_faults();
  test_all_first_bytes();
  test_cuts();
  test_random(20000);
}
