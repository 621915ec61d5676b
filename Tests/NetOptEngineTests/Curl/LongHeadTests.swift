import NetOptCore
import NetOptTestSupport
import TestTools
import Testing

/// Response heads of any length that libcurl accepts. They arrive whole and without delay, with their bodies.
@Suite struct LongHeadTests {
  /// The largest number of header fields in a head that must arrive whole. Such a head has less than 128 KiB.
  private static let most = 32
  /// A number of header fields that libcurl before 8.1 refuses over HTTP/2, where its limit for a head is
  /// 128 KiB.
  private static let tooMany = 36

  /// The characters of the field values, by the first part of the path. The Huffman code of HTTP/2 makes the
  /// characters of "short" shorter and those of "long" longer (RFC 7541, appendix B).
  private static let fillings = ["short": "etaoins", "long": "~|^%<>`"]

  /// Starts an origin with a location `/NAME/COUNT` for each name in `fillings` and each number of header
  /// fields. The response has COUNT fields with values of 3900 bytes, and a body that repeats "NAME COUNT ".
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

  /// Expects a whole response of the location `/NAME/COUNT`.
  private static func check(_ response: NetOptResponse, _ name: String, _ count: Int) async throws {
    #expect(
      response.headers.filter { $0.name.lowercased().hasPrefix("x-") && $0.value.utf8.count == 3900 }.count
        == count)
    let body = try await response.body.collect(upTo: 1 << 20)
    #expect(String(decoding: body, as: UTF8.self) == String(repeating: "\(name) \(count) ", count: 400))
  }

  @Test(
    "sequential responses with 1 to 32 header fields of 3900 bytes arrive whole",
    arguments: [RequestOptions.Version.http1, .http2])
  func sequentialResponses(_ version: RequestOptions.Version) async throws {
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

  @Test("64 concurrent responses with 1 to 32 header fields of 3900 bytes arrive whole")
  func concurrentResponses() async throws {
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

  @Test("an HTTP/2 head with 36 fields of 3900 bytes fails with headTooLarge before the deadline")
  func tooLongHead() async throws {
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
