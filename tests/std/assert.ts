/**
 * A stand-in for the parts of `@std/assert` that the tests use, for where the
 * real package cannot be had. Same names, signatures and verdicts.
 */

// deno-lint-ignore no-explicit-any
type AnyClass = abstract new (...args: any[]) => any;
// deno-lint-ignore no-explicit-any
type ErrorClass<E extends Error> = abstract new (...args: any[]) => E;

export class AssertionError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "AssertionError";
  }
}

export function assert(expr: unknown, msg = ""): asserts expr {
  if (!expr) throw new AssertionError(msg);
}

export function assertFalse(expr: unknown, msg = ""): void {
  if (expr) throw new AssertionError(msg || "Expected a falsy value");
}

export function fail(msg?: string): never {
  throw new AssertionError(`Failed assertion${msg ? `: ${msg}` : "."}`);
}

export function assertEquals<T>(actual: T, expected: T, msg?: string): void {
  if (equal(actual, expected)) return;
  refuse(`Values are not equal${difference(actual, expected)}`, msg);
}

export function assertNotEquals<T>(actual: T, expected: T, msg?: string): void {
  if (!equal(actual, expected)) return;
  refuse(`Expected values that differ: ${show(actual)}`, msg);
}

export function assertStrictEquals<T>(
  actual: unknown,
  expected: T,
  msg?: string,
): asserts actual is T {
  if (Object.is(actual, expected)) return;
  refuse(
    `Values are not strictly equal${difference(actual, expected)}`,
    msg,
  );
}

export function assertNotStrictEquals<T>(
  actual: T,
  expected: T,
  msg?: string,
): void {
  if (!Object.is(actual, expected)) return;
  refuse(`Expected two values, got one twice: ${show(actual)}`, msg);
}

export function assertExists<T>(
  actual: T,
  msg?: string,
): asserts actual is NonNullable<T> {
  if (actual !== undefined && actual !== null) return;
  refuse(`Expected neither null nor undefined, got ${actual}`, msg);
}

export function assertInstanceOf<T extends AnyClass>(
  actual: unknown,
  expectedType: T,
  msg = "",
): asserts actual is InstanceType<T> {
  if (actual instanceof expectedType) return;
  refuse(
    `Expected an instance of ${expectedType.name}, got ${className(actual)}`,
    msg,
  );
}

export function assertGreater<T>(actual: T, expected: T, msg?: string): void {
  if (actual > expected) return;
  refuse(`Expected ${show(actual)} > ${show(expected)}`, msg);
}

export function assertGreaterOrEqual<T>(
  actual: T,
  expected: T,
  msg?: string,
): void {
  if (actual >= expected) return;
  refuse(`Expected ${show(actual)} >= ${show(expected)}`, msg);
}

export function assertLess<T>(actual: T, expected: T, msg?: string): void {
  if (actual < expected) return;
  refuse(`Expected ${show(actual)} < ${show(expected)}`, msg);
}

export function assertLessOrEqual<T>(
  actual: T,
  expected: T,
  msg?: string,
): void {
  if (actual <= expected) return;
  refuse(`Expected ${show(actual)} <= ${show(expected)}`, msg);
}

/** Without `tolerance`: one part in ten million of `expected`. */
export function assertAlmostEquals(
  actual: number,
  expected: number,
  tolerance?: number,
  msg?: string,
): void {
  if (Object.is(actual, expected)) return;
  const most = tolerance ??
    (Number.isFinite(expected) ? Math.abs(expected * 1e-7) : 1e-7);
  const delta = Math.abs(expected - actual);
  if (delta <= most) return;
  refuse(`Expected ${expected} +- ${most}, got ${actual}`, msg);
}

export function assertStringIncludes(
  actual: string,
  expected: string,
  msg?: string,
): void {
  if (actual.includes(expected)) return;
  refuse(`Expected ${show(expected)} inside ${show(actual)}`, msg);
}

export function assertMatch(
  actual: string,
  expected: RegExp,
  msg?: string,
): void {
  if (expected.test(actual)) return;
  refuse(`Expected ${show(actual)} to match ${expected}`, msg);
}

export function assertArrayIncludes<T>(
  actual: ArrayLike<T>,
  expected: ArrayLike<T>,
  msg?: string,
): void {
  const has = Array.from(actual);
  const missing = Array.from(expected)
    .filter((wanted) => !has.some((value) => equal(value, wanted)));
  if (missing.length === 0) return;
  refuse(`Expected ${show(missing)} among ${show(has)}`, msg);
}

