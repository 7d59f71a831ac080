package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"

	advisory2 "chainguard.dev/sdk/proto/chainguard/platform/advisory/v2"
	libraries2 "chainguard.dev/sdk/proto/chainguard/platform/libraries/v2"
	vulns2 "chainguard.dev/sdk/proto/chainguard/platform/vulnerabilities/v2"
	advisory "chainguard.dev/sdk/proto/platform/advisory/v1"
	common "chainguard.dev/sdk/proto/platform/common/v1"
	libraries "chainguard.dev/sdk/proto/platform/libraries/v1"
	vulns "chainguard.dev/sdk/proto/platform/vulnerabilities/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
)

// asOperator calls what only an operator may, and what the SDK has no client for.
func (w *world) asOperator(ctx context.Context, verb, path string, body any) map[string]any {
	sent := must(json.Marshal(body))
	request := must(http.NewRequestWithContext(ctx, verb, w.base+path, bytes.NewReader(sent)))
	request.Header.Set("Authorization", "Bearer "+w.operatorToken)
	request.Header.Set("Content-Type", "application/json")
	answer := must(http.DefaultClient.Do(request))
	defer answer.Body.Close()
	text := must(io.ReadAll(answer.Body))
	that(answer.StatusCode == http.StatusOK, "%s %s: %d %s", verb, path, answer.StatusCode, text)
	var read map[string]any
	if len(text) > 0 {
		if err := json.Unmarshal(text, &read); err != nil {
			panic(wrong{err})
		}
	}
	return read
}

func file(name, version string) map[string]any {
	named := fmt.Sprintf("%s-%s.tar.gz", name, version)
	sha256, sha512 := sha256.Sum256([]byte(named)), sha512.Sum512([]byte(named))
	return map[string]any{"name": named, "sizeBytes": "1000", "sha256": hex.EncodeToString(sha256[:]), "sha512": hex.EncodeToString(sha512[:])}
}

