#!/usr/bin/env bash
# Runs the black-box suites against a server of their own.
#
#   conformance/run.sh [BINARY]
#
# BINARY defaults to the newest build in the checkout's target directory.
# Needs go, node and npm; everything that is built or fetched is kept in
# ${BOWLINE_CACHE:-$HOME/.cache/bowline}, outside the checkout.
#   SUITES="walk oci"      which suites to run, one after the other; without, all of them, in two rows with a server each
#   The suites gate and scanner, which build cosign and osv-scanner for many minutes the first time, run where SUITES
#   names them.
#   WALK="masks paging"    which parts of the walk to run (all by default)
#   STORAGE="--data-dir DIR"   options of the server's storage (a new directory by default)
#   JAVASCRIPT_WHOLE=1     packages-javascript with all versions of the clients instead of the newest ones
#   JAVA_WHOLE=1           packages-java with three versions of Maven and with Gradle, instead of one version of Maven
#   CONSOLE_WHOLE=1        everything of the console instead of a sample; FLOWS="TEXT" flows with this text in their name
#   CONSOLE_PARTS="flows"  which parts of the console's suite to run: people, flows, screens, texts
#   KEEP=1                 keep the working directory, with the server's log
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
cache=${BOWLINE_CACHE:-$HOME/.cache/bowline}
first='walk go-sdk oci objects clients tour feeds feeds-formats packages packages-javascript packages-go packages-cargo packages-trusted'
second='packages-java mcp kubelet openapi terraform soak browser console'
suites=${SUITES:-$first $second}

say() { printf '== %s (%s s)\n' "$*" "$SECONDS"; }
die() { printf 'run.sh: %s\n' "$*" >&2; exit 2; }
digest() { sha256sum "$@" | sha256sum | cut -c1-16; }

binary=${1:-$(ls -t "$here"/../target/{debug,release}/bowline 2>/dev/null | head -n 1 || true)}
[ -n "$binary" ] && [ -x "$binary" ] || die "no server binary; build one or name it"
tools='go node npm'
if [[ " $suites " == *" packages-cargo "* ]]; then tools+=' cargo rustc'; fi
for tool in $tools; do command -v "$tool" >/dev/null || die "$tool is not on the PATH"; done

# ---- what is built or fetched once -------------------------------------------

export WALK_MODULES=$cache/walk/$(digest "$here/walk/package-lock.json")
if [ ! -e "$WALK_MODULES/.done" ]; then
  say "installing the identity provider"
  mkdir -p "$WALK_MODULES"
  cp "$here"/walk/package.json "$here"/walk/package-lock.json "$WALK_MODULES"
  (cd "$WALK_MODULES" && npm ci --no-audit --no-fund --loglevel=error)
  touch "$WALK_MODULES/.done"
fi

