# What the console prints for requests that create: `UPDATE_GOLDEN=1 cargo test -p bowline-calls` writes it.

resource "chainguard_group" "printed" {
  parent_id = "PARENT"
  name = "printed"
  description = "a \"b\" \u00e9\U0001f600"
}

resource "chainguard_identity" "printed_job" {
  parent_id = "PARENT"
  name = "printed job"
  claim_match {
    issuer = "https://issuer.example.com"
    subject_pattern = "repo:acme/my\\.site:.+"
    audience = "here"
    claims = { "environment" = "production" }
    claim_patterns = { "ref" = "refs/heads/.*" }
  }
}

resource "chainguard_identity" "printed_aws" {
  parent_id = "PARENT"
  name = "printed aws"
  aws_identity {
    aws_account = "123456789012"
    aws_arn_pattern = "arn:aws:sts::123456789012:assumed-role/build/.+"
    aws_user_id_pattern = "[A-Z0-9]+:.+"
  }
}

resource "chainguard_identity" "printed_service" {
  parent_id = "PARENT"
  name = "printed service"
  service_principal = "INGESTER"
}

resource "chainguard_role" "printed_role" {
  parent_id = "PARENT"
  name = "printed role"
  description = ""
  capabilities = ["groups.list", "repo.list"]
}

resource "chainguard_rolebinding" "this" {
  group = "PARENT"
  identity = "IDENTITY"
  role = "ROLE"
}

resource "chainguard_identity_provider" "printed_sso" {
  parent_id = "PARENT"
  name = "printed sso"
  default_role = "ROLE"
  oidc {
    issuer = "https://sso.example.com"
    client_id = "client"
    client_secret = var.client_secret
    additional_scopes = ["email"]
  }
}

variable "client_secret" {
  type      = string
  sensitive = true
}

resource "chainguard_group_invite" "this" {
  group = "PARENT"
  role = "ROLE"
  email = "ada@example.com"
  expiration = timeadd(timestamp(), "604800s")
  lifecycle {
    ignore_changes = [expiration]
  }
}

resource "chainguard_account_associations" "printed_accounts" {
  group = "PARENT"
  name = "printed accounts"
  amazon {
    account = "123456789012"
  }
  google {
    project_id = "project"
    project_number = "1234"
  }
  azure {
    tenant_id = "tenant"
    client_ids = { "web" = "one" }
  }
}

resource "chainguard_image_repo" "printed_app" {
  parent_id = "PARENT"
  name = "printed-app"
  description = "$${not a template} %%{nor this}"
  tier = "APPLICATION"
  bundles = ["featured"]
  aliases = ["registry.example.com/app:latest"]
  active_tags = ["1"]
}

resource "chainguard_image_tag" "printed" {
  repo_id = "REPO"
  name = "printed"
  # The provider has no argument for tag.digest.
}

resource "chainguard_subscription" "this" {
  parent_id = "PARENT"
  sink = "https://sink.example.com/printed"
}