// dataDomains reads what an operator and an organization have brought through the clients of both versions.
func dataDomains(ctx context.Context, w *world) {
	group := w.group(ctx, w.org, "data")
	first, second := w.v1.Vulnerabilities().Advisories(), w.v2.Vulnerabilities()
	alias, pkg := "CVE-2026-"+unique("1"), unique("curl")
	var made *vulns.Advisory

	check("an advisory with an event that is approved", func() error {
		w.asOperator(ctx, "PATCH", "/advisorysettings/v1/groups/"+group, map[string]any{"public": true})
		made = must(first.Create(ctx, &vulns.CreateAdvisoryRequest{ParentId: group, Advisory: &vulns.Advisory{
			ArtifactType: "apk", ArtifactName: pkg, Aliases: []string{alias},
		}}))
		event := must(first.CreateAdvisoryEvent(ctx, &vulns.CreateAdvisoryEventRequest{ParentId: made.GetId(), AdvisoryEvent: &vulns.AdvisoryEvent{
			Type: &vulns.AdvisoryEvent_Fixed_{Fixed: &vulns.AdvisoryEvent_Fixed{FixedVersion: "8.1-r0"}},
		}}))
		same(event.GetStatus(), vulns.ReviewStatus_PENDING, "status")
		approved := must(first.UpdateAdvisoryEvent(ctx, &vulns.AdvisoryEvent{Id: event.GetId(), Status: vulns.ReviewStatus_APPROVED}))
		same(approved.GetFixed().GetFixedVersion(), "8.1-r0", "fixed version")
		_, err := first.UpdateAdvisoryEvent(ctx, &vulns.AdvisoryEvent{Id: event.GetId(), Status: vulns.ReviewStatus_REJECTED})
		refused(err, codes.FailedPrecondition)
		return nil
	})
	check("v1 and v2 list it", func() error {
		listed := must(first.List(ctx, &vulns.AdvisoryFilter{Uidp: &common.UIDPFilter{ChildrenOf: group}}))
		same([]any{len(listed.GetItems()), listed.GetItems()[0].GetId()}, []any{1, made.GetId()}, "items")
		all := must(second.ListAdvisoriesAll(ctx, &vulns2.ListAdvisoriesRequest{Query: pkg}))
		same([]any{len(all), all[0].GetUid(), all[0].GetAdvisoryId()}, []any{1, made.GetId(), made.GetAdvisoryId()}, "advisories")
		got := must(second.AdvisoriesService().GetAdvisory(ctx, &vulns2.GetAdvisoryRequest{Uid: made.GetId()}))
		same(len(got.GetEvents()), 1, "number of events")
		return nil
	})
	// Everybody may read documents: no token.
	target := w.base[len("http://"):]
	conn, err := grpc.NewClient(target, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		check("a connection without a token", func() error { return err })
		return
	}
	defer conn.Close()
	check("the document of the package, in both versions, without a token", func() error {
		// What is served to everybody follows within a second.
		old := &advisory.DocumentList{}
		for end := time.Now().Add(10 * time.Second); len(old.GetItems()) == 0 && time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
			old = must(advisory.NewSecurityAdvisoryClient(conn).ListDocuments(ctx, &advisory.DocumentFilter{Id: pkg}))
		}
		same(len(old.GetItems()), 1, "number of documents")
		same([]any{len(old.GetItems()), old.GetItems()[0].GetAdvisories()[0].GetAliases()}, []any{1, []string{alias}}, "documents")
		now := must(advisory2.NewSecurityAdvisoryServiceClient(conn).ListDocuments(ctx, &advisory2.ListDocumentsRequest{Cves: []string{alias}}))
		same([]any{len(now.GetDocuments()), now.GetDocuments()[0].GetId()}, []any{1, pkg}, "documents")
		return nil
	})
	check("metadata of an imported record, in both versions", func() error {
		begun := w.asOperator(ctx, "POST", "/feeds/bowline/v1/imports", map[string]any{"source": unique("sdk"), "licence": "CC0-1.0"})
		record := fmt.Sprintf(`{"id":%q,"modified":"2026-01-02T03:04:05Z","summary":"A flaw","severity":[{"type":"CVSS_V3","score":"CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:H/I:H/A:H"}]}`, alias)
		uid := begun["uid"].(string)
		w.asOperator(ctx, "POST", "/feeds/bowline/v1/imports/"+uid+"/records", map[string]any{"records": [][]byte{[]byte(record)}})
		w.asOperator(ctx, "POST", "/feeds/bowline/v1/imports/"+uid+":commit", map[string]any{})
		old := must(advisory.NewSecurityAdvisoryClient(conn).ListVulnerabilityMetadata(ctx, &advisory.VulnerabilityMetadataFilter{Ids: []string{alias}}))
		same([]any{len(old.GetItems()), old.GetItems()[0].GetSummary()}, []any{1, "A flaw"}, "metadata")
		all := must(w.v2.Advisory().ListVulnerabilityMetadataAll(ctx, &advisory2.ListVulnerabilityMetadataRequest{Ids: []string{alias}}))
		same([]any{len(all), len(all[0].GetSeverities())}, []any{1, 1}, "metadata and severities")
		severe := must(second.AdvisoriesService().GetAdvisory(ctx, &vulns2.GetAdvisoryRequest{Uid: made.GetId()}))
		same(len(severe.GetSeverities()), 1, "severities of the advisory")
		return nil
	})
	check("an imported package and its versions, in both versions", func() error {
		name := unique("requests")
		versions := []map[string]any{}
		for _, version := range []string{"1.9", "1.10", "1.2rc1"} {
			versions = append(versions, map[string]any{"ecosystem": "PYTHON", "name": name, "version": version, "source": "SOURCE_TYPE_INTERNAL", "license": "MIT", "files": []any{file(name, version)}})
		}
		w.asOperator(ctx, "POST", "/catalog/v1/versions:import", map[string]any{"versions": versions})
		api := w.v1.Libraries().Artifacts()
		old := must(api.List(ctx, &libraries.ArtifactFilter{Query: name}))
		same(len(old.GetItems()), 1, "number of artifacts")
		now := libraries2.NewClientsFromConnection(w.connection(ctx))
		all := must(now.ListArtifactsAll(ctx, &libraries2.ListArtifactsRequest{Ecosystems: []libraries2.Ecosystem{libraries2.Ecosystem_ECOSYSTEM_PYTHON}, Query: name}))
		same(len(all), 1, "number of artifacts")
		var order []string
		for _, version := range must(now.ListArtifactVersionsAll(ctx, &libraries2.ListArtifactVersionsRequest{ArtifactId: old.GetItems()[0].GetId()})) {
			order = append(order, version.GetVersion())
		}
		same(order, []string{"1.10", "1.9", "1.2rc1"}, "versions, the newest first")
		return nil
	})
	check("a policy, its binding, and the lists around them", func() error {
		api := w.v1.Libraries()
		policy := must(api.LibraryPolicies().CreatePolicy(ctx, &libraries.CreateLibraryPolicyRequest{
			ParentId: w.org, Policy: &libraries.LibraryPolicy{Name: unique("strict"), BlockedLicenses: []string{"AGPL-3.0-only"}},
		}))
		that(policy.GetId() != "", "the policy has no id")
		must(api.Malware().ListBlockList(ctx, &libraries.MalwareBlockListFilter{}))
		must(api.AWSMarketplaceSubscriptions().List(ctx, &libraries.AWSMarketplaceSubscriptionFilter{}))
		return nil
	})
}

// connection speaks for the owner, for clients that the SDK's collection leaves out.
func (w *world) connection(ctx context.Context) *grpc.ClientConn {
	return must(grpc.NewClient(w.base[len("http://"):], grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithPerRPCCredentials(bearer(ctx, w.token))))
}
