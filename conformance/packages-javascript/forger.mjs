// A registry in front of another one, which changes the signatures of one package on the way.
//
//   UPSTREAM   scheme, host and port of the other one
//   FORGED     name of the package
import { createServer } from 'node:http';

const { FORGED, UPSTREAM } = process.env;

/** The same signature with another last byte. */
function forged(sig) {
  const bytes = Buffer.from(sig, 'base64');
  bytes[bytes.length - 1] ^= 1;
  return bytes.toString('base64');
}

const server = createServer(async (request, response) => {
  try {
    const { authorization = '', accept = '*/*' } = request.headers;
    const answer = await fetch(`${UPSTREAM}${request.url}`, { headers: { authorization, accept } });
    let body = await answer.text();
    if (answer.ok && request.url.endsWith(`/${FORGED}`)) {
      const document = JSON.parse(body);
      for (const { dist } of Object.values(document.versions)) for (const one of dist.signatures) one.sig = forged(one.sig);
      body = JSON.stringify(document);
    }
    response.writeHead(answer.status, { 'content-type': answer.headers.get('content-type') ?? 'text/plain' }).end(body);
  } catch (error) {
    response.writeHead(502).end(String(error));
  }
});
server.listen(0, '127.0.0.1', () => console.log(server.address().port));
