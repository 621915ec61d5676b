package import NetOptCore

/// The request fields that identify the user: the listed ones, and those whose names suggest a secret
/// (`SecretNames`). The cache looks for them in each request that a stored response may answer.
package final class CredentialFields: Sendable {
  private let patterns: NamePatterns
  /// The lowercase names that only seem to suggest a secret.
  private let harmless: Set<String>
  /// The lowercase names that were listed in addition to the usual ones.
  private let added: Set<String>
  /// Text that identifies this choice of fields.
  package let text: String

  /// Makes a set of credential fields from names in any case.
  ///
  /// - Parameters:
  ///   - names: the names of fields that carry credentials.
  ///   - harmless: the names of fields that carry no credentials although their names suggest a secret.
  ///     `names` takes precedence.
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

  /// The credential fields of a request, sorted by name; fields with the same name keep their order. The
  /// names are in lowercase.
  ///
  /// A token against request forgery counts only if no other field identifies the user. Beside other
  /// credentials the token belongs to the same user, and is sent with requests that change a resource. If it
  /// put such a request into another partition, the request would not invalidate the stored entries that it
  /// has made outdated.
  package func of(_ fields: HeaderFields) -> [(name: String, value: String)] {
    var found: [(name: String, value: String)] = []
    for field in fields where contains(field.name) {
      found.append((field.name.loweredASCII, field.value))
    }
    if found.count > 1 {
      // Compares positions too, because `sort` may change the order of equal elements.
      found = found.enumerated().sorted { ($0.element.name, $0.offset) < ($1.element.name, $1.offset) }
        .map(\.element)
    }
    guard found.contains(where: { isOfForgery($0.name) }) else { return found }
    let others = found.filter { !isOfForgery($0.name) }
    return others.isEmpty ? found : others
  }

  private static let forgery = NamePatterns(parts: ["csrf", "xsrf"], words: ["crumb"], names: [])

  private func isOfForgery(_ name: String) -> Bool { Self.forgery.match(name) && !added.contains(name) }

  /// The common credential fields whose names do not suggest a secret. Gateways and services use them to tell
  /// services for whom a request is made.
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

  /// The fields whose names only seem to suggest a secret.
  package static let harmless: Set<String> = ["Idempotency-Key", "X-Idempotency-Key", "Sec-WebSocket-Key"]
}
