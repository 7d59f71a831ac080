// The README's tour, run as it is printed: every block of commands in one shell, and what it says they print.
//
//   BOWLINE   the server's binary
// skopeo and openssl are on the PATH. Replaced in the text are the address of the server, which listens on a port that
// is free, and the image that is copied, which lies in a directory.
import { spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { check, checks } from '../lib.mjs';

const root = join(dirname(fileURLToPath(import.meta.url)), '../..');
const work = mkdtempSync(join(tmpdir(), 'tour.'));
const PRINTED_ADDRESS = '127.0.0.1:8080';
const PRINTED_IMAGE = 'docker://registry.example.com/app:1.0';

/** The tour's blocks: the commands, and the text that the README shows below them, if any. */
function blocks(readme) {
  const tour = readme.split('\n## A tour of five minutes\n')[1].split('\n## ')[0];
  const fences = [...tour.matchAll(/^```(\w*)\n(.*?)^```$/gms)].map(([, language, text]) => ({ language, text }));
  return fences.flatMap(({ language, text }, at) => {
    if (language !== 'sh') return [];
    const next = fences[at + 1];
    return [{ commands: text, printed: next?.language === '' ? next.text : '' }];
  });
}

/** What may differ between two runs, and how columns are set apart, made equal. */
const plain = (text) => text.trim()
  .replace(/\b[0-9a-f]{40}(\/[0-9a-f]{16})*/g, 'UIDP')
  .replace(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, 'TIME')
  .replace(/[ \t]+/g, ' ')
  .split('\n');

/** Whether the output ends with these lines; resources are listed in the order of their UIDPs, which are drawn. */
const endsWith = (output, printed) => {
  const expected = plain(printed).sort();
  return plain(output).slice(-expected.length).sort().join('\n') === expected.join('\n');
};

/** A directory with an image in the layout of the specification. */
function image(directory) {
  const blob = (content) => {
    const hex = createHash('sha256').update(content).digest('hex');
    writeFileSync(join(directory, 'blobs/sha256', hex), content);
    return { digest: `sha256:${hex}`, size: Buffer.byteLength(content) };
  };
  mkdirSync(join(directory, 'blobs/sha256'), { recursive: true });
  const layer = spawnSync('tar', ['-czf', '-', '-C', work, 'policy.json']).stdout;
  const config = JSON.stringify({ architecture: 'amd64', os: 'linux', rootfs: { type: 'layers', diff_ids: [] }, config: {} });
  const oci = (kind) => `application/vnd.oci.image.${kind}`;
  const manifest = JSON.stringify({
    schemaVersion: 2,
    mediaType: oci('manifest.v1+json'),
    config: { mediaType: oci('config.v1+json'), ...blob(config) },
    layers: [{ mediaType: oci('layer.v1.tar+gzip'), ...blob(layer) }],
  });
  const entry = { mediaType: oci('manifest.v1+json'), ...blob(manifest), annotations: { 'org.opencontainers.image.ref.name': '1.0' } };
  writeFileSync(join(directory, 'index.json'), JSON.stringify({ schemaVersion: 2, manifests: [entry] }));
  writeFileSync(join(directory, 'oci-layout'), '{"imageLayoutVersion":"1.0.0"}');
}

const free = () => new Promise((resolve) => {
  const server = createServer().listen(0, '127.0.0.1', () => {
    const { port } = server.address();
    server.close(() => resolve(port));
  });
});

// ---- the directory and the server ----------------------------------------------------------------

mkdirSync(join(work, 'target/release'), { recursive: true });
mkdirSync(join(work, '.config/containers'), { recursive: true });
// No link: the credential helper is put beside the program itself.
copyFileSync(process.env.BOWLINE, join(work, 'target/release/bowline'));
symlinkSync(join(root, 'examples'), join(work, 'examples'));
writeFileSync(join(work, 'policy.json'), '{"default":[{"type":"insecureAcceptAnything"}]}');
symlinkSync(join(work, 'policy.json'), join(work, '.config/containers/policy.json'));
image(join(work, 'app'));

const [address, admin] = [`127.0.0.1:${await free()}`, `127.0.0.1:${await free()}`];
const env = { HOME: work, PATH: process.env.PATH, LANG: 'C.UTF-8' };
const server = spawn('target/release/bowline', ['serve', '--listen', address, '--admin-listen', admin], { cwd: work, env, stdio: 'ignore' });
for (let tries = 0; !(await fetch(`http://${admin}/readyz`).then(({ ok }) => ok, () => false)); tries += 1) {
  if (tries > 300 || server.exitCode !== null) throw new Error('the server does not become ready');
  await new Promise((resolve) => setTimeout(resolve, 100));
}

// ---- the tour ------------------------------------------------------------------------------------

try {
  const tour = blocks(readFileSync(join(root, 'README.md'), 'utf8'));
  check('the README has a tour', tour.length >= 7, JSON.stringify(tour));
  const replaced = tour.map(({ commands }) => commands.replaceAll(PRINTED_ADDRESS, address).replaceAll(PRINTED_IMAGE, `oci:${join(work, 'app')}:1.0`));
  // Each block leaves its output and the commands that failed; what it exports stays for the next.
  const block = (commands, at) => `trap 'echo "failed: $BASH_COMMAND" >>failed-${at}' ERR\n{ ${commands}\n} >block-${at} 2>&1\n`;
  writeFileSync(join(work, 'tour.sh'), replaced.map(block).join(''));
  spawnSync('bash', ['-E', 'tour.sh'], { cwd: work, env, stdio: 'inherit', timeout: 120_000 });
  const read = (name) => { try { return readFileSync(join(work, name), 'utf8'); } catch { return ''; } };
  tour.forEach(({ commands, printed }, at) => {
    const [first] = commands.split('\n');
    const output = read(`block-${at}`);
    const failures = read(`failed-${at}`);
    // What the README shows as refused is refused, and nothing else is.
    const isRefused = printed.startsWith('error: ');
    check(isRefused ? `refused: ${first}` : `works: ${first}`, (failures !== '') === isRefused, failures + output);
    if (printed) check(`prints what the README shows: ${first}`, endsWith(output, printed), `${output}\n--- the README shows\n${printed}`);
  });
  console.log(`  ${checks()} checks`);
} finally {
  server.kill();
  await new Promise((resolve) => server.once('exit', resolve));
  rmSync(work, { recursive: true, force: true });
}
