package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"

	"chainguard.dev/sdk/auth"
	"chainguard.dev/sdk/proto/capabilities"
)

// claims reads our token with the SDK's own readers.
func claims(_ context.Context, w *world) {
	check("issuer, subject and audience", func() error {
		issuer, subject, err := auth.ExtractIssuerAndSubject(w.token)
		if err != nil {
			return err
		}
		same([]string{issuer, subject}, []string{w.base, w.identity}, "issuer and subject")
		same(must(auth.ExtractAudiences(w.token)), []string{w.base}, "audience")
		return nil
	})
	check("the actor is the workload", func() error {
		actor := must(auth.ExtractActor(w.token))
		same([]string{actor.Issuer, actor.Subject}, []string{w.issuer, w.subject}, "issuer and subject")
		return nil
	})
	check("cap holds the owner's capabilities", func() error {
		payload := must(base64.RawURLEncoding.DecodeString(strings.Split(w.token, ".")[1]))
		var read struct {
			Cap map[string]capabilities.Set `json:"cap"`
		}
		if err := json.Unmarshal(payload, &read); err != nil {
			return err
		}
		set, ok := read.Cap[w.org]
		that(ok, "no entry for %s", w.org)
		for _, capability := range capabilities.OwnerCaps {
			that(slices.Contains(set, capability), "%s is missing", capability)
		}
		that(!slices.Contains(set, capabilities.Capability_CAP_INTERNAL), "an internal capability is there")
		return nil
	})
}
