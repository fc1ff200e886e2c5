/** Runs the same tests on every backend that this runtime has. */

import { describe, it } from "node:test";
import { backend, backends, useBackend } from "@wsframe/wsframe";
import type { BackendName } from "@wsframe/wsframe";

/** The backends that can be used here. */
export const available: BackendName[] = backends()
  .filter(({ available }) => available)
  .map(({ name }) => name);

/** Does something with another backend in use, and goes back to the one before. */
export function withBackend<T>(name: BackendName, action: () => T): T {
  const before = backend().name;
  useBackend(name);
  try {
    return action();
  } finally {
    useBackend(before);
  }
}

/** Declares one test per backend. */
export function itOnEachBackend(
  title: string,
  test: (name: BackendName) => void,
): void {
  describe(title, () => {
    for (const name of available) {
      it(`on ${name}`, () => withBackend(name, () => test(name)));
    }
  });
}
