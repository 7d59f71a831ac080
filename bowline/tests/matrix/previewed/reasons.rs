//! Why some methods that change rows cannot be previewed.

const SECRET: &str = "its response is a secret, which a preview would have to make";
const MAIL: &str = "it sends mail";
const OWN: &str = "it is about the caller's own sessions and preferences, which the caller sees and no one else has";
const DELIVERY: &str = "what follows is done by the relay, not by the call";
const BEFORE: &str =
    "it reads large documents before its transaction; a preview of them would cost as much as the call";
const OF_OPERATOR: &str = "it is the operator's alone, and changes no resource of an organization";

const ONE_VERSION: &str = "ListVersions shows the version with its files, and nothing goes along with it";
const ONE_VERSION_AND_TAGS: &str =
    "ListVersions shows the version with its file, and tags, which are names alone, are all that goes along with it";
const ONE_RESERVATION: &str = "changes one reservation, which the request names";
const ONE_EXCEPTION: &str =
    "changes one exception, which the request or ListExceptions shows, and nothing goes along with it";
const FREEZES: &str = "changes the freezes of the ecosystems that the request names";
const ONE_UPSTREAM: &str = "changes one upstream, which the request names; what it has is known when it is asked";

/// Each with its reason. The contract allows all others.
pub(super) const NOT_PREVIEWABLE: &[(&str, &str)] = &[
    ("chainguard.platform.iam.GroupInvites.Create", SECRET),
    ("chainguard.platform.iam.GroupInvites.CreateWithGroup", SECRET),
    ("chainguard.platform.iam.v2.GroupInvitesService.CreateGroupInvite", SECRET),
    ("chainguard.platform.iam.IdentityProviders.GenerateScimToken", SECRET),
    ("chainguard.platform.iam.IdentityProviders.RegenerateScimToken", SECRET),
    ("chainguard.platform.iam.v2.IdentityProvidersService.GenerateScimToken", SECRET),
    ("chainguard.platform.iam.v2.IdentityProvidersService.RegenerateScimToken", SECRET),
    ("chainguard.platform.iam.Groups.RequestGroupAccess", MAIL),
    ("chainguard.platform.iam.v2.GroupsService.RequestGroupAccess", MAIL),
    ("bowline.people.v1.Sessions.EndAllSessions", OWN),
    ("bowline.people.v1.Sessions.EndSession", OWN),
    ("bowline.people.v1.Sessions.UpdatePreferences", OWN),
    ("chainguard.platform.auth.Auth.Delete", "it ends the caller; ListAccessOf shows what goes along"),
    ("chainguard.platform.events.Identities.Create", OF_OPERATOR),
    ("chainguard.platform.events.Subscriptions.Create", DELIVERY),
    ("chainguard.platform.events.Subscriptions.Delete", DELIVERY),
    ("chainguard.platform.events.v2.SubscriptionsService.CreateSubscription", DELIVERY),
    ("chainguard.platform.events.v2.SubscriptionsService.DeleteSubscription", DELIVERY),
    ("bowline.events.v1.DeliveriesService.Pause", DELIVERY),
    ("bowline.events.v1.DeliveriesService.Redeliver", DELIVERY),
    ("bowline.events.v1.DeliveriesService.Resume", DELIVERY),
    ("bowline.events.v1.DeliveriesService.TestDelivery", DELIVERY),
    (
        "bowline.registry.v1.ImagePolicies.DeleteImageException",
        "GetImagePolicy shows the exception, and nothing goes along with it",
    ),
    ("bowline.registry.v1.Images.DeleteImages", "PreviewDelete shows it with what becomes free"),
    ("bowline.registry.v1.Replication.FetchNow", "what follows depends on another server"),
    ("bowline.registry.v1.ScanReports.PutScanReport", BEFORE),
    ("chainguard.platform.registry.Charts.AddChart", BEFORE),
    ("bowline.feeds.v1.RecordImports.AbortImport", OF_OPERATOR),
    ("bowline.feeds.v1.RecordImports.BeginImport", OF_OPERATOR),
    ("bowline.feeds.v1.RecordImports.CommitImport", OF_OPERATOR),
    ("bowline.feeds.v1.RecordImports.StageRecords", OF_OPERATOR),
    ("bowline.registry.v1.ReleaseCycles.ImportReleaseCycles", OF_OPERATOR),
    ("bowline.libraries.v1.CargoPackages.DeleteVersion", ONE_VERSION),
    ("bowline.libraries.v1.CargoPackages.UnyankVersion", ONE_VERSION),
    ("bowline.libraries.v1.CargoPackages.YankVersion", ONE_VERSION),
    ("bowline.libraries.v1.Catalog.ImportMalware", OF_OPERATOR),
    ("bowline.libraries.v1.Catalog.ImportVersions", OF_OPERATOR),
    ("bowline.libraries.v1.Catalog.RemoveMalware", OF_OPERATOR),
    ("bowline.libraries.v1.GenericPackages.DeleteVersion", ONE_VERSION),
    ("bowline.libraries.v1.GoPackages.DeleteVersion", ONE_VERSION),
    ("bowline.libraries.v1.JavaPackages.DeleteVersion", ONE_VERSION),
    ("bowline.libraries.v1.JavascriptPackages.DeleteVersion", ONE_VERSION_AND_TAGS),
    ("bowline.libraries.v1.JavascriptPackages.DeprecateVersion", ONE_VERSION),
    ("bowline.libraries.v1.JavascriptPackages.UndeprecateVersion", ONE_VERSION),
    ("bowline.libraries.v1.PackageExceptions.ApproveException", ONE_EXCEPTION),
    ("bowline.libraries.v1.PackageExceptions.CreateException", ONE_EXCEPTION),
    ("bowline.libraries.v1.PackageExceptions.EndException", ONE_EXCEPTION),
    ("bowline.libraries.v1.PackageExceptions.RequestException", ONE_EXCEPTION),
    ("bowline.libraries.v1.PackageExceptions.SetExceptionApproval", "changes one setting, which the request shows"),
    ("bowline.libraries.v1.PackageFreezes.FreezePackages", FREEZES),
    ("bowline.libraries.v1.PackageFreezes.LiftFreeze", FREEZES),
    ("bowline.libraries.v1.PackageReservations.CreateReservation", ONE_RESERVATION),
    ("bowline.libraries.v1.PackageReservations.DeleteReservation", ONE_RESERVATION),
    ("bowline.libraries.v1.PackageUpstreams.DeleteUpstream", ONE_UPSTREAM),
    ("bowline.libraries.v1.PackageUpstreams.SetUpstream", ONE_UPSTREAM),
    ("bowline.libraries.v1.PythonPackages.DeleteVersion", ONE_VERSION),
    ("bowline.libraries.v1.PythonPackages.UnyankVersion", ONE_VERSION),
    ("bowline.libraries.v1.PythonPackages.YankVersion", ONE_VERSION),
    ("bowline.operator.v1.Operator.GrantOperator", OF_OPERATOR),
    ("bowline.operator.v1.Operator.RevokeOperator", OF_OPERATOR),
    ("bowline.operator.v1.Operator.RotateKeys", OF_OPERATOR),
    ("bowline.operator.v1.Operator.RunTask", OF_OPERATOR),
];
