package import NetOptCore

/// Which fields of requests tell for whom they speak: those that are listed, and those whose names speak of a secret
/// (`SecretNames`). They are looked for in each request that may be answered from the cache.
package final class CredentialFields: Sendable {
  private let patterns: NamePatterns
  /// The names in small letters that only seem to speak of a secret.
  private let harmless: Set<String>
  /// The names in small letters that were listed beside the usual ones.
  private let added: Set<String>
  /// What tells one choice of fields from another.
  package let text: String

  /// Makes them of names in any case.
  ///
  /// - Parameters:
  ///   - names: the listed ones.
  ///   - harmless: those that are none although their names speak of a secret, unless they are listed too.
  package init(_ names: Set<String>, harmless: Set<String> = CredentialFields.harmless) {
    let listed = Set(names.map { $0.loweredASCII })
    let harmless = Set(harmless.map { $0.loweredASCII }).subtracting(listed)
    patterns = SecretNames.patterns(and: listed.sorted())
    self.harmless = harmless
    added = listed.subtracting(Self.usual.map { $0.loweredASCII })
    text = (listed.sorted() + [""] + harmless.sorted()).joined(separator: "\n")
  }

  /// Whether a field carries credentials.
  package func contains(_ name: String) -> Bool {
    patterns.match(name) && !harmless.contains(name.loweredASCII)
  }

  /// The fields of a request that carry credentials, in the order of their names, those with one name in their own. The names are in
  /// small letters.
  ///
  /// A token against request forgery counts when nothing else tells who asks. Beside other credentials it belongs to their user, and is sent with
  /// what changes a resource: with a partition of its own such a request would leave stored what it has changed.
  package func of(_ fields: HeaderFields) -> [(name: String, value: String)] {
    var found: [(name: String, value: String)] = []
    for field in fields where contains(field.name) {
      found.append((field.name.loweredASCII, field.value))
    }
    if found.count > 1 {
      // By the position too, because `sort` need not keep the order of equal elements.
      found = found.enumerated().sorted { ($0.element.name, $0.offset) < ($1.element.name, $1.offset) }
        .map(\.element)
    }
    guard found.contains(where: { isOfForgery($0.name) }) else { return found }
    let others = found.filter { !isOfForgery($0.name) }
    return others.isEmpty ? found : others
  }

  private static let forgery = NamePatterns(parts: ["csrf", "xsrf"], words: ["crumb"], names: [])

  private func isOfForgery(_ name: String) -> Bool { Self.forgery.match(name) && !added.contains(name) }

  /// Those that are common and whose names speak of no secret: in them gateways tell services, and services each other, for whom a
  /// request is made.
  package static let usual: Set<String> = [
    "Authorization", "Cookie", "Proxy-Authorization", "DPoP", "X-Netopt-Sealed",
    "From", "Remote-User", "X-Remote-User", "X-Forwarded-User", "X-Forwarded-Email",
    "X-Forwarded-Preferred-Username", "X-Forwarded-Groups", "X-User", "X-User-Id", "X-User-Name",
    "X-Username",
    "X-User-Email", "X-Email", "X-Account", "X-Account-Id", "X-Customer-Id", "X-Client-Id", "X-Tenant",
    "X-Tenant-Id", "X-Org-Id", "X-Organization-Id", "X-Authenticated-User", "X-Authenticated-Userid",
    "X-Consumer-Id", "X-Consumer-Username", "X-Consumer-Custom-Id", "X-Credential-Identifier",
    "X-Goog-Authenticated-User-Email", "X-Goog-Authenticated-User-Id", "Cf-Access-Authenticated-User-Email",
    "X-Ms-Client-Principal", "X-Ms-Client-Principal-Id", "X-Ms-Client-Principal-Name", "X-Amzn-Oidc-Data",
    "X-Amzn-Oidc-Identity", "Tailscale-User-Login", "X-Webauth-User", "X-Impersonate-User",
    "Impersonate-User",
    "Client-Cert", "X-Forwarded-Client-Cert", "X-Client-Cert", "X-Ssl-Client-Cert", "X-Ssl-Client-S-Dn",
    "X-Ssl-Client-Dn", "Ssl-Client-Cert", "X-Arr-ClientCert",
    "X-Uid", "X-Userid", "X-Principal", "X-On-Behalf-Of", "Sudo", "Authentication", "Stripe-Account",
    "Xero-Tenant-Id", "Dropbox-API-Select-User", "Dropbox-API-Select-Admin", "OpenAI-Organization",
    "OpenAI-Project", "X-Goog-User-Project", "X-Scope-OrgID", "X-Grafana-Org-Id", "Cf-Access-Client-Id",
    "X-Jenkins-Crumb", "Jenkins-Crumb",
  ]

  /// Those whose names only seem to speak of a secret.
  package static let harmless: Set<String> = ["Idempotency-Key", "X-Idempotency-Key", "Sec-WebSocket-Key"]
}
