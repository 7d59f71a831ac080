#!/bin/sh
# Prepares a CI job for a Bowline server: installs bowline by its checksum, exchanges the job's identity token, and
# configures its clients. The job needs no secret, and no token is older than an hour.
#
# ci/github/action.yml runs it, and ci/gitlab/templates/bowline.yml contains it. Variables, which are their inputs:
#
#   BOWLINE_API            address of the API
#   BOWLINE_IDENTITY       UIDP of the job's identity
#   BOWLINE_ISSUER         address of the token exchange; empty: the API's
#   BOWLINE_REGISTRY       host of the registry; empty: the API's; none: no container clients
#   BOWLINE_DOWNLOAD       URL of a release's archive or binary; empty: bowline is installed
#   BOWLINE_SHA256         its checksum
#   BOWLINE_CA             file with the certificates of a private authority
#   BOWLINE_PROXY          proxy of HTTP and HTTPS; BOWLINE_NO_PROXY: hosts that need none
#   BOWLINE_LIBRARIES_URL  address of a package host, the server's --libraries-url, for npm, pip, Maven and cargo
#   BOWLINE_DIRECTORY      directory for everything that is written, which the job removes
#
# Without GITHUB_ENV, what later commands need is written to $BOWLINE_DIRECTORY/env, for `.`.
set -eu
umask 077

fail() {
  printf 'error: %s\nhint: %s\n' "$1" "$2" >&2
  exit 1
}

# Later steps of a GitHub job get variables from a file; other jobs read one that a shell understands.
keep() {
  case $2 in *"
"*) fail "$1 has more than one line" "leave line breaks out of the inputs" ;; esac
  export "$1=$2"
  if [ -n "${GITHUB_ENV:-}" ]; then
    printf '%s=%s\n' "$1" "$2" >>"$GITHUB_ENV"
  else
    printf "export %s='%s'\n" "$1" "$(printf '%s' "$2" | sed "s/'/'\\\\''/g")" >>"$directory/env"
  fi
}

# GitHub replaces masked texts in logs. Nothing prints a token elsewhere.
mask() { if [ -n "${GITHUB_ACTIONS:-}" ]; then printf '::add-mask::%s\n' "$1"; fi; }

checksum() {
  if command -v sha256sum >/dev/null; then sha256sum "$1"; else shasum -a 256 "$1"; fi | cut -d' ' -f1
}

host_of() { printf '%s' "$1" | sed -e 's,^[a-z]*://,,' -e 's,/.*,,'; }

# An empty variable would be an empty option of bowline.
for name in BOWLINE_ISSUER BOWLINE_CONTEXT BOWLINE_ID_TOKEN; do
  eval "value=\${$name:-}"
  [ -n "$value" ] || unset "$name"
done
[ -n "${BOWLINE_API:-}" ] || fail "no address of the API" "set the input api"
[ -n "${BOWLINE_IDENTITY:-}" ] || fail "no identity" "set the input identity: bowline iam identities list shows it"
directory=${BOWLINE_DIRECTORY:-${RUNNER_TEMP:+$RUNNER_TEMP/bowline}}
directory=${directory:-$(mktemp -d)}
mkdir -p "$directory/bin"
: >"$directory/env"

# ---- network ------------------------------------------------------------------

if [ -n "${BOWLINE_PROXY:-}" ]; then
  for name in HTTPS_PROXY HTTP_PROXY https_proxy http_proxy; do keep "$name" "$BOWLINE_PROXY"; done
  for name in NO_PROXY no_proxy; do keep "$name" "${BOWLINE_NO_PROXY:-}"; done
fi
if [ -n "${BOWLINE_CA:-}" ]; then
  [ -r "$BOWLINE_CA" ] || fail "$BOWLINE_CA cannot be read" "set the input ca to a file of the job with certificates in PEM"
  bundle=$directory/ca.pem
  for system in /etc/ssl/certs/ca-certificates.crt /etc/pki/tls/certs/ca-bundle.crt /etc/ssl/cert.pem; do
    if [ -r "$system" ]; then cat "$system" >"$bundle" && break; fi
  done
  cat "$BOWLINE_CA" >>"$bundle"
  for name in SSL_CERT_FILE CURL_CA_BUNDLE REQUESTS_CA_BUNDLE PIP_CERT CARGO_HTTP_CAINFO NODE_EXTRA_CA_CERTS; do
    keep "$name" "$bundle"
  done
fi

# ---- bowline ------------------------------------------------------------------

