import NetOptCore

/// What a key may be used for. A part that is `nil` is not limited.
public struct KeyScope: Hashable, Sendable {
  /// Hosts; `*.example.com` stands for every name below.
  public var hosts: [String]?
  /// Methods.
  public var methods: [String]?
  /// Beginnings of paths; `/user` is the beginning of `/user` and `/user/x`, not of `/users`.
  public var pathPrefixes: [String]?

  /// Makes a scope.
  public init(hosts: [String]? = nil, methods: [String]? = nil, pathPrefixes: [String]? = nil) {
    self.hosts = hosts
    self.methods = methods
    self.pathPrefixes = pathPrefixes
  }

  /// Whether a request lies within.
  func allows(_ request: SigningRequest) -> Bool {
    if let methods, !methods.contains(request.method) { return false }
    if let hosts {
      let host = request.host
      guard hosts.contains(where: { Self.matches(host, $0.loweredASCII) }) else { return false }
    }
    if let pathPrefixes {
      let path = PercentEncoding.decoded(request.path.utf8)
      // Where such a path leads is for the server to say, and might be outside.
      if Self.hasDotSegment(path) { return false }
      guard pathPrefixes.contains(where: { Self.begins(path, with: Array($0.utf8)) }) else { return false }
    }
    return true
  }

  private static func matches(_ host: String, _ pattern: String) -> Bool {
    guard pattern.hasPrefix("*.") else { return host == pattern }
    return host.hasSuffix(pattern.dropFirst()) && host.utf8.count >= pattern.utf8.count
  }

  private static func hasDotSegment(_ path: [UInt8]) -> Bool {
    path.split(separator: 0x2f).contains { $0.elementsEqual(".".utf8) || $0.elementsEqual("..".utf8) }
  }

  private static func begins(_ path: [UInt8], with prefix: [UInt8]) -> Bool {
    guard path.starts(with: prefix) else { return false }
    return path.count == prefix.count || prefix.last == 0x2f || path[prefix.count] == 0x2f
  }
}