export function assertThrows(fn: () => unknown, msg?: string): unknown;
export function assertThrows<E extends Error = Error>(
  fn: () => unknown,
  errorClass: ErrorClass<E>,
  msgIncludes?: string,
  msg?: string,
): E;
export function assertThrows<E extends Error>(
  fn: () => unknown,
  errorClassOrMsg?: ErrorClass<E> | string,
  msgIncludes?: string,
  msg?: string,
): unknown {
  const expected = expectation(errorClassOrMsg, msgIncludes, msg);
  try {
    fn();
  } catch (error) {
    return judge(error, expected);
  }
  return refuse("Expected function to throw", expected.msg);
}

export function assertRejects(
  fn: () => PromiseLike<unknown>,
  msg?: string,
): Promise<unknown>;
export function assertRejects<E extends Error = Error>(
  fn: () => PromiseLike<unknown>,
  errorClass: ErrorClass<E>,
  msgIncludes?: string,
  msg?: string,
): Promise<E>;
export async function assertRejects<E extends Error>(
  fn: () => PromiseLike<unknown>,
  errorClassOrMsg?: ErrorClass<E> | string,
  msgIncludes?: string,
  msg?: string,
): Promise<unknown> {
  const expected = expectation(errorClassOrMsg, msgIncludes, msg);
  let promise: PromiseLike<unknown> | undefined;
  try {
    promise = fn();
    await promise;
  } catch (error) {
    if (promise === undefined) {
      refuse(`Expected a rejection, but it threw: ${error}`, expected.msg);
    }
    return judge(error, expected);
  }
  return refuse("Expected function to reject", expected.msg);
}

interface Expectation {
  errorClass?: ErrorClass<Error>;
  msgIncludes?: string;
  msg?: string;
}

function expectation(
  errorClassOrMsg: ErrorClass<Error> | string | undefined,
  msgIncludes: string | undefined,
  msg: string | undefined,
): Expectation {
  if (typeof errorClassOrMsg !== "function") return { msg: errorClassOrMsg };
  return { errorClass: errorClassOrMsg, msgIncludes, msg };
}

function judge(error: unknown, expected: Expectation): unknown {
  const { errorClass, msgIncludes, msg } = expected;
  if (errorClass === undefined) return error;
  if (!(error instanceof Error)) {
    refuse(`A non-Error object was thrown: ${show(error)}`, msg);
  }
  const { message } = error;
  if (!(error instanceof errorClass)) {
    refuse(
      `Expected error to be instance of "${errorClass.name}", but was "${
        className(error)
      }": ${message}`,
      msg,
    );
  }
  if (msgIncludes && !message.includes(msgIncludes)) {
    refuse(
      `Expected error message to include ${show(msgIncludes)}, but got ${
        show(message)
      }`,
      msg,
    );
  }
  return error;
}

function refuse(what: string, msg: string | undefined): never {
  throw new AssertionError(msg ? `${what}\n  ${msg}` : what);
}

/** Deep equality: same class, same own properties, NaN equal, -0 equal to 0. */
export function equal(a: unknown, b: unknown): boolean {
  return compare(a, b, new Map());
}

function compare(
  a: unknown,
  b: unknown,
  seen: Map<unknown, unknown>,
): boolean {
  if (a === b || Object.is(a, b)) return true;
  if (typeof a !== "object" || typeof b !== "object" || !a || !b) return false;
  if (classOf(a) !== classOf(b)) return false;
  if (seen.get(a) === b) return true;
  seen.set(a, b);
  if (ArrayBuffer.isView(a) && !(a instanceof DataView)) {
    const left = a as Uint8Array, right = b as Uint8Array;
    if (left.length !== right.length) return false;
    for (let i = 0; i < left.length; i++) {
      if (left[i] !== right[i] && !Object.is(left[i], right[i])) return false;
    }
    return true;
  }
  if (a instanceof ArrayBuffer || a instanceof DataView) {
    return compare(bytesUnder(a), bytesUnder(b as DataView), seen);
  }
  if (a instanceof Date) {
    return Object.is(a.getTime(), (b as Date).getTime());
  }
  if (a instanceof RegExp || a instanceof URL) return String(a) === String(b);
  if (a instanceof WeakMap || a instanceof WeakSet || a instanceof WeakRef) {
    throw new TypeError(`Cannot compare ${className(a)} instances`);
  }
  if (a instanceof Set) return sameMembers([...a], [...b as Set<unknown>]);
  if (a instanceof Map) {
    return sameMembers([...a], [...b as Map<unknown, unknown>]);
  }
  const keys = ownKeys(a);
  return keys.length === ownKeys(b).length &&
    keys.every((key) =>
      Object.hasOwn(b, key) &&
      compare(a[key as keyof typeof a], b[key as keyof typeof b], seen)
    );
}

function sameMembers(a: unknown[], b: unknown[]): boolean {
  if (a.length !== b.length) return false;
  const left = [...b];
  for (const member of a) {
    const at = left.findIndex((other) => equal(member, other));
    if (at < 0) return false;
    left.splice(at, 1);
  }
  return true;
}

