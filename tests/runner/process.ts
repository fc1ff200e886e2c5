/** Starts other programs, bounded in time. */

/** How a program ended. */
export interface Ended {
  /** Its exit code; 124 when it ran past its limit. */
  code: number;
  /** Standard output and error together. */
  output: string;
  seconds: number;
}

/** Runs `args` and collects what it prints; never rejects. */
export async function run(
  [program, ...args]: string[],
  options: { limit: number; cwd?: string; env?: Record<string, string> },
): Promise<Ended> {
  const started = performance.now();
  const late = new AbortController();
  const timer = setTimeout(() => late.abort(), options.limit * 1000);
  let code: number, output: string;
  try {
    const ended = await new Deno.Command(program, {
      args,
      cwd: options.cwd,
      env: { NO_COLOR: "1", ...options.env },
      stdin: "null",
      signal: late.signal,
    }).output();
    code = late.signal.aborted ? 124 : ended.code;
    const decoder = new TextDecoder();
    output = decoder.decode(ended.stdout) + decoder.decode(ended.stderr);
  } catch (error) {
    code = 127;
    output = String(error);
  } finally {
    clearTimeout(timer);
  }
  if (code === 124) output += `\nRan past ${options.limit} s and was stopped`;
  return { code, output, seconds: (performance.now() - started) / 1000 };
}

/** The path of a `file:` URL. */
export function fromFileUrl(url: URL): string {
  return decodeURIComponent(url.pathname);
}
