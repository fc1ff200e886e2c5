/**
 * The engines that need no library, in the order in which they are tried.
 *
 * @module
 */

import { portable } from "./portable.ts";
import { setCandidates } from "./select.ts";
import { wasm } from "./wasm.ts";

setCandidates([wasm, portable]);

export { backend, backends, useBackend } from "./select.ts";
