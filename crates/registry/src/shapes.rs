//! Repositories in the shapes of both versions.
//!
//! Two things do not survive the way back. A group number of 0 that a caller of v1 gives a user comes back
//! unset, because v2 does not distinguish the two; and `sync_apks` has no meaning any more.

use bowline_contract::v1::registry as v1;
use bowline_contract::v1::registry::apko_config::{Accounts as V1Accounts, accounts as v1_accounts};
use bowline_contract::v2::registry as v2;
use bowline_contract::v2::registry::custom_overlay as v2_overlay;

/// A repository of v2 and its read-me, in the shape of the first.
///
/// Both shapes are taken apart and put together without `..`, here and below: a new field has to be decided.
pub(super) fn to_v1(repo: v2::Repo, readme: String) -> v1::Repo {
    let v2::Repo {
        uid,
        name,
        description,
        catalog_tier,
        bundles,
        aliases,
        active_tags,
        sync_config,
        custom_overlay,
        create_time,
        update_time: _,
    } = repo;
    v1::Repo {
        id: uid,
        name,
        catalog_tier: tier_to_v1(catalog_tier),
        bundles,
        readme,
        sync_config: sync_config.map(sync_to_v1),
        custom_overlay: custom_overlay.map(overlay_to_v1),
        aliases,
        create_time,
        active_tags,
        description,
    }
}

/// A repository of v1 in the shape of the second, and its read-me.
pub(super) fn from_v1(repo: v1::Repo) -> (v2::Repo, String) {
    let v1::Repo {
        id,
        name,
        catalog_tier,
        bundles,
        readme,
        sync_config,
        custom_overlay,
        aliases,
        create_time,
        active_tags,
        description,
    } = repo;
    let repo = v2::Repo {
        uid: id,
        name,
        description,
        catalog_tier: tier_from_v1(catalog_tier),
        bundles,
        aliases,
        active_tags,
        sync_config: sync_config.map(sync_from_v1),
        custom_overlay: custom_overlay.map(overlay_from_v1),
        create_time,
        update_time: None,
    };
    (repo, readme)
}

/// The tiers of both versions.
const TIERS: &[(v1::CatalogTier, v2::CatalogTier)] = &[
    (v1::CatalogTier::Application, v2::CatalogTier::Application),
    (v1::CatalogTier::Base, v2::CatalogTier::Base),
    (v1::CatalogTier::Fips, v2::CatalogTier::Fips),
    (v1::CatalogTier::Ai, v2::CatalogTier::Ai),
    (v1::CatalogTier::Devtools, v2::CatalogTier::Devtools),
    (v1::CatalogTier::Commercial, v2::CatalogTier::Commercial),
];

fn tier_to_v1(tier: i32) -> i32 {
    TIERS.iter().find(|(_, new)| *new as i32 == tier).map_or(0, |(old, _)| *old as i32)
}

fn tier_from_v1(tier: i32) -> i32 {
    TIERS.iter().find(|(old, _)| *old as i32 == tier).map_or(0, |(_, new)| *new as i32)
}

fn sync_to_v1(sync: v2::SyncConfig) -> v1::SyncConfig {
    v1::SyncConfig {
        source: sync.source,
        unique_tags: sync.unique_tags,
        expiration: sync.expiration_time,
        google: sync.google,
        amazon: sync.amazon,
        azure: sync.azure,
        apko_overlay: sync.apko_overlay,
        grace_period: sync.grace_period,
        ..v1::SyncConfig::default()
    }
}

fn sync_from_v1(sync: v1::SyncConfig) -> v2::SyncConfig {
    v2::SyncConfig {
        source: sync.source,
        unique_tags: sync.unique_tags,
        expiration_time: sync.expiration,
        google: sync.google,
        amazon: sync.amazon,
        azure: sync.azure,
        apko_overlay: sync.apko_overlay,
        grace_period: sync.grace_period,
    }
}

fn overlay_to_v1(overlay: v2::CustomOverlay) -> v1::CustomOverlay {
    v1::CustomOverlay {
        contents: overlay.contents.map(contents_to_v1),
        environment: overlay.environment,
        annotations: overlay.annotations,
        accounts: overlay.accounts.map(accounts_to_v1),
        certificates: overlay.certificates.map(certificates_to_v1),
    }
}

fn overlay_from_v1(overlay: v1::CustomOverlay) -> v2::CustomOverlay {
    v2::CustomOverlay {
        contents: overlay.contents.map(contents_from_v1),
        environment: overlay.environment,
        annotations: overlay.annotations,
        accounts: overlay.accounts.map(accounts_from_v1),
        certificates: overlay.certificates.map(certificates_from_v1),
    }
}

fn contents_to_v1(contents: v2_overlay::ImageContents) -> v1::ImageContents {
    let key = |key: v2_overlay::image_contents::RuntimeKeyringEntry| v1::image_contents::RuntimeKeyringEntry {
        name: key.name,
        content: key.content,
    };
    v1::ImageContents {
        packages: contents.packages,
        runtime_repositories: contents.runtime_repositories,
        runtime_keyring: contents.runtime_keyring.into_iter().map(key).collect(),
    }
}

fn contents_from_v1(contents: v1::ImageContents) -> v2_overlay::ImageContents {
    let key = |key: v1::image_contents::RuntimeKeyringEntry| v2_overlay::image_contents::RuntimeKeyringEntry {
        name: key.name,
        content: key.content,
    };
    v2_overlay::ImageContents {
        packages: contents.packages,
        runtime_repositories: contents.runtime_repositories,
        runtime_keyring: contents.runtime_keyring.into_iter().map(key).collect(),
    }
}

