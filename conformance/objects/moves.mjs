// Everything in PostgreSQL and a bucket, moved to a directory and back, and backed up in the bucket in between.
import { join } from 'node:path';

import { check } from '../lib.mjs';

/**
 * `bowline` runs the command line, `serve` a server with these options, `suite` the registry suite; `pull` gives the bytes of
 * the layer of a tag, which must be `layer`; `createDatabase` makes an empty one.
 */
export async function moves({ work, bowline, serve, stop, pull, push, layer, suite, database, key, createDatabase }) {
  const directory = join(work, 'moved');
  const moved = bowline('migrate', '--from', database, '--from-blobs', 's3://blobs/some/where', '--key-file', key, '--to', directory);
  check('everything moves from a bucket and PostgreSQL to a directory', moved.includes('every row compared'), moved);
  let server = await serve('--data-dir', directory);
  check('the token of before pulls there', (await pull()).equals(layer));
  check('an image is pushed there', (await push('v2')).status === 201);
  suite('the registry suite passes there');

  const identity = join(work, 'identity');
  const recipient = bowline('backup', 'keygen', identity);
  const archive = 's3://blobs/archive';
  const made = bowline('backup', 'create', '--to', archive, '--recipient', recipient, '--data-dir', directory);
  check('a backup goes to a bucket while the server runs', / of them new/.test(made), made);
  const from = ['--from', archive, '--identity', identity, '--key-file', join(directory, 'key')];
  const whole = bowline('backup', 'verify', ...from);
  check('it is whole', whole.includes('is whole'), whole);
  const again = bowline('backup', 'create', '--to', archive, '--recipient', recipient, '--data-dir', directory, '--keep', '1');
  check('a second one writes few blobs, and the first is removed', again.includes('1 older backups removed'), again);
  check('one is listed', bowline('backup', 'list', '--from', archive).split('\n').length === 1);
  await stop(server);

  const back = await createDatabase('back');
  const returned = bowline('migrate', '--from', directory, '--to', back, '--to-blobs', 's3://blobs/back');
  check('everything moves to another database and another place in the bucket', returned.includes('every row compared'), returned);
  server = await serve('--database-url', back, '--key-file', key, '--blob-url', 's3://blobs/back');
  check('the token of before pulls there too', (await pull()).equals(layer) && (await pull('v2')).equals(layer));
  suite('the registry suite passes there too');
  await stop(server);
  const verified = bowline('registry', 'verify', '--database-url', back, '--key-file', key, '--blob-url', 's3://blobs/back');
  check('every blob is whole', / 0 bad$/.test(verified), verified);

  const third = await createDatabase('restored');
  const restored = bowline('restore', ...from, '--to', third, '--to-blobs', 's3://blobs/restored');
  check('the backup restores to a third', restored.includes('every row compared'), restored);
  server = await serve('--database-url', third, '--key-file', key, '--blob-url', 's3://blobs/restored');
  check('where the token of before pulls', (await pull('v2')).equals(layer));
  await stop(server);
}
