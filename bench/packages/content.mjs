// Generated packages, as a tree of files that the upstream and nginx serve alike.
//
//   python/simple/index.json           all projects
//   python/simple/NAME/index.json      the page of one
//   python/files/FILE                  wheels, and their metadata with `.metadata` at the end
//   npm/NAME/document.json             the whole document of a package
//   npm/NAME/-/FILE                    its files
//   echo/FILE                          what another server returned, for nginx to return the same bytes
import { createHash, randomBytes } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { crc32, gzipSync } from 'node:zlib';

const PUBLISHED = '2020-01-01T00:00:00.000Z';
const digest = (algorithm, bytes, form = 'hex') => createHash(algorithm).update(bytes).digest(form);
const range = (length, each) => Array.from({ length }, (_, n) => each(n));

/**
 * Packages of a line: `{ name, version, requires, bytes, hasMetadata }`; all versions of a name are on one page. Without
 * metadata, a page says nothing of the files with the metadata of wheels.
 */
export function writePython(root, packages) {
  mkdirSync(join(root, 'python/files'), { recursive: true });
  const pages = new Map();
  for (const one of packages) {
    pages.set(one.name, [...(pages.get(one.name) ?? []), writeWheel(join(root, 'python/files'), one)]);
  }
  const meta = { 'api-version': '1.1' };
  for (const [name, files] of pages) {
    mkdirSync(join(root, 'python/simple', name), { recursive: true });
    writeFileSync(join(root, 'python/simple', name, 'index.json'), JSON.stringify({ meta, name, versions: files.map(({ version }) => version), files: files.map(({ listed }) => listed) }));
  }
  const projects = [...pages.keys()].map((name) => ({ name }));
  writeFileSync(join(root, 'python/simple/index.json'), JSON.stringify({ meta, projects }));
}

function writeWheel(directory, { name, version, requires = [], bytes, hasMetadata = true }) {
  const module = name.replaceAll('-', '_');
  const info = `${module}-${version}.dist-info`;
  const metadata = ['Metadata-Version: 2.1', `Name: ${name}`, `Version: ${version}`, 'License: MIT', ...requires.map((other) => `Requires-Dist: ${other}`), '', 'A package.', ''].join('\n');
  const members = {
    [`${module}/__init__.py`]: `version = "${version}"\n`,
    [`${module}/data.bin`]: randomBytes(bytes),
    [`${info}/METADATA`]: metadata,
    [`${info}/WHEEL`]: 'Wheel-Version: 1.0\nGenerator: bench\nRoot-Is-Purelib: true\nTag: py3-none-any\n',
  };
  members[`${info}/RECORD`] = [...Object.keys(members), `${info}/RECORD`].map((path) => `${path},,\n`).join('');
  const file = zip(members);
  const filename = `${module}-${version}-py3-none-any.whl`;
  writeFileSync(join(directory, filename), file);
  writeFileSync(join(directory, `${filename}.metadata`), metadata);
  const listed = {
    filename, url: `../../files/${filename}`, hashes: { sha256: digest('sha256', file) }, size: file.length,
    'upload-time': PUBLISHED, 'requires-python': '>=3.8', yanked: false,
    ...(hasMetadata && { 'core-metadata': { sha256: digest('sha256', metadata) } }),
  };
  return { version, listed };
}

/** Packages of a line: `{ name, versions, bytes, dependencies }`. Files exist for packages with `bytes` alone. */
export function writeNpm(root, base, packages) {
  return packages.map(({ name, versions = ['1.0.0'], bytes, dependencies }) => {
    const directory = join(root, 'npm', name);
    mkdirSync(join(directory, '-'), { recursive: true });
    const manifests = versions.map((version) => {
      const file = `${name}-${version}.tgz`;
      const manifest = { name, version, license: 'MIT', ...(dependencies && { dependencies }) };
      const content = bytes === undefined ? Buffer.from(file) : tarball(manifest, bytes);
      if (bytes !== undefined) writeFileSync(join(directory, '-', file), content);
      const dist = { tarball: `${base}${name}/-/${file}`, integrity: `sha512-${digest('sha512', content, 'base64')}`, shasum: digest('sha1', content) };
      return [version, { ...manifest, dist }];
    });
    const time = Object.fromEntries(versions.map((version) => [version, PUBLISHED]));
    const document = { _id: name, name, 'dist-tags': { latest: versions.at(-1) }, time: { created: PUBLISHED, modified: PUBLISHED, ...time }, versions: Object.fromEntries(manifests) };
    writeFileSync(join(directory, 'document.json'), JSON.stringify(document));
    return { name, version: versions.at(-1), integrity: manifests.at(-1)[1].dist.integrity };
  });
}

/** Versions 1.0.0, 1.1.0 and so on. */
export const versions = (count) => range(count, (n) => `1.${n}.0`);

/** Files that make the size of a package: modules, as many packages have them, rather than one large file. */
const MODULES = 5;

function tarball(manifest, bytes) {
  const modules = range(MODULES, (n) => [`package/lib/module-${n}.js`, randomBytes(Math.ceil(bytes / MODULES))]);
  const members = Object.entries({ 'package/package.json': JSON.stringify(manifest), 'package/index.js': 'module.exports = {};\n', ...Object.fromEntries(modules) });
  const padded = (content) => Buffer.concat([content, Buffer.alloc((512 - (content.length % 512)) % 512)]);
  const parts = members.flatMap(([path, content]) => [tarHeader(path, Buffer.byteLength(content)), padded(Buffer.from(content))]);
  return gzipSync(Buffer.concat([...parts, Buffer.alloc(1024)]), { level: 1 });
}

function tarHeader(path, size) {
  const header = Buffer.alloc(512);
  const octal = (value, length) => `${value.toString(8).padStart(length - 1, '0')}\0`;
  header.write(path, 0);
  header.write(octal(0o644, 8) + octal(0, 8) + octal(0, 8) + octal(size, 12) + octal(1577836800, 12), 100);
  header.write('        0', 148); // Blanks in place of the sum, and the type of a file.
  header.write('ustar\x0000', 257);
  header.write(`${octal(header.reduce((sum, byte) => sum + byte, 0), 7)} `, 148);
  return header;
}

/** An archive without compression: what installers unpack is not measured here. */
function zip(members) {
  const [locals, directory] = [[], []];
  let offset = 0;
  for (const [path, text] of Object.entries(members)) {
    const [name, content] = [Buffer.from(path), Buffer.from(text)];
    const facts = Buffer.alloc(26);
    facts.writeUInt16LE(20, 0);
    facts.writeUInt32LE(0x5c210000, 6); // 2026-01-01
    facts.writeUInt32LE(crc32(content), 10);
    facts.writeUInt32LE(content.length, 14);
    facts.writeUInt32LE(content.length, 18);
    facts.writeUInt16LE(name.length, 22);
    const tail = Buffer.alloc(14);
    tail.writeUInt32LE(offset, 10);
    directory.push(Buffer.from('PK\x01\x02\x14\x00', 'latin1'), facts, tail, name);
    locals.push(Buffer.from('PK\x03\x04', 'latin1'), facts, name, content);
    offset += 4 + facts.length + name.length + content.length;
  }
  const central = Buffer.concat(directory);
  const end = Buffer.alloc(22);
  end.write('PK\x05\x06', 0, 'latin1');
  for (const at of [8, 10]) end.writeUInt16LE(Object.keys(members).length, at);
  end.writeUInt32LE(central.length, 12);
  end.writeUInt32LE(offset, 16);
  return Buffer.concat([...locals, central, end]);
}
