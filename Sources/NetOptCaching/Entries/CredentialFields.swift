package import NetOptCore

/// Decides which request fields identify the user: those in a list of names, and those whose names suggest a
/// secret (`SecretNames`). Requests with different values in these fields use different partitions of the
/// cache.
package final class CredentialFields: Sendable {
  /// Matches the listed names, and names that suggest a secret.
  private let patterns: NamePatterns
  /// The lowercase names of fields that match `patterns` but carry no credentials.
  private let harmless: Set<String>
  /// The listed names that are not in `usual`, in lowercase. The caller has added them, so they always count
  /// as credentials, even if they look like names of tokens against request forgery (`isOfForgery`).
  private let added: Set<String>
  /// The listed and the harmless names, sorted, as one text. Clients with different texts use different
  /// partitions (`settingsDigest` of `RequestKey.partition`).
  package let text: String

  /// Makes a set of credential fields from names in any case.
  ///
  /// - Parameters:
  ///   - names: the names of fields that carry credentials.
  ///   - harmless: the names of fields that carry no credentials although their names suggest a secret. A
  ///     name that is also in `names` is not harmless.
  package init(_ names: Set<String>, harmless: Set<String> = CredentialFields.harmless) {
    let listed = Set(names.map { $0.loweredASCII })
    let harmless = Set(harmless.map { $0.loweredASCII }).subtracting(listed)
    patterns = SecretNames.patterns(and: listed)
    self.harmless = harmless
    added = listed.subtracting(Self.lowercaseUsual)
    text = (listed.sorted() + [""] + harmless.sorted()).joined(separator: "\n")
  }

  /// The fields of the default settings. Clients with these settings share the object.
  package static let standard = CredentialFields(usual)

  /// Whether a field carries credentials.
  package func contains(_ name: String) -> Bool {
    patterns.match(name) && !harmless.contains(name.loweredASCII)
  }

  /// The credential fields of a request, sorted by name; fields with the same name keep their order. The
  /// names are in lowercase.
  ///
  /// A token against request forgery (CSRF) counts only if the request has no other credential field. Clients
  /// send such a token with requests that change a resource, and it belongs to the same user as the other
  /// credentials. If the token counted, such a request would be in another partition than the user's GET
  /// requests. It would then not invalidate the stored entries that it has made outdated.
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

  /// Matches the names of fields with a token against request forgery.
  private static let forgery = NamePatterns(parts: ["csrf", "xsrf"], words: ["crumb"], names: [])

  /// Whether a lowercase field name suggests a token against request forgery and is not in `added`.
  private func isOfForgery(_ name: String) -> Bool { Self.forgery.match(name) && !added.contains(name) }

  /// Common fields that identify the user although most of their names do not suggest a secret. With many of
  /// these fields, a gateway tells a service for which user it forwards the request.
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

  private static let lowercaseUsual = Set(usual.map { $0.loweredASCII })

  /// Common fields that carry no credentials although their names suggest a secret.
  package static let harmless: Set<String> = ["Idempotency-Key", "X-Idempotency-Key", "Sec-WebSocket-Key"]
}
