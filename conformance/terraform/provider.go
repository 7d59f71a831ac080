//go:build tools

// Package terraform names the provider whose binary the suite runs, so that go.mod pins it.
package terraform

import _ "github.com/chainguard-dev/terraform-provider-chainguard"