/// Numbers of users and groups keep their bits: those from 2^31 on are negative in v2.
fn accounts_to_v1(accounts: v2_overlay::Accounts) -> V1Accounts {
    let user = |user: v2_overlay::accounts::User| v1_accounts::User {
        uid: user.uid as u32,
        user_name: user.username,
        gid: Some(user.gid as u32).filter(|gid| *gid != 0),
        group_name: user.group_name,
        shell: user.shell,
        home_dir: user.home_dir,
    };
    let group = |group: v2_overlay::accounts::Group| v1_accounts::Group {
        gid: group.gid as u32,
        group_name: group.groupname,
        members: group.members,
    };
    V1Accounts {
        groups: accounts.groups.into_iter().map(group).collect(),
        users: accounts.users.into_iter().map(user).collect(),
        run_as: accounts.run_as,
    }
}

fn accounts_from_v1(accounts: V1Accounts) -> v2_overlay::Accounts {
    let user = |user: v1_accounts::User| v2_overlay::accounts::User {
        username: user.user_name,
        uid: user.uid as i32,
        gid: user.gid.unwrap_or(0) as i32,
        group_name: user.group_name,
        shell: user.shell,
        home_dir: user.home_dir,
    };
    let group = |group: v1_accounts::Group| v2_overlay::accounts::Group {
        groupname: group.group_name,
        gid: group.gid as i32,
        members: group.members,
    };
    v2_overlay::Accounts {
        run_as: accounts.run_as,
        users: accounts.users.into_iter().map(user).collect(),
        groups: accounts.groups.into_iter().map(group).collect(),
    }
}

fn certificates_to_v1(certificates: v2_overlay::Certificates) -> v1::custom_overlay::Certificates {
    let entry = |entry: v2_overlay::certificates::AdditionalEntry| v1::custom_overlay::certificates::AdditionalEntry {
        name: entry.name,
        content: entry.content,
    };
    v1::custom_overlay::Certificates {
        additional: certificates.additional.into_iter().map(entry).collect(),
        providers: certificates.providers,
    }
}

fn certificates_from_v1(certificates: v1::custom_overlay::Certificates) -> v2_overlay::Certificates {
    let entry = |entry: v1::custom_overlay::certificates::AdditionalEntry| v2_overlay::certificates::AdditionalEntry {
        name: entry.name,
        content: entry.content,
    };
    v2_overlay::Certificates {
        additional: certificates.additional.into_iter().map(entry).collect(),
        providers: certificates.providers,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(values: &[&str]) -> Vec<String> {
        values.iter().map(ToString::to_string).collect()
    }

    fn overlay() -> v1::CustomOverlay {
        let user = v1_accounts::User {
            uid: 65532,
            user_name: "u".into(),
            gid: Some(u32::MAX),
            group_name: "g".into(),
            shell: "/bin/sh".into(),
            home_dir: "/home".into(),
        };
        let keyring = v1::image_contents::RuntimeKeyringEntry { name: "k".into(), content: "c".into() };
        let certificate =
            v1::custom_overlay::certificates::AdditionalEntry { name: "ca".into(), content: "pem".into() };
        v1::CustomOverlay {
            contents: Some(v1::ImageContents {
                packages: texts(&["b", "a"]),
                runtime_repositories: texts(&["https://example.com"]),
                runtime_keyring: vec![keyring],
            }),
            environment: [("A".to_owned(), "1".to_owned())].into(),
            annotations: [("b".to_owned(), "2".to_owned())].into(),
            accounts: Some(V1Accounts {
                groups: vec![v1_accounts::Group { gid: 7, group_name: "g".into(), members: texts(&["z", "y"]) }],
                users: vec![v1_accounts::User { gid: None, ..user.clone() }, user],
                run_as: "65532".into(),
            }),
            certificates: Some(v1::custom_overlay::Certificates {
                additional: vec![certificate],
                providers: texts(&["p"]),
            }),
        }
    }

    fn repo() -> v1::Repo {
        let time = |seconds| Some(prost_types::Timestamp { seconds, nanos: 5 });
        v1::Repo {
            id: "a/b".into(),
            name: "n".into(),
            catalog_tier: v1::CatalogTier::Base as i32,
            bundles: texts(&["fips", "ai"]),
            readme: "# r".into(),
            sync_config: Some(v1::SyncConfig {
                source: "s".into(),
                unique_tags: true,
                expiration: time(1),
                google: "g".into(),
                amazon: "a".into(),
                azure: "z".into(),
                apko_overlay: "o".into(),
                grace_period: true,
                ..v1::SyncConfig::default()
            }),
            custom_overlay: Some(overlay()),
            aliases: texts(&["y:1", "x:2"]),
            create_time: time(2),
            active_tags: texts(&["2", "1"]),
            description: "d".into(),
        }
    }

    #[test]
    fn v1_round_trips() {
        for repo in [repo(), v1::Repo::default()] {
            let (second, readme) = from_v1(repo.clone());
            assert_eq!(to_v1(second, readme), repo);
        }
    }

    #[test]
    fn v2_round_trips() {
        let (second, _) = from_v1(repo());
        assert_eq!(from_v1(to_v1(second.clone(), String::new())).0, second);
        assert_eq!(second.bundles, ["fips", "ai"]);
        assert_eq!(second.catalog_tier, v2::CatalogTier::Base as i32);
    }

    #[test]
    fn tiers_have_other_numbers() {
        for (old, new) in [(0, 0), (4, 1), (5, 2), (6, 3), (7, 4), (8, 5), (9, 6)] {
            assert_eq!((tier_from_v1(old), tier_to_v1(new)), (new, old));
        }
        assert_eq!((tier_from_v1(1), tier_to_v1(9)), (0, 0));
    }
}
