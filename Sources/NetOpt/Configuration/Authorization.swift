import NetOptCore
import NetOptSigning

extension ClientConfiguration {
  /// Credentials that the client adds to the requests to some hosts, as the field `Authorization`. In a
  /// redirected call, it adds them to each request to one of these hosts, and to no other. It adds nothing to
  /// a request that has the field already. It adds nothing without TLS or without verification of the
  /// certificate, unless `allowsUnprotected` is true. The client does not follow a redirect from another
  /// origin to one of the hosts, but returns the redirect. With a cache, requests with different credentials
  /// share no stored responses.
  public struct Authorization: Sendable {
    /// Where the value of the field comes from.
    enum Source: Sendable {
      case basic(user: String, password: String)
      case bearer(String)
      case token(@Sendable (_ rejected: String?) async throws -> String)
    }

    /// The names of the hosts, without ports.
    public var hosts: Set<String>
    /// Whether the client sends the credentials without TLS, or to a server whose certificate it does not
    /// verify. Anybody on the path can then read them. Default: no.
    public var allowsUnprotected = false
    let source: Source

    /// The value of the field, unless it is a token that the program fetches.
    var value: String? {
      switch source {
      case .basic(let user, let password): "Basic " + Base64.text(Array("\(user):\(password)".utf8))
      case .bearer(let token): "Bearer " + token
      case .token: nil
      }
    }

    /// The user name and the password (RFC 7617), in UTF-8.
    ///
    /// - Parameters:
    ///   - user: the user name. It must not contain a colon.
    ///   - password: the password.
    ///   - hosts: the names of the hosts, without ports.
    public static func basic(user: String, password: String, hosts: Set<String>) -> Authorization {
      Authorization(hosts: hosts, source: .basic(user: user, password: password))
    }

    /// A token that does not change (RFC 6750).
    public static func bearer(_ token: String, hosts: Set<String>) -> Authorization {
      Authorization(hosts: hosts, source: .bearer(token))
    }

    /// A token that the program fetches when it is needed (RFC 6750). The client keeps the token until a
    /// server answers 401. It then asks for another token. If the other token differs, it sends the request
    /// once more. A request whose body is a `stream` is not sent again: the client returns the 401, and later
    /// calls get another token. Calls that need a token at the same time share one call of the closure.
    ///
    /// ```swift
    /// configuration.authorization = [
    ///   .bearer(hosts: ["api.example.com"]) { rejected in try await tokens.fetch(replacing: rejected) }
    /// ]
    /// ```
    ///
    /// - Parameters:
    ///   - hosts: the names of the hosts, without ports.
    ///   - token: returns a token. Its argument is the token that a server rejected; `nil` for the first
    ///     token. Calls wait for the closure until their deadlines. The client abandons a fetch that takes
    ///     more than 30 s. If the closure throws a `NetOptError`, the waiting calls throw this error. If it
    ///     throws another error, they throw `.custom("token-unavailable")` with that error as `cause`. The
    ///     closure must not use this client, which may wait for the closure: fetch tokens with another
    ///     client.
    public static func bearer(
      hosts: Set<String>, token: @escaping @Sendable (_ rejected: String?) async throws -> String
    ) -> Authorization {
      Authorization(hosts: hosts, source: .token(token))
    }
  }
}

extension ClientConfiguration.Authorization: CustomStringConvertible, CustomReflectable {
  /// The hosts. The credentials are secret.
  public var description: String { "credentials for \(hosts.sorted().joined(separator: ", "))" }

  /// A mirror without the credentials.
  public var customMirror: Mirror { Mirror(self, children: ["hosts": hosts], displayStyle: .struct) }
}
