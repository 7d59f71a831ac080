# An identity that changes its kind in place: this is its first kind.
resource "chainguard_identity" "changing" {
  parent_id   = chainguard_group.folder.id
  name        = "changing"
  description = local.description
  static {
    issuer      = "https://keys.example.com"
    subject     = "robot"
    issuer_keys = jsonencode({ keys = [] })
    expiration  = var.expiration
  }
}
