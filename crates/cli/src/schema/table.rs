//! What commands print that are written by hand; those made from the contract follow from their tables.

use super::Shape::{self, List, Object, Response, Rows};

/// Counts of an import; `--dry-run` lists the advisories instead.
const STATEMENTS: Shape = Rows(&["created", "changed", "unchanged", "refused", "skipped", "reduced", "added_events"]);
const IDENTITY: Shape = Response("iam.v2.IdentitiesService.CreateIdentity");
const POLICY: Shape = Response("RegistryPolicies.GetRepoPolicy");
const REPO: Shape = Response("registry.v2.ReposService.GetRepo");
const LIBRARY_POLICY: Shape = Response("LibraryPolicies.CreatePolicy");
const ENTITLEMENTS: Shape = List("libraries.Entitlements.List");
const WATERMARKS: Shape = List("ResolutionCache.Status");

pub(super) const SHAPES: &[(&str, Shape)] = &[
    ("advisories list", List("AdvisoriesService.ListAdvisories")),
    ("advisories get", Response("AdvisoriesService.GetAdvisory")),
    ("advisories create", Response("vulnerabilities.v1.Advisories.Create")),
    ("advisories event", Response("Advisories.CreateAdvisoryEvent")),
    ("advisories review", Response("Advisories.UpdateAdvisoryEvent")),
    ("advisories settings", Response("AdvisorySettingsService.GetAdvisorySettings")),
    ("auth status", Object(&["api", "issuer", "identity", "email", "audience", "expires_in", "capabilities"])),
    ("auth pull-token list", Rows(&["uidp", "name", "expires", "description", "expire_time"])),
    ("context list", Rows(&["current", "name", "api", "issuer", "identity", "registry"])),
    ("feeds import osv", Rows(&["source", "read", "added", "changed", "removed", "unchanged", "repeated", "left_out"])),
    ("feeds import secdb", STATEMENTS),
    ("feeds import openvex", STATEMENTS),
    ("feeds import csaf", STATEMENTS),
    ("feeds import cyclonedx", STATEMENTS),
    ("feeds import grype", STATEMENTS),
    ("feeds import trivy", STATEMENTS),
    ("feeds import yaml", STATEMENTS),
    ("feeds sources", List("RecordImports.ListSources")),
    ("feeds status", List("RecordImports.ListImports")),
    ("feeds abort", Response("RecordImports.AbortImport")),
    ("iam identities create github", IDENTITY),
    ("iam identities create gitlab", IDENTITY),
    ("iam identities create kubernetes", IDENTITY),
    ("iam identities create aws", IDENTITY),
    ("iam identities create oidc", IDENTITY),
    ("libraries artifacts", List("libraries.Artifacts.List")),
    ("libraries versions", List("libraries.Artifacts.ListVersions")),
    ("libraries entitlements list", ENTITLEMENTS),
    ("libraries entitlements create", ENTITLEMENTS),
    ("libraries policies list", List("LibraryPolicies.ListPolicies")),
    ("libraries policies get", LIBRARY_POLICY),
    ("libraries policies create", LIBRARY_POLICY),
    ("libraries policies update", LIBRARY_POLICY),
    ("libraries bindings list", List("LibraryPolicyBindings.ListBindings")),
    ("libraries bindings create", Response("LibraryPolicyBindings.CreateBinding")),
    ("libraries blocked", List("LibraryPolicyBlockEvents.ListBlockEvents")),
    ("libraries malware list", List("Malware.ListBlockList")),
    ("libraries cache status", WATERMARKS),
    ("libraries cache opt-in", WATERMARKS),
    ("libraries cache opt-out", WATERMARKS),
    ("libraries cache list", List("ResolutionCache.List")),
    ("libraries cache zap", Response("ResolutionCache.Zap")),
    ("libraries import", Rows(&["created", "updated", "unchanged", "files", "skipped", "other_files"])),
    ("registry repos list", List("registry.v2.ReposService.ListRepos")),
    ("registry repos get", REPO),
    ("registry repos create", REPO),
    ("registry repos update", REPO),
    ("registry tags list", List("registry.v2.TagsService.ListTags")),
    ("registry tags resolve", Response("registry.v2.TagsService.GetTag")),
    ("registry tags create", Response("registry.v2.TagsService.CreateTag")),
    ("registry history", List("Registry.ListTagHistory")),
    ("registry charts add", List("Charts.AddChart")),
    ("registry charts find", Response("Charts.FindChart")),
    ("registry charts using", List("Registry.ListChartsByImageRepo")),
    ("registry retention preview", Response("RegistryPolicies.PreviewRetention")),
    ("registry retention apply", Response("RegistryPolicies.ApplyRetention")),
    ("registry retention get", POLICY),
    ("registry retention set", POLICY),
    ("registry retention clear", POLICY),
    ("registry policy get", POLICY),
    ("registry policy set", POLICY),
    ("registry scan-report put", Response("ScanReports.PutScanReport")),
    ("search", Response("Search.Search")),
    ("vulns get", List("advisory.v2.SecurityAdvisoryService.ListVulnerabilityMetadata")),
    // On the server's machine.
    ("keys list", Rows(&["kid", "algorithm", "state"])),
    ("self-check", Rows(&["level", "subject", "finding", "hint"])),
    ("operator providers list", Rows(&["id", "issuer", "client", "secret"])),
];
