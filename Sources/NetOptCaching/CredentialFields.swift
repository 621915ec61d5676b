package import NetOptCore

/// The names of the fields of requests that carry credentials. They are looked for in each request that may be answered from the cache:
/// nearly always none of a request's fields has a name as long as one of them.
package struct CredentialFields: Sendable {
  /// The names in small letters, by their length.
  private let byLength: [[String]]

  /// Makes them of names in any case.
  package init(_ names: Set<String>) {
    let lowered = Set(names.map { $0.lowercased() })
    var byLength = [[String]](repeating: [], count: (lowered.map(\.utf8.count).max() ?? 0) + 1)
    for name in lowered { byLength[name.utf8.count].append(name) }
    self.byLength = byLength
  }

  /// The fields of a request that carry credentials, in the order of their names, those with one name in their own. The names are in
  /// small letters.
  package func of(_ fields: HTTPFields) -> [(name: String, value: String)] {
    var found: [(name: String, value: String)] = []
    for field in fields {
      let length = field.name.utf8.count
      guard length < byLength.count, !byLength[length].isEmpty,
        let name = byLength[length].first(where: { HTTPFields.equal($0, field.name) })
      else { continue }
      // Behind those with names that are not greater: they are few.
      found.insert((name, field.value), at: found.firstIndex { $0.name > name } ?? found.endIndex)
    }
    return found
  }

  /// Those that are common: of HTTP, of cookies, and the ones in which services take keys and tokens.
  package static let usual: Set<String> = [
    "Authorization", "Cookie", "Proxy-Authorization", "DPoP",
    "Api-Key", "ApiKey", "X-Api-Key", "X-ApiKey", "X-Api-Token", "X-Api-Secret", "X-Auth-Key", "X-Auth-Token",
    "X-Auth-User",
    "X-Authorization", "X-Access-Token", "X-User-Token", "X-Session-Id", "X-Session-Token", "X-Token",
    "X-JWT-Assertion",
    "Auth-Token", "Access-Token", "Private-Token", "Job-Token", "Ocp-Apim-Subscription-Key",
    "X-Amz-Security-Token",
    "X-Functions-Key", "X-Goog-Api-Key", "X-Goog-Iap-Jwt-Assertion", "X-RapidAPI-Key",
    "X-Shopify-Access-Token", "X-Vault-Token",
    "X-Netopt-Key", "X-Netopt-Sealed",
  ]
}
