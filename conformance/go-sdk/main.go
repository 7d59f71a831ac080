package main

import (
	_ "chainguard.dev/sdk/auth"
	_ "chainguard.dev/sdk/proto/capabilities"
	_ "chainguard.dev/sdk/proto/chainguard/platform/clients/v2"
	_ "chainguard.dev/sdk/proto/chainguard/platform/iter"
	_ "chainguard.dev/sdk/proto/platform"
	_ "chainguard.dev/sdk/sts"
	_ "chainguard.dev/sdk/uidp"
)

func main() {}
