/** A reference server: `Bun.serve` returning one constant response, read from a JSON file with headers and body. */
const [port, file = ''] = process.argv.slice(2);
const { headers, body } = (await Bun.file(file).json()) as { headers: Record<string, string>; body: string };
Bun.serve({
  hostname: '127.0.0.1',
  port: Number(port),
  development: false,
  fetch: () => new Response(body, { headers }),
});

export {};