if [[ " $suites " =~ \ (go-sdk|browser)\  ]]; then
  sdk=$cache/go-sdk/$(cd "$here/go-sdk" && digest go.mod go.sum ./*.go)/go-sdk
  if [ ! -x "$sdk" ]; then
    say "building the Go suite (a few minutes the first time)"
    (cd "$here/go-sdk" && GOCACHE=$cache/go-build GOFLAGS='-mod=readonly -buildvcs=false' nice go build -trimpath -o "$sdk" .)
  fi
fi

if [[ " $suites " =~ \ (oci|objects)\  ]]; then
  oci=$cache/oci/$(cd "$here/oci" && digest go.mod go.sum ./*.go ./*.yaml)/oci
  if [ ! -x "$oci" ]; then
    say "building the registry suite"
    (cd "$here/oci" && GOCACHE=$cache/go-build GOFLAGS='-mod=readonly -buildvcs=false' nice go build -trimpath -o "$oci" .)
  fi
  oci_suite=v0.0.0-20260831232431-97274622c111
  export OCI_SUITE=$cache/oci-suite/$oci_suite/conformance
  if [ ! -x "$OCI_SUITE" ]; then
    say "building the distribution specification's suite"
    GOBIN=$(dirname "$OCI_SUITE") GOCACHE=$cache/go-build GOFLAGS=-buildvcs=false nice go install -trimpath "github.com/opencontainers/distribution-spec/conformance@$oci_suite"
  fi
fi

if [[ " $suites " == *" objects "* ]]; then
  export VERSITYGW=$cache/versitygw/1.8.0/versitygw
  if [ ! -x "$VERSITYGW" ]; then
    say "building an object store"
    GOBIN=$(dirname "$VERSITYGW") GOCACHE=$cache/go-build GOFLAGS=-buildvcs=false nice go install -trimpath github.com/versity/versitygw/cmd/versitygw@v1.8.0
  fi
fi

if [[ " $suites " =~ \ (clients|tour|gate)\  ]] && ! { command -v skopeo && command -v buildah; } >/dev/null; then
  say "installing skopeo and buildah"
  apt-get update -qq >&2 && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends skopeo buildah >"$cache/clients.log" 2>&1
fi

if [[ " $suites " == *" gate "* ]]; then
  if ! command -v podman >/dev/null; then
    say "installing podman"
    apt-get update -qq >&2 && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends podman >"$cache/podman.log" 2>&1
  fi
  export COSIGN2=$cache/cosign/2.6.5/cosign COSIGN3=$cache/cosign/3.1.3/cosign
  for version in 2.6.5 3.1.3; do
    if [ ! -x "$cache/cosign/$version/cosign" ]; then
      say "building cosign $version (many minutes the first time)"
      GOBIN=$cache/cosign/$version GOCACHE=$cache/go-build GOFLAGS=-buildvcs=false nice go install -trimpath "github.com/sigstore/cosign/v${version%%.*}/cmd/cosign@v$version"
    fi
  done
  export FULCIO=$cache/fulcio/1.8.8/fulcio TIMESTAMP_SERVER=$cache/timestamp-server/2.1.2/timestamp-server
  if [ ! -x "$FULCIO" ] || [ ! -x "$TIMESTAMP_SERVER" ]; then
    say "building Fulcio and a timestamp authority (minutes the first time)"
    GOBIN=$(dirname "$FULCIO") GOCACHE=$cache/go-build GOFLAGS=-buildvcs=false nice go install -trimpath github.com/sigstore/fulcio@v1.8.8
    GOBIN=$(dirname "$TIMESTAMP_SERVER") GOCACHE=$cache/go-build GOFLAGS=-buildvcs=false nice go install -trimpath github.com/sigstore/timestamp-authority/v2/cmd/timestamp-server@v2.1.2
  fi
fi

if [[ " $suites " == *" clients "* ]]; then
  export ORAS=$cache/oras/$(cd "$here/clients/oras" && digest go.mod go.sum ./*.go)/oras
  if [ ! -x "$ORAS" ]; then
    say "building what drives oras-go"
    (cd "$here/clients/oras" && GOCACHE=$cache/go-build GOFLAGS='-mod=readonly -buildvcs=false' nice go build -trimpath -o "$ORAS" .)
  fi
fi

if [[ " $suites " =~ \ (clients|gate)\  ]]; then
  export CRANE=$cache/crane/0.22.1/crane
  if [ ! -x "$CRANE" ]; then
    say "building crane"
    GOBIN=$(dirname "$CRANE") GOCACHE=$cache/go-build GOFLAGS=-buildvcs=false nice go install -trimpath github.com/google/go-containerregistry/cmd/crane@v0.22.1
  fi
fi

if [[ " $suites " == *" feeds "* ]]; then
  export FEEDS=$cache/feeds/$(digest "$here/feeds/requirements.txt")
  if [ ! -e "$FEEDS/.done" ]; then
    say "installing programs that audit"
    python3 -m venv "$FEEDS/venv"
    "$FEEDS/venv/bin/pip" install -q --disable-pip-version-check -r "$here/feeds/requirements.txt"
    touch "$FEEDS/.done"
  fi
  # Records of Go's database lie in the tests of its checker, and the schema in its own repository; both are modules.
  (cd "$here/feeds" && go mod download golang.org/x/vuln github.com/ossf/osv-schema)
  export FEEDS_RECORDS=$(cd "$here/feeds" && go list -m -f '{{.Dir}}' golang.org/x/vuln)/cmd/govulncheck/testdata
  export FEEDS_SCHEMA=$(cd "$here/feeds" && go list -m -f '{{.Dir}}' github.com/ossf/osv-schema)/validation/schema.json
fi

if [[ " $suites " == *" scanner "* ]]; then
  export OSV_SCANNER=$cache/osv-scanner/1.9.2/osv-scanner
  if [ ! -x "$OSV_SCANNER" ]; then
    say "building osv-scanner (many minutes the first time)"
    GOBIN=$(dirname "$OSV_SCANNER") GOCACHE=$cache/go-build GOFLAGS=-buildvcs=false nice go install -trimpath github.com/google/osv-scanner/cmd/osv-scanner@v1.9.2
  fi
  # The records of Go's database are a module.
  vulndb=golang.org/x/vulndb@v0.0.0-20261105234957-e22db6528018
  SCANNER_RECORDS=$(go mod download -json "$vulndb" | node -p 'JSON.parse(require("fs").readFileSync(0)).Dir')/data/osv
  export SCANNER_RECORDS
fi

if [[ " $suites " == *" feeds-formats "* ]]; then
  export FEEDS_MODULES=$cache/feeds-formats/$(digest "$here/feeds-formats/package-lock.json")
  if [ ! -e "$FEEDS_MODULES/.done" ]; then
    say "installing validators of exported documents"
    mkdir -p "$FEEDS_MODULES"
    cp "$here"/feeds-formats/package.json "$here"/feeds-formats/package-lock.json "$FEEDS_MODULES"
    (cd "$FEEDS_MODULES" && npm ci --no-audit --no-fund --ignore-scripts --loglevel=error)
    touch "$FEEDS_MODULES/.done"
  fi
  export OPENVEX=$cache/openvex/$(cd "$here/feeds-formats/openvex" && digest go.mod go.sum ./*.go)/openvex
  if [ ! -x "$OPENVEX" ]; then
    say "building what drives the library of OpenVEX"
    (cd "$here/feeds-formats/openvex" && GOCACHE=$cache/go-build GOFLAGS='-mod=readonly -buildvcs=false' nice go build -trimpath -o "$OPENVEX" .)
  fi
  if ! command -v unzip >/dev/null; then
    say "installing unzip"
    apt-get update -qq >&2 && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends unzip >"$cache/unzip.log" 2>&1
  fi
fi

if [[ " $suites " =~ \ packages(-trusted)?\  ]]; then
  export PYTHON=$cache/packages/$(digest "$here/packages/requirements.txt")-poetry-2.5.1-pdm-2.29.4
  if [ ! -e "$PYTHON/.done" ]; then
    say "installing installers and publishers of Python packages"
    for environment in venv old poetry pdm; do python3 -m venv "$PYTHON/$environment"; done
    "$PYTHON/venv/bin/pip" install -q --disable-pip-version-check -r "$here/packages/requirements.txt"
    "$PYTHON/old/bin/pip" install -q --disable-pip-version-check pip==23.2.1
    "$PYTHON/poetry/bin/pip" install -q --disable-pip-version-check poetry==2.5.1
    # This version of pdm does not run with hishel 2, which it allows.
    "$PYTHON/pdm/bin/pip" install -q --disable-pip-version-check pdm==2.29.4 'hishel[httpx2]==1.4.0'
    touch "$PYTHON/.done"
  fi
fi

if [[ " $suites " =~ \ packages-(javascript|trusted)\  ]]; then
  export JAVASCRIPT=$cache/packages-javascript/$(digest "$here/packages-javascript/package-lock.json")
  if [ ! -e "$JAVASCRIPT/.done" ]; then
    say "installing installers and publishers of JavaScript packages"
    mkdir -p "$JAVASCRIPT"
    cp "$here"/packages-javascript/package.json "$here"/packages-javascript/package-lock.json "$JAVASCRIPT"
    (cd "$JAVASCRIPT" && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error)
    touch "$JAVASCRIPT/.done"
  fi
fi

if [[ " $suites " == *" packages-java "* ]]; then
  # What runs decides what lies there: a change of a version is a change of this name.
  mavens="3.9.16${JAVA_WHOLE:+ 3.8.7 4.0.0-rc-5}"
  export JAVA_CLIENTS=$cache/packages-java/1${JAVA_WHOLE:+-whole}
  if [ ! -e "$JAVA_CLIENTS/.done" ]; then
    if ! command -v mvn >/dev/null; then
      say "installing Maven, which fetches the versions that are tried"
      apt-get update -qq >&2 && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends maven >"$cache/maven.log" 2>&1
    fi
    say "fetching versions of Maven and the plugins that they run"
    mkdir -p "$JAVA_CLIENTS/app"
    echo '<project><modelVersion>4.0.0</modelVersion><groupId>bwl.app</groupId><artifactId>app</artifactId><version>1</version><packaging>pom</packaging></project>' >"$JAVA_CLIENTS/app/pom.xml"
    for version in $mavens; do
      (
        cd "$JAVA_CLIENTS/app"
        mvn -q -B -ntp "-Dmaven.repo.local=$JAVA_CLIENTS/fetched" org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy "-Dartifact=org.apache.maven:apache-maven:$version:tar.gz:bin" "-DoutputDirectory=$JAVA_CLIENTS"
        tar xzf "../apache-maven-$version-bin.tar.gz" -C ..
        maven=../apache-maven-$version/bin/mvn
        "$maven" -q -B -ntp "-Dmaven.repo.local=$JAVA_CLIENTS/repository" org.apache.maven.plugins:maven-dependency-plugin:3.8.1:resolve
        "$maven" -q -B -ntp "-Dmaven.repo.local=$JAVA_CLIENTS/repository" org.apache.maven.plugins:maven-deploy-plugin:3.1.4:deploy-file -Dfile=pom.xml -DgroupId=bwl.app -DartifactId=app -Dversion=1 "-Durl=file://$JAVA_CLIENTS/deployed"
      )
    done
    # Without these, Maven takes what lies there for its own, wherever it came from.
    find "$JAVA_CLIENTS/repository" -name _remote.repositories -delete
    rm -rf "$JAVA_CLIENTS/fetched" "$JAVA_CLIENTS/deployed"
    touch "$JAVA_CLIENTS/.done"
  fi
  if [ -n "${JAVA_WHOLE:-}" ] && ! command -v gradle >/dev/null; then
    say "installing Gradle"
    apt-get update -qq >&2 && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends gradle >"$cache/gradle.log" 2>&1
  fi
fi

if [[ " $suites " == *" mcp "* ]]; then
  export MCP=$cache/mcp/$(digest "$here/mcp/requirements.txt")
  if [ ! -e "$MCP/.done" ]; then
    say "installing a client of MCP"
    python3 -m venv "$MCP/venv"
    "$MCP/venv/bin/pip" install -q --disable-pip-version-check -r "$here/mcp/requirements.txt"
    touch "$MCP/.done"
  fi
fi

if [[ " $suites " == *" kubelet "* ]]; then
  export KUBELET=$cache/kubelet/$(cd "$here/kubelet" && digest go.mod go.sum ./*.go)/kubelet
  if [ ! -x "$KUBELET" ]; then
    say "building what drives the kubelet's types"
    (cd "$here/kubelet" && GOCACHE=$cache/go-build GOFLAGS='-mod=readonly -buildvcs=false' nice go build -trimpath -o "$KUBELET" .)
  fi
fi

if [[ " $suites " == *" openapi "* ]]; then
  export OPENAPI_MODULES=$cache/openapi/$(digest "$here/openapi/package-lock.json")
  if [ ! -e "$OPENAPI_MODULES/.done" ]; then
    say "installing validators of OpenAPI"
    mkdir -p "$OPENAPI_MODULES"
    cp "$here"/openapi/package.json "$here"/openapi/package-lock.json "$OPENAPI_MODULES"
    (cd "$OPENAPI_MODULES" && npm ci --no-audit --no-fund --ignore-scripts --loglevel=error)
    touch "$OPENAPI_MODULES/.done"
  fi
  export OPENAPI_VENV=$cache/openapi-venv/$(digest "$here/openapi/requirements.txt")
  if [ ! -e "$OPENAPI_VENV/.done" ]; then
    say "installing a generator of clients, its Java runtime and schemathesis"
    python3 -m venv "$OPENAPI_VENV"
    "$OPENAPI_VENV/bin/pip" install -q --disable-pip-version-check -r "$here/openapi/requirements.txt"
    touch "$OPENAPI_VENV/.done"
  fi
fi

if [[ " $suites " == *" browser "* ]]; then
  export BROWSER_MODULES=$cache/browser/$(digest "$here/browser/package-lock.json")
  if [ ! -e "$BROWSER_MODULES/.done" ]; then
    say "installing what drives the browser"
    mkdir -p "$BROWSER_MODULES"
    cp "$here"/browser/package.json "$here"/browser/package-lock.json "$BROWSER_MODULES"
    (cd "$BROWSER_MODULES" && npm ci --no-audit --no-fund --loglevel=error)
    touch "$BROWSER_MODULES/.done"
  fi
fi

if [[ " $suites " == *" console "* ]]; then
  export CONSOLE_MODULES=$cache/console/$(digest "$here/console/package-lock.json")
  if [ ! -e "$CONSOLE_MODULES/.done" ]; then
    say "installing what drives the console"
    mkdir -p "$CONSOLE_MODULES"
    cp "$here"/console/package.json "$here"/console/package-lock.json "$CONSOLE_MODULES"
    (cd "$CONSOLE_MODULES" && npm ci --no-audit --no-fund --loglevel=error)
    touch "$CONSOLE_MODULES/.done"
  fi
  # One of the programs that the console's lines are for.
  export GRPCURL=$cache/grpcurl/1.9.3/grpcurl
  if [ ! -x "$GRPCURL" ]; then
    say "building grpcurl"
    GOBIN=$(dirname "$GRPCURL") GOCACHE=$cache/go-build GOFLAGS=-buildvcs=false nice go install -trimpath github.com/fullstorydev/grpcurl/cmd/grpcurl@v1.9.3
  fi
fi

if [[ " $suites " =~ \ (browser|console)\  ]]; then
  export CHROMIUM=${CHROMIUM:-$(command -v chromium || true)}
  if [ -z "$CHROMIUM" ]; then
    say "installing Chromium"
    apt-get update -qq >&2 && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq chromium fonts-dejavu-core >"$cache/chromium.log" 2>&1
    CHROMIUM=$(command -v chromium) || die "no Chromium; set CHROMIUM"
  fi
fi

if [[ " $suites " == *" terraform "* ]]; then
  export PROVIDER_DIR=$cache/terraform/$(cd "$here/terraform" && digest go.mod go.sum)
  export TERRAFORM=$cache/terraform/1.5.7/terraform
  if [ ! -x "$TERRAFORM" ]; then
    say "building Terraform (a few minutes the first time)"
    GOBIN=$(dirname "$TERRAFORM") GOCACHE=$cache/go-build GOFLAGS=-buildvcs=false nice go install -trimpath github.com/hashicorp/terraform@v1.5.7
  fi
  if [ ! -x "$PROVIDER_DIR/terraform-provider-chainguard" ]; then
    say "building the Terraform provider"
    (cd "$here/terraform" && GOCACHE=$cache/go-build GOFLAGS='-mod=readonly -buildvcs=false' nice go build -trimpath \
      -o "$PROVIDER_DIR/terraform-provider-chainguard" github.com/chainguard-dev/terraform-provider-chainguard)
  fi
fi

# Half of the time suites wait for other programs, so two are run at a time.
if [ -z "${SUITES:-}${STORAGE:-}" ]; then
  log=$(mktemp)
  SUITES=$second "$here/run.sh" "$binary" >"$log" 2>&1 &
  other=$!
  trap 'kill "$other" 2>/dev/null || true; rm -f "$log"' EXIT
  trap 'exit 130' INT TERM
  code=0
  SUITES=$first "$here/run.sh" "$binary" || code=$?
  wait "$other" || code=$?
  say "the suites beside these"
  cat "$log"
  exit "$code"
fi

# ---- server and identity provider --------------------------------------------

work=$(mktemp -d "${TMPDIR:-/tmp}/conformance.XXXXXX")
server='' provider='' people=''
finish() {
  for pid in $people $provider $server; do kill "$pid" 2>/dev/null || true; done
  for pid in $people $provider $server; do wait "$pid" 2>/dev/null || true; done
  if [ -n "${KEEP:-}" ]; then say "kept $work"; else rm -rf "$work"; fi
}
trap finish EXIT
trap 'exit 130' INT TERM

read -r port admin sts < <(node -e '
  const { createServer } = require("node:net");
  const open = [0, 0, 0].map(() => createServer().listen(0, "127.0.0.1"));
  setTimeout(() => { console.log(open.map((s) => s.address().port).join(" ")); open.forEach((s) => s.close()); }, 50);')
export BASE_URL=http://127.0.0.1:$port
# Where the server looks for AWS, and the Go suite stands in for it.
export STS_ADDRESS=127.0.0.1:$sts

# wait_for SECONDS PID COMMAND...: until the command succeeds or the process ends.
wait_for() {
  local until=$((SECONDS + $1)) pid=$2
  shift 2
  until "$@" >/dev/null 2>&1; do
    kill -0 "$pid" 2>/dev/null && [ $SECONDS -lt $until ] || return 1
    sleep 0.2
  done
}
ready() { node -e 'fetch(process.argv[1]).then((a) => process.exit(a.ok ? 0 : 1), () => process.exit(1))' "http://127.0.0.1:$admin/readyz"; }

say "starting the server at $BASE_URL"
printf '[[terms]]\nid = "terms-1"\nlabel = "Terms"\nurl = "https://operator.example/terms-1"\n' >"$work/bowline.toml"
read -ra storage <<<"${STORAGE:---data-dir $work/data}"
"$binary" serve --config "$work/bowline.toml" "${storage[@]}" --listen "127.0.0.1:$port" --admin-listen "127.0.0.1:$admin" --aws-sts-url "http://$STS_ADDRESS" >"$work/server.log" 2>&1 &
server=$!
wait_for 60 "$server" ready || { tail -n 30 "$work/server.log" >&2; die "the server did not become ready"; }

export PROVIDER=$work/provider.json
node "$here/walk/lib/provider.mjs" "$work" "$BASE_URL" >"$work/provider.log" 2>&1 &
provider=$!
wait_for 30 "$provider" test -s "$PROVIDER" || { tail -n 30 "$work/provider.log" >&2; die "the identity provider did not start"; }

operator_token() { "$binary" operator token --reason conformance "${storage[@]}"; }

# ---- the suites ---------------------------------------------------------------

# The browser's suite signs in at a provider of its own.
if [[ " $suites " == *" browser "* ]]; then
  export PEOPLE=$work/people.json
  node "$here/browser/people.mjs" "$work" "$BASE_URL/oauth/callback" >"$work/people.log" 2>&1 &
  people=$!
  wait_for 30 "$people" test -s "$PEOPLE" || { tail -n 30 "$work/people.log" >&2; die "the identity provider did not start"; }
fi

# SECONDS COMMAND...: ends it after that time, and says so.
limited() {
  local seconds=$1 code=0
  shift
  timeout "$seconds" "$@" || code=$?
  if [ "$code" = 124 ]; then echo "run.sh: stopped after $seconds s"; fi
  return "$code"
}

run_suite() {
  local suite=$1
  OPERATOR_TOKEN=$(operator_token) || die "no operator token"
  export OPERATOR_TOKEN
  case $suite in
    walk) node "$here/walk/main.mjs" ${WALK:-} ;;
    go-sdk)
      UPSTREAM_TOKEN=$(node "$here/walk/token.mjs" walk-sdk) || die "no upstream token"
      export UPSTREAM_TOKEN
      limited 900 "$sdk"
      ;;
    oci)
      UPSTREAM_TOKEN=$(node "$here/walk/token.mjs" walk-oci) || die "no upstream token"
      export UPSTREAM_TOKEN
      BOWLINE=$binary limited 900 "$oci"
      ;;
    objects) BOWLINE=$(realpath "$binary") OCI=$oci limited 900 "$here/../scripts/with-postgres" node "$here/objects/main.mjs" ;;
    clients | tour | gate | scanner | feeds | feeds-formats | packages | packages-javascript | packages-java | packages-go | packages-cargo | packages-trusted | openapi) BOWLINE=$(realpath "$binary") node "$here/$suite/main.mjs" ;;
    mcp | kubelet) BOWLINE=$(realpath "$binary") limited 900 node "$here/$suite/main.mjs" ;;
    soak) BOWLINE=$(realpath "$binary") SAMPLE=1 limited 900 node "$here/soak/main.mjs" 0.3 ;;
    terraform) BOWLINE=$(realpath "$binary") node "$here/terraform/run.mjs" ;;
    browser)
      export BOWLINE=$binary DATA_DIR=$work/data SDK=$sdk SCREENSHOTS=${SCREENSHOTS:-$work/screenshots}
      limited 900 node "$here/browser/main.mjs"
      ;;
    console)
      export BOWLINE=$binary DATA_DIR=$work/data SCREENSHOTS=${SCREENSHOTS:-$work/screenshots}
      limited $((${CONSOLE_WHOLE:+2700} + 900)) node "$here/console/main.mjs"
      ;;
    *) die "unknown suite $suite" ;;
  esac
}

failed=''
for suite in $suites; do
  say "$suite"
  run_suite "$suite" 2>&1 | tee "$work/$suite.log" || failed+=" $suite"
done
kill -0 "$server" 2>/dev/null || { failed+=' server'; say "the server died:"; tail -n 30 "$work/server.log"; }
# Again at the end, where a reader of a long log looks first.
for suite in $failed; do
  if [ -e "$work/$suite.log" ]; then say "the end of $suite"; tail -n 30 "$work/$suite.log"; fi
done
[ -z "$failed" ] || { say "failed:$failed"; exit 1; }
say "all passed"
