/**
 * The engines that need no library, in the order in which they are tried.
 *
 * @module
 */

import type { Candidate } from "./backend.ts";
import { portable } from "./portable.ts";
import { setCandidates } from "./select.ts";
import { wasm } from "./wasm.ts";

/** The engines of the `./web` export. */
export const webCandidates: readonly Candidate[] = [wasm, portable];

setCandidates(webCandidates);

export { backend, backends, useBackend } from "./select.ts";
