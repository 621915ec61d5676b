import Foundation
import FoundationNetworking
import NetOpt

extension URLProtectionSpace {
  /// Returns the space for whose Basic credentials a response asks (RFC 7617); `nil` if it asks for none.
  static func basic(of response: NetOptResponse, from url: URL) -> URLProtectionSpace? {
    let realms = response.headers.values(of: "WWW-Authenticate").lazy.compactMap(basicRealm)
    guard let realm = realms.first, let host = url.host, let scheme = url.scheme?.lowercased() else {
      return nil
    }
    return URLProtectionSpace(
      host: host, port: url.port ?? (scheme == "https" ? 443 : 80), protocol: scheme, realm: realm,
      authenticationMethod: NSURLAuthenticationMethodHTTPBasic)
  }

  /// Returns the realm of the Basic challenge in a value of `WWW-Authenticate` (RFC 9110, section 11.6.1).
  private static func basicRealm(_ value: String) -> String? {
    var scheme = ""
    var rest = value[...]
    while let parameter = nextParameter(&rest) {
      let words = parameter.name.split(separator: " ")
      if words.count > 1 || parameter.value == nil { scheme = words.first?.lowercased() ?? "" }
      if scheme == "basic", words.last?.lowercased() == "realm", let realm = parameter.value { return realm }
    }
    return nil
  }

  /// Takes the next element of a list: a scheme, a parameter, or both (`Basic realm="a, b"`).
  private static func nextParameter(_ rest: inout Substring) -> (name: String, value: String?)? {
    rest = rest.drop { $0 == " " || $0 == "," || $0 == "\t" }
    guard !rest.isEmpty else { return nil }
    let name = rest.prefix { $0 != "=" && $0 != "," }
    rest = rest[name.endIndex...]
    guard rest.first == "=" else { return (String(name), nil) }
    rest = rest.dropFirst().drop { $0 == " " }
    guard rest.first == "\"" else {
      let value = rest.prefix { $0 != "," }
      rest = rest[value.endIndex...]
      return (String(name), value.trimmingCharacters(in: .whitespaces))
    }
    rest = rest.dropFirst()
    var value = ""
    while let character = rest.popFirst(), character != "\"" {
      if character == "\\", let quoted = rest.popFirst() {
        value.append(quoted)
      } else {
        value.append(character)
      }
    }
    return (String(name), value)
  }
}

extension URLCredentialStorage {
  /// Returns the credential for a space, the one of the first user name; `nil` if there is none. On Linux,
  /// spaces with the same properties are not equal, so that a look-up by a new space finds nothing.
  func credential(forEqualOf space: URLProtectionSpace) -> URLCredential? {
    let found = allCredentials.first { stored, _ in
      stored.host == space.host && stored.port == space.port && stored.protocol == space.protocol
        && stored.realm == space.realm && stored.authenticationMethod == space.authenticationMethod
    }
    return found?.value.min { $0.key < $1.key }?.value
  }
}
