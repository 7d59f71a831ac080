# An identity that changes its kind in place: this is its second kind.
resource "chainguard_identity" "changing" {
  parent_id   = chainguard_group.folder.id
  name        = "changing"
  description = local.description
  claim_match {
    issuer_pattern = "https://issuer\\.example\\.com"
    subject        = "robot"
  }
}
