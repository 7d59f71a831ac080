#!/usr/bin/env bash
# The suites on data that was moved: from a directory to PostgreSQL and a bucket, and back to a directory.
#
#   scripts/with-postgres conformance/moved.sh [BINARY]
#
# The data is that of the newest version under bowline/tests/upgrade, which has at least one of everything. `bowline migrate`
# compares every row and blob itself, and fails on a difference.
#   SUITES="walk oci"    which suites to run after each move (by default those that use run.sh's own server, without openapi
#                        and browser; feeds expects records that no earlier run has imported)
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
binary=$(realpath "${1:-$(ls -t "$here"/../target/{debug,release}/bowline 2>/dev/null | head -n 1)}")
export SUITES=${SUITES:-walk go-sdk oci clients mcp kubelet feeds-formats terraform}
[ -n "${BOWLINE_TEST_POSTGRES:-}" ] || { echo 'moved.sh: run it with scripts/with-postgres' >&2; exit 2; }
versitygw=${BOWLINE_CACHE:-$HOME/.cache/bowline}/versitygw/1.8.0/versitygw
[ -x "$versitygw" ] || { echo 'moved.sh: no object store; run the suite objects once' >&2; exit 2; }

work=$(mktemp -d "${TMPDIR:-/tmp}/moved.XXXXXX")
store=''
trap '[ -z "$store" ] || kill "$store"; rm -rf "$work"' EXIT

# Directories are named after commits: the newest is the one that was added last.
newest=$(cd "$here/../bowline/tests/upgrade" && for one in */sqlite.tar.gz; do
  printf '%s %s\n' "$(git log --format=%ct --max-count=1 -- "$one")" "$one"
done | sort -n | tail -n 1 | cut -d ' ' -f 2)
tar -xzpf "$here/../bowline/tests/upgrade/$newest" -C "$work"
key=$work/data/key
"$binary" migrate --data-dir "$work/data"

export AWS_ACCESS_KEY_ID=moved AWS_SECRET_ACCESS_KEY=moved-secret AWS_ALLOW_HTTP=true AWS_REGION=us-east-1
port=$(node -e 'require("net").createServer().listen(0, "127.0.0.1", function () { console.log(this.address().port); this.close(); })')
export AWS_ENDPOINT_URL=http://127.0.0.1:$port
mkdir -p "$work/s3/blobs"
"$versitygw" --port "127.0.0.1:$port" --access moved --secret moved-secret posix "$work/s3" >"$work/s3.log" 2>&1 &
store=$!
for ((tries = 0; ; tries++)); do
  kill -0 "$store" 2>/dev/null && [ "$tries" -lt 300 ] || { cat "$work/s3.log" >&2; exit 1; }
  ! (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null || break
  sleep 0.1
done
url=${BOWLINE_TEST_POSTGRES%/*}/moved
psql -q "$BOWLINE_TEST_POSTGRES" -c 'CREATE DATABASE moved'

printf '== to PostgreSQL and a bucket (%s s)\n' "$SECONDS"
"$binary" migrate --from "$work/data" --to "$url" --to-blobs s3://blobs/some/where --key-file "$key"
STORAGE="--database-url $url --key-file $key --blob-url s3://blobs/some/where" "$here/run.sh" "$binary"

printf '== back to a directory (%s s)\n' "$SECONDS"
"$binary" migrate --from "$url" --from-blobs s3://blobs/some/where --to "$work/back" --key-file "$key"
STORAGE="--data-dir $work/back --key-file $key" "$here/run.sh" "$binary"
"$binary" audit verify --data-dir "$work/back"
"$binary" registry verify --data-dir "$work/back"
printf '== all passed (%s s)\n' "$SECONDS"