function ownKeys(value: object): PropertyKey[] {
  return Reflect.ownKeys(value).filter((key) =>
    Object.prototype.propertyIsEnumerable.call(value, key)
  );
}

/** Objects without a prototype count as plain ones. */
function classOf(value: object): unknown {
  return value.constructor ?? Object;
}

function className(value: unknown): string {
  if (typeof value !== "object" || value === null) {
    return value === null ? "null" : typeof value;
  }
  return (classOf(value) as { name: string }).name;
}

function bytesUnder(value: ArrayBuffer | DataView): Uint8Array {
  return value instanceof DataView
    ? new Uint8Array(value.buffer, value.byteOffset, value.byteLength)
    : new Uint8Array(value);
}

/** Lines of a difference that are shown. */
const SHOWN_LINES = 40;
/** Bytes of a long array that are shown, around the first difference. */
const SHOWN_BYTES = 16;

function difference(actual: unknown, expected: unknown): string {
  if (actual instanceof Uint8Array && expected instanceof Uint8Array) {
    return byteDifference(actual, expected);
  }
  const left = show(actual).split("\n"), right = show(expected).split("\n");
  if (left.length === 1 && right.length === 1) {
    return `\n  actual:   ${left[0]}\n  expected: ${right[0]}`;
  }
  let at = 0;
  while (at < left.length && left[at] === right[at]) at++;
  let end = 0;
  while (
    end < Math.min(left.length, right.length) - at &&
    left[left.length - 1 - end] === right[right.length - 1 - end]
  ) end++;
  const lines = [
    ...left.slice(Math.max(0, at - 3), at).map((line) => `    ${line}`),
    ...left.slice(at, left.length - end).map((line) => `  - ${line}`),
    ...right.slice(at, right.length - end).map((line) => `  + ${line}`),
  ];
  if (lines.length > SHOWN_LINES) {
    const more = lines.length - SHOWN_LINES;
    lines.splice(SHOWN_LINES, more, `    ... ${more} lines more`);
  }
  return ` (- actual, + expected)\n${lines.join("\n")}`;
}

function byteDifference(actual: Uint8Array, expected: Uint8Array): string {
  const least = Math.min(actual.length, expected.length);
  let at = 0;
  while (at < least && actual[at] === expected[at]) at++;
  const from = Math.max(0, at - 4);
  const line = (bytes: Uint8Array) =>
    `${className(bytes)}(${bytes.length}), from ${from}: ${
      Array.from(
        bytes.subarray(from, from + SHOWN_BYTES),
        (byte) => byte.toString(16).padStart(2, "0"),
      ).join(" ")
    }`;
  return `, first at byte ${at}\n  actual:   ${line(actual)}\n  expected: ${
    line(expected)
  }`;
}

function show(value: unknown, indent = "", above: unknown[] = []): string {
  if (typeof value === "string") return JSON.stringify(value);
  if (typeof value === "bigint") return `${value}n`;
  if (Object.is(value, -0)) return "-0";
  if (typeof value === "function") return `[function ${value.name}]`;
  if (typeof value !== "object" || value === null) return String(value);
  if (above.includes(value)) return "[circular]";
  if (value instanceof Uint8Array && value.length > SHOWN_BYTES) {
    const { length } = value;
    const start = Array.from(value.subarray(0, SHOWN_BYTES)).join(", ");
    return `${className(value)}(${length}) [ ${start}, ... ]`;
  }
  if (value instanceof Date) return `Date(${value.getTime()})`;
  if (value instanceof RegExp || value instanceof URL) return String(value);
  const name = className(value);
  const deeper = `${indent}  `;
  const inner = [...above, value];
  const showInner = (part: unknown) => show(part, deeper, inner);
  let parts: string[];
  let [open, shut] = ["{", "}"];
  if (Array.isArray(value) || ArrayBuffer.isView(value)) {
    const elements = value instanceof DataView
      ? bytesUnder(value)
      : value as unknown[];
    parts = Array.from(elements as unknown[], showInner);
    [open, shut] = ["[", "]"];
  } else if (value instanceof Set) {
    parts = Array.from(value, showInner);
  } else if (value instanceof Map) {
    parts = Array.from(value, ([k, v]) => `${showInner(k)} => ${showInner(v)}`);
  } else {
    parts = ownKeys(value).map((key) =>
      `${String(key)}: ${showInner(value[key as keyof typeof value])}`
    );
    if (value instanceof Error) parts.unshift(showInner(value.message));
  }
  const head = name === "Object" || name === "Array" ? "" : `${name} `;
  const one = `${head}${open} ${parts.join(", ")} ${shut}`;
  if (one.length <= 76 && !one.includes("\n")) {
    return parts.length ? one : `${head}${open}${shut}`;
  }
  return `${head}${open}\n${
    parts.map((part) => `${deeper}${part},\n`).join("")
  }${indent}${shut}`;
}