if [ -n "${BOWLINE_DOWNLOAD:-}" ]; then
  BOWLINE_SHA256=$(printf '%s' "${BOWLINE_SHA256:-}" | tr A-F a-f)
  case $BOWLINE_SHA256 in
    *[!0-9a-f]* | '') fail "no checksum of the download" "set the input sha256, as SHA256SUMS of the release has it" ;;
  esac
  command -v curl >/dev/null || fail "curl is not installed" "use an image with curl, or one with bowline and no input download"
  curl -fsSL --retry 3 --proto '=https,file' --proto-redir '=https' -o "$directory/download" "$BOWLINE_DOWNLOAD" ||
    fail "$BOWLINE_DOWNLOAD was not downloaded" "see that the address is right, and that proxy and ca are set if it needs them"
  actual=$(checksum "$directory/download")
  if [ "$actual" != "$BOWLINE_SHA256" ]; then
    rm -f "$directory/download"
    fail "the download has the checksum $actual, and not $BOWLINE_SHA256" "compare both with SHA256SUMS of the release"
  fi
  case $BOWLINE_DOWNLOAD in
    *.tar.gz)
      mkdir -p "$directory/archive"
      tar -xzf "$directory/download" -C "$directory/archive"
      mv "$directory/archive"/*/bowline "$directory/bin/bowline"
      rm -rf "$directory/archive" "$directory/download"
      ;;
    *) mv "$directory/download" "$directory/bin/bowline" ;;
  esac
  chmod 0755 "$directory/bin/bowline"
fi
PATH=$directory/bin:$PATH
if [ -n "${GITHUB_PATH:-}" ]; then printf '%s\n' "$directory/bin" >>"$GITHUB_PATH"; else keep PATH "$PATH"; fi
command -v bowline >/dev/null || fail "bowline is not installed" "set the inputs download and sha256"

# ---- sign-in -------------------------------------------------------------------

# Contexts and tokens end with the job, not with the runner.
keep BOWLINE_CONTEXTS "$directory/contexts.toml"
keep BOWLINE_TOKENS "$directory/tokens"
set -- context set ci --api "$BOWLINE_API" --identity "$BOWLINE_IDENTITY" --quiet
if [ -n "${BOWLINE_ISSUER:-}" ]; then set -- "$@" --issuer "$BOWLINE_ISSUER"; fi
bowline "$@"
token=$(bowline auth token)
mask "$token"

# ---- container clients ----------------------------------------------------------

registry=${BOWLINE_REGISTRY:-$(host_of "$BOWLINE_API")}
if [ "$registry" != none ]; then
  token=$(bowline auth token --audience "$registry")
  mask "$token"
  # A configuration of the job: the runner's would name the helper when it is gone.
  mkdir -p "$directory/docker"
  former=${DOCKER_CONFIG:-$HOME/.docker}/config.json
  if [ -r "$former" ]; then cp "$former" "$directory/docker/config.json"; fi
  keep DOCKER_CONFIG "$directory/docker"
  bowline auth configure-docker --registry "$registry" --helper-directory "$directory/bin"
fi

# ---- package clients --------------------------------------------------------------

if [ -n "${BOWLINE_LIBRARIES_URL:-}" ]; then
  url=${BOWLINE_LIBRARIES_URL%/}
  host=$(host_of "$url")
  token=$(bowline auth token --audience "$url")
  mask "$token"
  keep BOWLINE_LIBRARIES_TOKEN "$token"
  cat >"$directory/npmrc" <<NPMRC
registry=$url/javascript/
//${url#*://}/javascript/:_authToken=\${BOWLINE_LIBRARIES_TOKEN}
NPMRC
  keep NPM_CONFIG_USERCONFIG "$directory/npmrc"
  printf '[global]\nindex-url = %s/python/simple/\n' "$url" >"$directory/pip.conf"
  keep PIP_CONFIG_FILE "$directory/pip.conf"
  printf 'machine %s login _token password %s\n' "${host%%:*}" "$token" >"$directory/netrc"
  keep NETRC "$directory/netrc"
  cat >"$directory/settings.xml" <<XML
<settings>
  <servers>
    <server><id>bowline</id><username>_token</username><password>\${env.BOWLINE_LIBRARIES_TOKEN}</password></server>
  </servers>
  <mirrors>
    <mirror><id>bowline</id><mirrorOf>*</mirrorOf><url>$url/java/</url></mirror>
  </mirrors>
</settings>
XML
  keep MAVEN_ARGS "${MAVEN_ARGS:-} --settings $directory/settings.xml"
  keep CARGO_REGISTRIES_BOWLINE_INDEX "sparse+$url/cargo/"
  keep CARGO_REGISTRIES_BOWLINE_CREDENTIAL_PROVIDER "cargo:token-from-stdout bowline auth token --audience $url"
fi
