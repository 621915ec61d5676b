import NetOptCore
import NetOptTestSupport
import TestTools
import Testing

/// Heads of any length that libcurl takes come through whole, with their bodies, and without waiting for anything.
@Suite struct LongHeadTests {
  /// The most fields, and the fewest that libcurl before 8.1 does not take over HTTP/2: it stops at 128 KiB.
  private static let most = 32
  private static let tooMany = 36

  /// Characters that Huffman's code of HTTP/2 makes shorter (RFC 7541, appendix B), or longer.
  private static let fillings = ["short": "etaoins", "long": "~|^%<>`"]

  /// An origin with a location for each number of fields, of 3900 bytes each.
  private func origin() async throws -> NginxOrigin {
    var settings = NginxSettings()
    for (name, filling) in Self.fillings {
      let value = String(repeating: filling, count: 1 + 3900 / filling.count).prefix(3900)
      for count in Array(1...Self.most) + [Self.tooMany] {
        let fields = (0..<count).map { "add_header X-\($0) '\(value)';" }.joined(separator: " ")
        let body = String(repeating: "\(name) \(count) ", count: 400)
        settings.directives += "location /\(name)/\(count) { \(fields) return 200 '\(body)'; }\n"
      }
    }
    return try await NginxOrigin.start(for: ["api.test"], on: [.loopback], settings: settings)
  }

  private static func check(_ response: NetOptResponse, _ name: String, _ count: Int) async throws {
    #expect(
      response.headers.filter { $0.name.lowercased().hasPrefix("x-") && $0.value.utf8.count == 3900 }.count
        == count)
    let body = try await response.body.collect(upTo: 1 << 20)
    #expect(String(decoding: body, as: UTF8.self) == String(repeating: "\(name) \(count) ", count: 400))
  }

  @Test(arguments: [RequestOptions.Version.http1, .http2])
  func comeWholeOneAfterTheOther(_ version: RequestOptions.Version) async throws {
    let origin = try await origin()
    defer { origin.stop() }
    let bench = try await TransportBench()
    for (name, count) in Self.fillings.keys.sorted().flatMap({ name in (1...Self.most).map { (name, $0) } }) {
      var request = try NetOptRequest(.get, "https://api.test:\(origin.port)/\(name)/\(count)")
      request.options.version = version
      request.options.timeout = .seconds(30)
      try await Self.check(bench.execute(request, [.loopback]), name, count)
    }
    await bench.end()
  }

  @Test func comeWholeBesideEachOther() async throws {
    let origin = try await origin()
    defer { origin.stop() }
    let bench = try await TransportBench()
    try await withThrowingTaskGroup { group in
      for (name, count) in Self.fillings.keys.flatMap({ name in (1...Self.most).map { (name, $0) } }) {
        var request = try NetOptRequest(.get, "https://api.test:\(origin.port)/\(name)/\(count)")
        request.options.timeout = .seconds(30)
        group.addTask { [request] in try await Self.check(bench.execute(request, [.loopback]), name, count) }
      }
      try await group.waitForAll()
    }
    await bench.end()
  }

  @Test func oneThatIsTooLongIsAnErrorAtOnce() async throws {
    let origin = try await origin()
    defer { origin.stop() }
    let bench = try await TransportBench()
    for name in Self.fillings.keys {
      var request = try NetOptRequest(.get, "https://api.test:\(origin.port)/\(name)/\(Self.tooMany)")
      request.options.version = .http2
      request.options.timeout = .seconds(30)
      let limited = request
      let error = await failure { () async throws(NetOptError) in
        _ = try await bench.execute(limited, [.loopback])
      }
      #expect(error?.code == .headTooLarge, "\(String(describing: error))")
    }
    await bench.end()
  }
}
