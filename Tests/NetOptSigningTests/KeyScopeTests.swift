import NetOptCore
import NetOptTestSupport
import TestTools
import Testing

@testable import NetOptSigning

@Suite("the scope of a key") struct KeyScopeTests {
  /// Whether a scope allows a GET of this path on this host.
  private func allows(_ scope: KeyScope, host: String = "a.test", path: String) -> Bool {
    scope.allows(SigningRequest(method: "GET", authority: host, path: path))
  }

  @Test(
    "paths below a prefix are within, however they are encoded",
    arguments: [
      "/pub", "/pub/", "/pub/x", "/p%75b/x", "/pub/a%2fb", "/pub/a;v=1", "/pub/a\\b", "/pub/100%25",
      "/pub/.x/..y",
    ])
  func pathsWithin(path: String) { #expect(allows(KeyScope(pathPrefixes: ["/pub"]), path: path)) }

  @Test(
    "paths that some servers take for others are outside",
    arguments: [
      "/", "/public", "/pub%6cic", "/PUB/x", "/pub%2fx", "/pub%5cx", "/pub\\x", "/pub;v=1", "/pub/../adm",
      "/pub/%2e%2e/adm",
      "/pub/..;/adm", "/pub/..;v=1/adm", "/pub/..%3b/adm", "/pub/..\\adm", "/pub/..%5cadm", "/pub/..%2fadm",
      "/pub/%252e%252e/adm",
      "/pub/..%252fadm", "/pub/.", "//pub/x", "/pub/%25252525252e",
    ])
  func pathsOutside(path: String) { #expect(!allows(KeyScope(pathPrefixes: ["/pub"]), path: path)) }

  @Test("a prefix may end in a slash, or have parameters")
  func prefixes() {
    #expect(allows(KeyScope(pathPrefixes: ["/pub/"]), path: "/pub/x"))
    #expect(!allows(KeyScope(pathPrefixes: ["/pub/"]), path: "/pub"))
    #expect(allows(KeyScope(pathPrefixes: ["/pub;v=1"]), path: "/pub;v=1/x"))
    #expect(!allows(KeyScope(pathPrefixes: ["/pub;v=1"]), path: "/pub;v=2/x"))
    #expect(allows(KeyScope(pathPrefixes: ["/adm", "/pub"]), path: "/pub/x"))
  }

  @Test("a path of 200,000 encoded bytes is read in a moment", .timeLimit(.minutes(1)))
  func longPath() {
    #expect(
      !allows(
        KeyScope(pathPrefixes: ["/pub"]), path: "/pub/%" + String(repeating: "25", count: 100_000) + "2e"))
    #expect(
      allows(KeyScope(pathPrefixes: ["/pub"]), path: "/pub/" + String(repeating: "%41", count: 100_000)))
  }

  /// The pattern `*.b.test` covers the names below `b.test`, but not `b.test`. A host is outside of the scope
  /// when some servers end its name at a character such as "/".
  @Test("names below a domain are within, other characters are not part of a name")
  func hosts() {
    let scope = KeyScope(hosts: ["*.b.test", "A.test"])
    for host in ["x.b.test", "x_1.y-2.b.test", "a.test"] {
      #expect(allows(scope, host: host, path: "/"), "\(host)")
    }
    for host in [
      "b.test", "xb.test", "evil.test%2f.b.test", "evil.test/.b.test", "evil.test@x.b.test", "x.a.test",
    ] {
      #expect(!allows(scope, host: host, path: "/"), "\(host)")
    }
  }

  /// A kind of server. Each kind finds the segments of a path in its own way.
  private struct Server {
    /// What the server does, in words for the message of a failed test.
    let name: String
    /// How many times the server percent-decodes the whole path or, with `splitsFirst`, each segment.
    let decodings: Int
    /// Whether the server splits the path into segments before it decodes.
    var splitsFirst = false
    /// Whether the server takes a `\` for a slash.
    var takesBackslashes = false
    /// Whether the server cuts each segment at its first `;`.
    var dropsParameters = false
    /// Whether the server percent-decodes each segment once more, after it has cut the parameters off.
    var decodesLast = false

    /// The segments of the resource that the server finds, with `.` and `..` resolved. This code is
    /// independent of `PathReadings`.
    func resource(of path: String) -> [String] {
      var text = path
      if !splitsFirst { for _ in 0..<decodings { text = Self.decoded(text) } }
      if takesBackslashes { text = text.replacing("\\", with: "/") }
      var segments: [String] = []
      for segment in text.split(separator: "/") {
        var name = String(segment)
        if splitsFirst { for _ in 0..<decodings { name = Self.decoded(name) } }
        if dropsParameters { name = String(name.prefix { $0 != ";" }) }
        if decodesLast { name = Self.decoded(name) }
        switch name {
        case ".", "": break
        case "..": _ = segments.popLast()
        default: segments.append(name)
        }
      }
      return segments
    }

    /// Percent-decodes a text once.
    private static func decoded(_ text: String) -> String {
      text.replacing(/%[0-9a-fA-F]{2}/) { match in
        String(UnicodeScalar(UInt8(match.output.dropFirst(), radix: 16) ?? 0))
      }
    }
  }

  private static let servers = [
    Server(name: "splits, then decodes", decodings: 1, splitsFirst: true),
    Server(name: "decodes, then splits", decodings: 1),
    Server(name: "decodes twice", decodings: 2), Server(name: "does not decode", decodings: 0),
    Server(name: "takes backslashes", decodings: 1, takesBackslashes: true),
    Server(name: "drops parameters, then decodes", decodings: 0, dropsParameters: true, decodesLast: true),
    Server(name: "decodes, then drops parameters", decodings: 1, dropsParameters: true),
    Server(name: "behind a proxy that decodes", decodings: 2, takesBackslashes: true, dropsParameters: true),
  ]

  /// When the scope allows a path, servers of every kind find a resource below the prefix.
  @Test("what is within is below the prefix for servers of every kind", arguments: UInt64(1)...4)
  func servers(seed: UInt64) {
    let pieces = [
      "/", "/", "pub", "adm", ".", "..", "%2e", "%2E.", "%252e", "%2f", "%252F", "\\", "%5c", ";", ";v=1",
      "%3b", "x", "%75", "%", "%25",
    ]
    var random = SplitMix64(seed: seed)
    let scope = KeyScope(pathPrefixes: ["/pub"])
    var within = 0
    for _ in 0..<20_000 {
      var path = random.isOne(in: 4) ? "/" : "/pub/"
      for _ in 0..<random.below(8) { path += pieces[Int(random.below(UInt64(pieces.count)))] }
      guard allows(scope, path: path) else { continue }
      within += 1
      for server in Self.servers {
        let resource = server.resource(of: path)
        // A server that does not decode has another name for the same segment.
        #expect(
          resource.first.map { $0 == "pub" || (server.decodings == 0 && !server.decodesLast) } == true,
          "\(path): a server that \(server.name) finds \(resource)")
      }
    }
    #expect(within > 1000)
  }
}
