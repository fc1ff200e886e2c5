/**
 * The engines that need no library, in the order in which they are tried.
 *
 * @module
 */

import type { Candidate } from "./backend.ts";
import { portable } from "./portable.ts";
import { setCandidates } from "./select.ts";

/** The engines of the `./web` export. */
export const webCandidates: readonly Candidate[] = [portable];

setCandidates(webCandidates);

export { backend, backends, useBackend } from "./select.ts";
export type { BackendInfo, BackendStatus } from "./select.ts";
