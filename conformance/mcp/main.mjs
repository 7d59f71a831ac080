// The tools of `bowline mcp`, as the protocol's own client for Python lists and calls them.
//
//   BASE_URL, OPERATOR_TOKEN   the server
//   BOWLINE                    its binary
//   MCP                        directory with the virtual environment `venv`
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { check, checks, owned } from '../lib.mjs';

const { BASE_URL, BOWLINE, MCP } = process.env;
const work = mkdtempSync(join(tmpdir(), 'mcp.'));
const env = { HOME: work, PATH: process.env.PATH, BOWLINE, BASE_URL };

function run(command, args, more = {}) {
  const { status, stdout, stderr, error } = spawnSync(command, args, { env: { ...env, ...more }, cwd: work, encoding: 'utf8', timeout: 120_000 });
  if (error) throw error;
  return { status, stdout, stderr };
}

const { organization, identity, upstream } = await owned('mcp', 'walk-mcp');
const login = run(BOWLINE, ['auth', 'login', '--identity', identity, '--identity-token', upstream, '--api', BASE_URL]);
check('the owner signs in', login.status === 0, login.stderr);

// The protocol of 2026 has no handshake; clients of before begin with one.
for (const mode of ['auto', 'legacy']) {
  const client = run(join(MCP, 'venv/bin/python'), [join(import.meta.dirname, 'client.py'), mode], { ORGANIZATION: organization });
  const results = client.stdout.split('\n').filter(Boolean).map((line) => JSON.parse(line));
  for (const { name, ok, detail } of results) check(`${mode}: ${name}`, ok, detail);
  check(`${mode}: the client ends without an error`, client.status === 0 && results.length > 8, client.stderr);
}

rmSync(work, { recursive: true });
console.log(`mcp: ${checks()} checks passed`);
