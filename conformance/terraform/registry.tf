# Repositories, tags, deployments, and what reads repositories back.

resource "chainguard_image_repo" "app" {
  parent_id   = chainguard_group.folder.id
  name        = var.stage == 1 ? "app" : "app-two"
  description = local.description
  readme      = "# App\n\nstage ${var.stage}\n"
  tier        = "APPLICATION"
  bundles     = var.stage == 1 ? ["featured"] : ["featured", "base"]
  aliases     = ["registry.example.com/app:latest"]
  active_tags = var.stage == 1 ? ["1"] : ["1", "2"]
}

resource "chainguard_image_repo" "mirror" {
  parent_id = chainguard_group.folder.id
  name      = "mirror"
  sync_config {
    source = chainguard_image_repo.app.id
  }
}

resource "chainguard_image_tag" "release" {
  repo_id    = chainguard_image_repo.app.id
  name       = var.stage == 1 ? "release" : "release-two"
  bundles    = ["base"]
  deprecated = var.stage == 2
}

resource "chainguard_image_repo_deployment" "app" {
  id = chainguard_image_repo.app.id
  charts = [
    { repo = "oci://registry.example.com/charts/app", source = "https://example.com/app" },
    { repo = "https://charts.example.com", chart = "app-${var.stage}" },
  ]
}

data "chainguard_image_repo" "app" {
  id = chainguard_image_repo.app.id
}

data "chainguard_image_repos" "all" {
  parent_id  = chainguard_group.folder.id
  depends_on = [chainguard_image_repo.app, chainguard_image_repo.mirror]
}

output "app" { value = [for item in data.chainguard_image_repo.app.items : item.name] }
output "repos" { value = sort([for item in data.chainguard_image_repos.all.items : item.name]) }
