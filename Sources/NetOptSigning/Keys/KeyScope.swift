import NetOptCore

/// Limits the requests that a key may sign. A request must match every property. A property that is `nil`
/// matches every request.
public struct KeyScope: Hashable, Sendable {
  /// The hosts, without ports. `*.example.com` stands for every name below `example.com`.
  public var hosts: [String]?
  /// The methods, such as `GET`.
  public var methods: [String]?
  /// Prefixes of paths, not percent-encoded. The prefix `/user` allows `/user` and `/user/x`, but not
  /// `/users`. A path is not allowed if some servers read it as a path outside the prefix, as they may read
  /// `/user/..;/admin` or `/user%2fx`.
  public var pathPrefixes: [String]?

  /// Makes a scope.
  public init(hosts: [String]? = nil, methods: [String]? = nil, pathPrefixes: [String]? = nil) {
    self.hosts = hosts
    self.methods = methods
    self.pathPrefixes = pathPrefixes
  }

  /// Whether the scope allows a request.
  func allows(_ request: SigningRequest) -> Bool {
    if let methods, !methods.contains(request.method) { return false }
    if let hosts {
      let host = request.host
      guard hosts.contains(where: { Self.matches(host, $0.loweredASCII) }) else { return false }
    }
    guard let pathPrefixes else { return true }
    guard let readings = PathReadings(request.path) else { return false }
    return pathPrefixes.contains { readings.lieBelow(Array($0.utf8)) }
  }

  /// Whether a host is the one that a pattern names or, for `*.example.com`, lies below `example.com`.
  private static func matches(_ host: String, _ pattern: String) -> Bool {
    guard pattern.hasPrefix("*.") else { return host == pattern }
    let domain = pattern.dropFirst()
    guard host.hasSuffix(domain), host.utf8.count >= pattern.utf8.count else { return false }
    // For some servers, other characters, such as those of `%2f`, end the name, so that it names another
    // host.
    return host.utf8.dropLast(domain.utf8.count).allSatisfy(ByteClass.isUnreserved)
  }
}
