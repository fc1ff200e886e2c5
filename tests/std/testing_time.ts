/**
 * A stand-in for the parts of `@std/testing/time` that the tests use, for
 * where the real package cannot be had. Same names, signatures and behaviour:
 * while a `FakeTime` lives, clocks and timers move only when told to.
 */

interface Timer {
  id: number;
  due: number;
  every: number | undefined;
  run: () => void;
}

const { Date: RealDate, setTimeout: realSetTimeout } = globalThis;

/** Wrong use of `FakeTime`. */
export class TimeError extends Error {
  constructor(message: string) {
    super(message);
    this.name = "TimeError";
  }
}

let living: FakeTime | undefined;

export class FakeTime {
  /** The time in ms at which it started. */
  readonly start: number;
  #now: number;
  #lastId = 0;
  #timers: Timer[] = [];
  #real: PropertyDescriptorMap = {};

  constructor(start: number | string | Date | null = RealDate.now()) {
    if (living) throw new TimeError("Time is already faked");
    living = this;
    this.start = this.#now = start === null
      ? RealDate.now()
      : new RealDate(start).getTime();
    const time = () => this.#now;
    const clear = (id?: number) => this.#clear(id);
    this.#replace({
      Date: class extends RealDate {
        constructor(...args: unknown[]) {
          super(...(args.length ? args : [time()]) as [number]);
        }
        static override now(): number {
          return time();
        }
      },
      setTimeout: (run: () => void, delay?: number, ...args: unknown[]) =>
        this.#add(run, delay, args, false),
      setInterval: (run: () => void, delay?: number, ...args: unknown[]) =>
        this.#add(run, delay, args, true),
      clearTimeout: clear,
      clearInterval: clear,
    });
  }

  get now(): number {
    return this.#now;
  }
  set now(value: number) {
    if (value < this.#now) throw new RangeError("Time cannot go backward");
    for (let timer = this.#next(); timer; timer = this.#next()) {
      if (timer.due > value) break;
      this.#fire(timer);
    }
    this.#now = value;
  }

  /** Moves the clock by `ms` milliseconds and runs what falls due. */
  tick(ms = 0): void {
    this.now += ms;
  }

  /** As `tick`, with promises settled before and after. */
  async tickAsync(ms = 0): Promise<void> {
    await this.runMicrotasks();
    this.now += ms;
    await this.runMicrotasks();
  }

  /** Runs the next timer; false when there is none. */
  next(): boolean {
    const timer = this.#next();
    if (timer) this.#fire(timer);
    return timer !== undefined;
  }

  /** As `next`, with promises settled before and after. */
  async nextAsync(): Promise<boolean> {
    await this.runMicrotasks();
    const ran = this.next();
    await this.runMicrotasks();
    return ran;
  }

  /** Runs timers until none is left. */
  runAll(): void {
    while (this.next());
  }

  /** As `runAll`, with promises settled in between. */
  async runAllAsync(): Promise<void> {
    while (await this.nextAsync());
  }

  /** Settles the promises that can be settled without time passing. */
  async runMicrotasks(): Promise<void> {
    await new Promise((resolve) => realSetTimeout(resolve, 0));
  }

  /** Gives the real clock and timers back. */
  restore(): void {
    if (living !== this) throw new TimeError("Time is already restored");
    living = undefined;
    Object.defineProperties(globalThis, this.#real);
    this.#timers = [];
  }

  [Symbol.dispose](): void {
    this.restore();
  }

  #replace(values: Record<string, unknown>): void {
    for (const [name, value] of Object.entries(values)) {
      const real = Object.getOwnPropertyDescriptor(globalThis, name);
      if (real) this.#real[name] = real;
      Object.defineProperty(globalThis, name, {
        configurable: true,
        enumerable: true,
        writable: true,
        value,
      });
    }
  }

  #add(
    run: (...args: unknown[]) => void,
    delay: number | undefined,
    args: unknown[],
    again: boolean,
  ): number {
    const wait = Math.max(0, Number(delay) || 0);
    const id = ++this.#lastId;
    this.#timers.push({
      id,
      due: this.#now + wait,
      every: again ? wait : undefined,
      run: () => run(...args),
    });
    return id;
  }

  #clear(id: number | undefined): void {
    this.#timers = this.#timers.filter((timer) => timer.id !== id);
  }

  /** Earliest first; of those at the same time, the one set first. */
  #next(): Timer | undefined {
    return this.#timers.reduce<Timer | undefined>(
      (first, timer) => first && first.due <= timer.due ? first : timer,
      undefined,
    );
  }

  #fire(timer: Timer): void {
    this.#clear(timer.id);
    this.#now = Math.max(this.#now, timer.due);
    if (timer.every !== undefined) {
      this.#timers.push({ ...timer, due: timer.due + timer.every });
    }
    timer.run();
  }
}
