import NetOptCore
import NetOptTestSupport

/// Names of request fields that carry credentials or identify a user. The cache must treat all of them as
/// credential fields.
enum CredentialNames {
  /// A name that suggests no secret. The cache treats the field as a credential field only because a test
  /// adds the name to `credentialFields`.
  static let ours = "X-Ours"

  /// `ours`, and names that real services and gateways use.
  private static let known = [
    "Authorization", "Cookie", "Proxy-Authorization", "DPoP", "X-Forwarded-User", "Remote-User",
    "X-User-Id", "X-Forwarded-Client-Cert", "X-MS-Client-Principal", ours,
    "Api-Key", "ApiKey", "X-Api-Key", "X-ApiKey", "X-Auth-User", "X-Session-Id", "X-JWT-Assertion",
    "Job-Token",
    "Ocp-Apim-Subscription-Key", "X-Amz-Security-Token", "X-RapidAPI-Key", "X-Vault-Token", "DD-API-KEY",
    "CF-Access-Client-Secret", "X-Netopt-Key", "Sudo", "X-On-Behalf-Of", "Stripe-Account", "Xero-Tenant-Id",
    "OpenAI-Organization", "X-Scope-OrgID", "X-Grafana-Org-Id", "Jenkins-Crumb", "X-ARR-ClientCert",
  ]
  /// Words by which the cache recognises a credential field. `any` makes names from them.
  private static let words = [
    "token", "secret", "api-key", "apikey", "access-token", "auth", "session", "password", "signature",
    "ticket",
    "bearer", "credential", "csrf-token",
  ]

  /// A random name: one of `known`, or a word with a prefix and a suffix, such as `X-Acme-Token-V2`. It is in
  /// lower case, in upper case, or as listed.
  static func any(_ random: inout SplitMix64) -> String {
    var name = known.randomElement(using: &random) ?? ours
    if random.below(2) == 0 {
      let prefix = ["", "X-", "Acme-", "X-Acme-"].randomElement(using: &random) ?? ""
      let suffix = ["", "", "-V2", "-Id", "-1"].randomElement(using: &random) ?? ""
      name = prefix + (words.randomElement(using: &random) ?? "token") + suffix
    }
    return switch random.below(3) {
    case 0: name.lowercased()
    case 1: name.uppercased()
    default: name
    }
  }
}
