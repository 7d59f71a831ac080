package main

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// verified compares a delivery with the claim webhook of its token, whose signature, audience and subject are good already.
func verified(claim map[string]string, header http.Header, body []byte, sink string) bool {
	lines := []string{}
	for name := range header {
		if lower := strings.ToLower(name); strings.HasPrefix(lower, "ce-") {
			lines = append(lines, lower+":"+header.Get(name)+"\n")
		}
	}
	slices.Sort(lines)
	digest := func(text string) string { return fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(text))) }
	return claim["digest"] == digest(string(body)) && claim["headers"] == digest(strings.Join(lines, "")) && claim["sink"] == digest(sink)
}

// webhook is the claim of that name in the token of a delivery.
func webhook(header http.Header) map[string]string {
	token := strings.TrimPrefix(header.Get("Authorization"), "Bearer ")
	claims := must(base64.RawURLEncoding.DecodeString(strings.Split(token, ".")[1]))
	var read struct {
		Webhook map[string]string `json:"webhook"`
	}
	if err := json.Unmarshal(claims, &read); err != nil {
		panic(wrong{err})
	}
	return read.Webhook
}

// covers checks that the token of a delivery is good for that very delivery alone.
func covers(one captured, sink string) error {
	claim := webhook(one.header)
	that(verified(claim, one.header, one.body, sink), "the delivery is not what its token covers: %v", claim)
	that(!verified(claim, one.header, forge(one.body), sink), "another body is covered")
	that(!verified(claim, one.header, one.body, sink+"/other"), "another sink is covered")
	for name := range one.header {
		if strings.HasPrefix(name, "Ce-") {
			forged := one.header.Clone()
			forged.Set(name, "forged")
			that(!verified(claim, forged, one.body, sink), "another %s is covered", name)
		}
	}
	return nil
}
