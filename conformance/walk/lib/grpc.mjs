// gRPC by hand: protobuf fields and frames over node's HTTP/2 with prior
// knowledge, so that no client library stands between the check and the wire.
import http2 from 'node:http2';

// ---- protobuf ---------------------------------------------------------------

export function varint(value) {
  const bytes = [];
  let rest = BigInt(value);
  do {
    let byte = Number(rest & 0x7fn);
    rest >>= 7n;
    if (rest > 0n) byte |= 0x80;
    bytes.push(byte);
  } while (rest > 0n);
  return Buffer.from(bytes);
}

// A length-delimited field: string, bytes or a nested message.
export function field(number, value) {
  const bytes = Buffer.isBuffer(value) ? value : Buffer.from(value);
  return Buffer.concat([varint((number << 3) | 2), varint(bytes.length), bytes]);
}

export const number = (n, value) => Buffer.concat([varint(n << 3), varint(value)]);

// Field number -> list of values (Buffer, or BigInt for varints).
export function fields(bytes) {
  const found = {};
  let at = 0;
  const next = () => {
    let value = 0n;
    for (let shift = 0n; ; shift += 7n) {
      const byte = bytes[at++];
      value |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
  };
  while (at < bytes.length) {
    const tag = Number(next());
    const kind = tag & 7;
    let value;
    if (kind === 0) value = next();
    else if (kind === 2) { const size = Number(next()); value = bytes.subarray(at, at + size); at += size; }
    else if (kind === 1) { value = bytes.subarray(at, at + 8); at += 8; }
    else if (kind === 5) { value = bytes.subarray(at, at + 4); at += 4; }
    else throw new Error(`wire type ${kind}`);
    (found[tag >> 3] ??= []).push(value);
  }
  return found;
}

export const text = (found, n) => found[n]?.[0]?.toString() ?? '';

// ---- one unary call ---------------------------------------------------------

export function unary(base, method, message, token) {
  return new Promise((resolve, reject) => {
    const session = http2.connect(base);
    session.on('error', reject);
    const frame = Buffer.alloc(5);
    frame.writeUInt32BE(message.length, 1);
    const stream = session.request({
      ':method': 'POST', ':path': `/${method}`, 'content-type': 'application/grpc', te: 'trailers',
      ...(token && { authorization: `Bearer ${token}` }),
    });
    const chunks = [];
    let headers = {};
    let trailers = {};
    stream.on('response', (h) => { headers = h; });
    stream.on('trailers', (t) => { trailers = t; });
    stream.on('data', (chunk) => chunks.push(chunk));
    stream.on('error', reject);
    stream.setTimeout(30_000, () => reject(new Error(`${method} timed out`)));
    stream.on('end', () => {
      session.close();
      const all = { ...headers, ...trailers };
      const body = Buffer.concat(chunks);
      const details = all['grpc-status-details-bin'];
      resolve({
        http: headers[':status'],
        type: headers['content-type'],
        code: Number(all['grpc-status']),
        message: decodeURIComponent(all['grpc-message'] ?? ''),
        details: details ? statusDetails(Buffer.from(details, 'base64')) : [],
        bytes: body.length >= 5 ? body.subarray(5, 5 + body.readUInt32BE(1)) : Buffer.alloc(0),
      });
    });
    stream.end(Buffer.concat([frame, message]));
  });
}

// google.rpc.Status.details as [{ type, fields }].
function statusDetails(bytes) {
  return (fields(bytes)[3] ?? []).map((any) => {
    const inner = fields(any);
    return { type: text(inner, 1).replace('type.googleapis.com/', ''), fields: fields(inner[2]?.[0] ?? Buffer.alloc(0)) };
  });
}
