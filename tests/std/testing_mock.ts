/**
 * A stand-in for the parts of `@std/testing/mock` that the tests use, for
 * where the real package cannot be had. Same names, signatures and verdicts.
 */

import { AssertionError, equal } from "./assert.ts";

// deno-lint-ignore no-explicit-any
type Any = any;

/** One call of a spy. */
export interface SpyCall<
  Self = Any,
  Args extends unknown[] = Any[],
  Return = Any,
> {
  args: Args;
  returned?: Return;
  error?: Error;
  self?: Self;
}

/** A function that records its calls. */
export interface Spy<
  Self = Any,
  Args extends unknown[] = Any[],
  Return = Any,
> {
  (this: Self, ...args: Args): Return;
  original: (this: Self, ...args: Args) => Return;
  calls: SpyCall<Self, Args, Return>[];
  restored: boolean;
  restore(): void;
  [Symbol.dispose](): void;
}

/** A spy that answers instead of the original. */
export interface Stub<
  Self = Any,
  Args extends unknown[] = Any[],
  Return = Any,
> extends Spy<Self, Args, Return> {
  fake: (this: Self, ...args: Args) => Return;
}

/** Wrong use of a spy or stub. */
export class MockError extends Error {
  constructor(message: string) {
    super(message);
    this.name = "MockError";
  }
}

type Method = (...args: Any[]) => Any;

function record(original: Method, answer: Method): Spy {
  const calls: SpyCall[] = [];
  function spied(this: unknown, ...args: unknown[]): unknown {
    const call: SpyCall = { args };
    if (this !== undefined) call.self = this;
    try {
      return call.returned = answer.apply(this, args);
    } catch (error) {
      call.error = error as Error;
      throw error;
    } finally {
      calls.push(call);
    }
  }
  const refuse = () => {
    throw new MockError("A function has nothing to restore");
  };
  return Object.assign(spied, {
    original,
    calls,
    restored: false,
    restore: refuse,
    [Symbol.dispose]: refuse,
  }) as Spy;
}

function replace(target: Any, property: PropertyKey, answer?: Method): Spy {
  const original = target[property];
  if (typeof original !== "function") {
    throw new MockError(`"${String(property)}" is not a method`);
  }
  if ("calls" in original && "restore" in original) {
    throw new MockError(`"${String(property)}" is already spied on`);
  }
  const own = Object.getOwnPropertyDescriptor(target, property);
  const spied = record(original, answer ?? original);
  spied.restore = spied[Symbol.dispose] = () => {
    if (spied.restored) throw new MockError("Already restored");
    spied.restored = true;
    if (own) Object.defineProperty(target, property, own);
    else delete target[property];
  };
  Object.defineProperty(target, property, {
    configurable: true,
    enumerable: own?.enumerable ?? false,
    writable: true,
    value: spied,
  });
  return spied;
}

export function spy(): Spy<Any, Any[], undefined>;
export function spy<Self, Args extends unknown[], Return>(
  func: (this: Self, ...args: Args) => Return,
): Spy<Self, Args, Return>;
export function spy<Self, Prop extends keyof Self>(
  self: Self,
  property: Prop,
): Self[Prop] extends (...args: infer Args extends unknown[]) => infer Return
  ? Spy<Self, Args, Return>
  : never;
export function spy(target?: Any, property?: PropertyKey): Any {
  if (property !== undefined) return replace(target, property);
  const func = target ?? (() => {});
  return record(func, func);
}

export function stub<Self, Prop extends keyof Self>(
  self: Self,
  property: Prop,
  func?: Self[Prop] extends (...args: infer Args extends unknown[]) => infer R
    ? (this: Self, ...args: Args) => R
    : never,
): Self[Prop] extends (...args: infer Args extends unknown[]) => infer Return
  ? Stub<Self, Args, Return>
  : never {
  const fake = (func ?? (() => undefined)) as Method;
  return Object.assign(replace(self, property, fake), { fake }) as Any;
}

/** Answers with `values` in turn; an Error among them is thrown. */
export function returnsNext<Return>(
  values: Iterable<Return | Error>,
): (...args: Any[]) => Return {
  const iterator = values[Symbol.iterator]();
  let calls = 0;
  return () => {
    const { value, done } = iterator.next();
    if (done) throw new MockError(`Expected at most ${calls} calls`);
    calls++;
    if (value instanceof Error) throw value;
    return value;
  };
}

export function assertSpyCalls(
  spied: Spy<Any, Any, Any>,
  expectedCalls: number,
): void {
  const { length } = spied.calls;
  if (length === expectedCalls) return;
  throw new AssertionError(`Expected ${expectedCalls} calls, got ${length}`);
}

/** What a call is expected to have been. */
export interface ExpectedSpyCall {
  args?: unknown[];
  self?: unknown;
  returned?: unknown;
  error?: {
    Class?: abstract new (...args: Any[]) => Error;
    msgIncludes?: string;
  };
}

export function assertSpyCall(
  spied: Spy<Any, Any, Any>,
  callIndex: number,
  expected: ExpectedSpyCall = {},
): void {
  const call = spied.calls[callIndex];
  const refuse = (what: string) => {
    throw new AssertionError(`Call ${callIndex}: ${what}`);
  };
  if (call === undefined) return refuse(`only ${spied.calls.length} were made`);
  if (expected.args && !equal(call.args, expected.args)) {
    refuse("not the expected arguments");
  }
  if ("self" in expected && !equal(call.self, expected.self)) {
    refuse("not the expected this");
  }
  if ("returned" in expected) {
    if ("error" in expected) {
      throw new TypeError("A call cannot both return and throw");
    }
    if (call.error || !equal(call.returned, expected.returned)) {
      refuse("not the expected return value");
    }
  }
  if (expected.error) {
    const { Class = Error, msgIncludes = "" } = expected.error;
    if (
      !(call.error instanceof Class) ||
      !call.error.message.includes(msgIncludes)
    ) refuse(`not the expected error: ${call.error}`);
  }
}
