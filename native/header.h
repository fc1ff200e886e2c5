/*
 * One frame header: read, then judged by RFC 6455 section 5 in the order of
 * src/check.ts, each rule as soon as the byte that shows it is there.
 */

#define ROW_MASKED 0x100u

struct header {
  uint64_t payload_length;
  uint32_t length; /* its own; more than available if bytes are missing */
  uint32_t word;   /* word 0 of the row */
  uint32_t key;
};

static uint32_t first_byte_fault(uint32_t first, uint32_t flags) {
  const uint32_t opcode = first & 15;
  const int is_message = opcode == 1 || opcode == 2;
  if ((first & 0x40) && !(is_message && (flags & WSFRAME_ALLOW_RSV1)))
    return WSFRAME_UNEXPECTED_RSV_1;
  if (first & 0x30)
    return WSFRAME_UNEXPECTED_RSV_2_3;
  if ((opcode & 7) > 2)
    return WSFRAME_INVALID_OPCODE;
  if (opcode >= 8 && !(first & 0x80))
    return WSFRAME_EXPECTED_FIN;
  return WSFRAME_OK;
}

static inline uint32_t second_byte_fault(uint32_t first, uint32_t second,
                                         uint32_t flags) {
  const uint32_t length = second & 0x7f;
  const uint32_t opcode = first & 15;
  if (opcode >= 8 && (length > 125 || (opcode == 8 && length == 1)))
    return WSFRAME_INVALID_CONTROL_PAYLOAD_LENGTH;
  if (!(second & 0x80) && (flags & WSFRAME_EXPECT_MASK))
    return WSFRAME_EXPECTED_MASK;
  if ((second & 0x80) && (flags & WSFRAME_EXPECT_NO_MASK))
    return WSFRAME_UNEXPECTED_MASK;
  return WSFRAME_OK;
}

static uint32_t length_field_fault(uint64_t length, uint64_t shortest,
                                   uint32_t flags) {
  if (!(flags & WSFRAME_NO_CHECKS)) {
    if (length < shortest)
      return WSFRAME_LENGTH_NOT_MINIMAL;
    if (length >> 63)
      return WSFRAME_INVALID_LENGTH;
  }
  if (length >> 53)
    return WSFRAME_UNSUPPORTED_DATA_PAYLOAD_LENGTH;
  return WSFRAME_OK;
}

/*
 * The bytes that lengths come from are loaded once each: where another thread
 * writes to the memory meanwhile, the length that was checked is the one used.
 */
static inline __attribute__((always_inline)) uint32_t
read_header(struct header *header, const uint8_t *bytes, size_t available,
            uint32_t flags, uint64_t max_payload_length) {
  const int checks = !(flags & WSFRAME_NO_CHECKS);
  uint32_t fault;

  const uint32_t first = bytes[0];
  /* nothing can be wrong with an ordinary data frame here */
  if (checks && (first & 0x7f) > 2 && (fault = first_byte_fault(first, flags)))
    return fault;
  header->length = 2;
  header->payload_length = 0;
  if (available < 2)
    return WSFRAME_OK;

  const uint32_t second = *(const volatile uint8_t *)(bytes + 1);
  if (checks && (fault = second_byte_fault(first, second, flags)))
    return fault;
  uint64_t payload_length = second & 0x7f;
  if (payload_length >= 126) {
    const int is_16_bit = payload_length == 126;
    header->length = is_16_bit ? 4 : 10;
    if (available < header->length)
      return WSFRAME_OK;
    payload_length =
        is_16_bit ? load_big_16(bytes + 2) : load_big_64(bytes + 2);
    if ((fault = length_field_fault(payload_length, is_16_bit ? 126 : 65536,
                                    flags)))
      return fault;
  }
  if (payload_length > max_payload_length)
    return WSFRAME_UNSUPPORTED_MESSAGE_LENGTH;
  header->payload_length = payload_length;

  header->word = first;
  header->key = 0;
  if (second & 0x80) {
    header->word |= ROW_MASKED;
    if (available >= header->length + 4)
      header->key = load_32(bytes + header->length);
    header->length += 4;
  }
  header->word |= header->length << 16;
  return WSFRAME_OK;
}
