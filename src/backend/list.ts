/**
 * All engines, in the order in which they are tried. A new one is one line here.
 *
 * @module
 */

import { bunFfi } from "./bun_ffi.ts";
import { denoFfi } from "./deno_ffi.ts";
import { webCandidates } from "./list_web.ts";
import { nodeApi } from "./node_api.ts";
import { setCandidates } from "./select.ts";

setCandidates([bunFfi, denoFfi, nodeApi, ...webCandidates]);

export { backend, backends, useBackend } from "./select.ts";
