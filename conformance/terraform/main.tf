terraform {
  required_providers {
    chainguard = { source = "chainguard-dev/chainguard" }
  }
}

variable "api" { type = string }
variable "organization" { type = string }

# What the second apply changes in place.
variable "stage" {
  type    = number
  default = 1
}

# Times must be the same in every run.
variable "expiration" { type = string }

provider "chainguard" {
  console_api = var.api
  login_options { disabled = true }
}

locals {
  description = "stage ${var.stage}"
}

data "chainguard_role" "viewer" {
  name = "viewer"
}

data "chainguard_group" "organization" {
  id = var.organization
}

resource "chainguard_group" "folder" {
  parent_id   = data.chainguard_group.organization.id
  name        = var.stage == 1 ? "folder" : "folder two"
  description = local.description
}

resource "chainguard_role" "custom" {
  parent_id    = chainguard_group.folder.id
  name         = "reader"
  description  = local.description
  capabilities = var.stage == 1 ? ["groups.list", "repo.list"] : ["groups.list", "repo.list", "tag.list"]
}

resource "chainguard_identity" "workload" {
  parent_id   = chainguard_group.folder.id
  name        = "workload"
  description = local.description
  claim_match {
    issuer           = "https://issuer.example.com"
    subject_pattern  = var.stage == 1 ? "repo:acme/.*" : "repo:acme/[a-z]+"
    audience_pattern = ".+"
    claims           = { "environment" = "production" }
    claim_patterns   = { "ref" = "refs/heads/.*" }
  }
}

# Names, issuers and subjects of identities are not unique. The second apply gives it a name of its own: files need one.
resource "chainguard_identity" "twin" {
  parent_id = chainguard_group.folder.id
  name      = var.stage == 1 ? "workload" : "twin"
  claim_match {
    issuer   = "https://issuer.example.com"
    subject  = "exact"
    audience = "here"
  }
}

resource "chainguard_identity" "static" {
  parent_id = chainguard_group.folder.id
  name      = "static"
  static {
    issuer      = "https://keys.example.com"
    subject     = var.stage == 1 ? "robot" : "another robot"
    issuer_keys = jsonencode({ keys = [] })
    expiration  = var.expiration
  }
}

resource "chainguard_identity" "aws" {
  parent_id = chainguard_group.folder.id
  name      = "aws role"
  aws_identity {
    aws_account         = "123456789012"
    aws_arn             = var.stage == 1 ? "arn:aws:sts::123456789012:assumed-role/build/one" : null
    aws_arn_pattern     = var.stage == 1 ? null : "arn:aws:sts::123456789012:assumed-role/build/.*"
    aws_user_id_pattern = "^AROA[0-9A-Z]+:.*$"
  }
}

resource "chainguard_identity" "service" {
  parent_id         = chainguard_group.folder.id
  name              = "service"
  service_principal = var.stage == 1 ? "INGESTER" : "COSIGNED"
}

resource "chainguard_rolebinding" "workload" {
  group    = chainguard_group.folder.id
  identity = chainguard_identity.workload.id
  role     = var.stage == 1 ? data.chainguard_role.viewer.items[0].id : chainguard_role.custom.id
}

resource "chainguard_identity_provider" "sso" {
  parent_id    = chainguard_group.folder.id
  name         = "sso"
  description  = local.description
  default_role = data.chainguard_role.viewer.items[0].id
  oidc {
    issuer            = "https://sso.example.com"
    client_id         = var.stage == 1 ? "client" : "another client"
    client_secret     = "secret"
    additional_scopes = ["email", "profile"]
  }
}

resource "chainguard_group_invite" "viewer" {
  group      = chainguard_group.folder.id
  expiration = var.expiration
  role       = data.chainguard_role.viewer.items[0].id
  email      = "somebody@example.com"
}

resource "chainguard_account_associations" "accounts" {
  group       = chainguard_group.folder.id
  name        = "accounts"
  description = local.description
  amazon { account = var.stage == 1 ? "123456789012" : "210987654321" }
  google {
    project_id     = "project"
    project_number = "1234"
  }
  azure {
    tenant_id  = "tenant"
    client_ids = { "web" = "one", "batch" = "two" }
  }
  chainguard {
    service_bindings = { "INGESTER" = chainguard_identity.service.id }
  }
  github_installation {
    app_id          = 7
    installation_id = 70
    name            = "acme"
  }
}

resource "chainguard_subscription" "events" {
  parent_id = chainguard_group.folder.id
  sink      = var.stage == 1 ? "https://sink.example.com/events" : "https://sink.example.com/other"
}

output "viewer" {
  value = data.chainguard_role.viewer.items[0].id
}
