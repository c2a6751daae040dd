/**
 * Says something behind all that was said before, and is done when it is out. What others count by goes through here:
 * `console.log` does not wait for what is still on its way to a slow reader, and lands in the middle of a line of it.
 */
export function say(text: string): Promise<void> {
  return new Promise((resolve, reject) => {
    process.stdout.write(text, (error) => (error ? reject(error) : resolve()));
  });
}

/**
 * Runs a command, hands on what it says as it comes, its complaints in their place, and tells its exit code. Where nobody
 * takes what it says any more, it is ended.
 */
export async function runAndSay(
  words: readonly string[],
  where: { cwd?: string; env?: NodeJS.ProcessEnv } = {},
  hear: (part: string) => unknown = say,
): Promise<number> {
  // One pipe for both, so that they arrive in the order in which they were said.
  const child = Bun.spawn(['sh', '-c', 'exec "$@" 2>&1', 'sh', ...words], {
    ...where,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  try {
    for await (const part of child.stdout.pipeThrough(new TextDecoderStream())) await hear(part);
    return await child.exited;
  } finally {
    child.kill('SIGKILL');
    await child.exited;
  }
}
