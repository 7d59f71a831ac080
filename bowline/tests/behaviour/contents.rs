//! What pushes leave behind, written into the tables without a push.

use bowline_store::Value as Sql;
use bowline_testkit::TestServer;

/// A manifest to store.
pub(crate) struct Manifest<'a> {
    pub(crate) digest: &'a str,
    /// 1 image, 2 index, 3 other.
    pub(crate) shape: i64,
    pub(crate) size: i64,
    /// What an index names: digest and architecture.
    pub(crate) names: &'a [(&'a str, &'a str)],
    /// Architecture and run part of an image's config.
    pub(crate) config: Option<(&'a str, &'a str)>,
}

/// A digest for tests: 64 times the character.
pub(crate) fn digest(character: char) -> String {
    format!("sha256:{}", character.to_string().repeat(64))
}

/// Stores a manifest and links it to a repository.
pub(crate) async fn store(server: &TestServer, repo: &str, manifest: &Manifest<'_>) {
    let owned: Vec<(String, String)> =
        manifest.names.iter().map(|(digest, architecture)| (digest.to_string(), architecture.to_string())).collect();
    let config = manifest.config.map(|(architecture, run)| (architecture.to_owned(), run.to_owned()));
    let (repo, digest) = (repo.to_owned(), manifest.digest.to_owned());
    let (shape, size) = (manifest.shape, manifest.size);
    let db = &server.server().parts().storage.db;
    let written = db.write(move |tx| {
        let (owned, config, repo, digest) = (owned.clone(), config.clone(), repo.clone(), digest.clone());
        Box::pin(async move {
            let sql = "INSERT INTO manifests (digest, media_type, artifact_type, config_digest, subject, shape, total_size,
                                              annotations, content, created_at)
                       VALUES ($1, '', '', '', '', $2, $3, '{}', $4, 0) ON CONFLICT DO NOTHING";
            tx.execute(sql, &[Sql::from(&digest), Sql::Int(shape), Sql::Int(size), Sql::Bytes(b"{}")]).await?;
            let sql = "INSERT INTO repo_manifests (repo, digest, org, subject, artifact_type, pushed_at)
                       VALUES ($1, $2, $3, '', '', 0)";
            let org = repo.split('/').next().unwrap_or_default();
            tx.execute(sql, &[Sql::from(&repo), Sql::from(&digest), Sql::from(org)]).await?;
            let sql = "INSERT INTO manifest_references (manifest, place, kind, digest, media_type, size, os, architecture, variant)
                       VALUES ($1, $2, 3, $3, '', 0, 'linux', $4, '') ON CONFLICT DO NOTHING";
            for (place, (member, architecture)) in (0i64..).zip(&owned) {
                let params = [Sql::from(&digest), Sql::Int(place), Sql::from(member), Sql::from(architecture)];
                tx.execute(sql, &params).await?;
            }
            if let Some((architecture, run)) = &config {
                let sql = "INSERT INTO image_configs (manifest, os, architecture, variant, config)
                           VALUES ($1, 'linux', $2, '', $3) ON CONFLICT DO NOTHING";
                tx.execute(sql, &[Sql::from(&digest), Sql::from(architecture), Sql::from(run)]).await?;
            }
            Ok::<_, bowline_core::Error>(())
        })
    });
    written.await.expect("the database takes a manifest");
}
