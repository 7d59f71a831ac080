// The server by https, for clients that send accounts and tokens no other way.
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { request } from 'node:http';
import { createServer } from 'node:https';
import { join } from 'node:path';

const { BASE_URL } = process.env;

/** A proxy with a certificate of an authority of its own, both in the directory: its address, and the file of the authority. */
export async function secured(directory) {
  const at = (name) => join(directory, name);
  const openssl = (...args) => execFileSync('openssl', args, { stdio: 'pipe' });
  const curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '2'];
  openssl('req', '-x509', ...curve, '-keyout', at('authority.key'), '-out', at('authority.pem'), '-subj', '/CN=authority');
  openssl('req', '-x509', ...curve, '-keyout', at('key.pem'), '-out', at('cert.pem'), '-subj', '/CN=localhost', '-CA', at('authority.pem'), '-CAkey', at('authority.key'), '-addext', 'subjectAltName=DNS:localhost', '-addext', 'basicConstraints=critical,CA:FALSE');
  const [key, cert] = [readFileSync(at('key.pem')), readFileSync(at('cert.pem'))];
  const server = createServer({ key, cert }, (incoming, outgoing) => {
    const passed = request(BASE_URL + incoming.url, { method: incoming.method, headers: { ...incoming.headers, host: new URL(BASE_URL).host } }, (answer) => {
      outgoing.writeHead(answer.statusCode, answer.statusMessage, answer.headers);
      answer.pipe(outgoing);
    });
    passed.on('error', () => outgoing.destroy());
    incoming.pipe(passed);
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  return { server, cert: at('authority.pem'), url: `https://localhost:${server.address().port}` };
}
