/**
 * All engines, in the order in which they are tried. A new one is one line here.
 *
 * @module
 */

import { bunFfi } from "./bun_ffi.ts";
import { denoFfi } from "./deno_ffi.ts";
import { nodeApi } from "./node_api.ts";
import { portable } from "./portable.ts";
import { setCandidates } from "./select.ts";
import { wasm } from "./wasm.ts";

setCandidates([bunFfi, denoFfi, nodeApi, wasm, portable]);

export { backend, backends, useBackend } from "./select.ts";
