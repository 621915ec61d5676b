import FoundationEssentials
import NetOpt
import NetOptCore
import NetOptTestSupport
import TestTools
import Testing

/// A server that ends connections while requests are on their way, as nginx does after `keepalive_requests`
/// or `keepalive_timeout`. No POST may get the response to another one or be processed twice (docs/adr/0026).
@Suite struct EndedConnectionsTests {
  /// How many POSTs each case of `posts(over:atOnce:)` sends. A case of `idle` sends half as many.
  /// `ENDED_CONNECTIONS_POSTS=100000` makes a thorough run.
  private static let posts =
    Int(ProcessInfo.processInfo.environment["ENDED_CONNECTIONS_POSTS"] ?? "") ?? 2500
  private static let host = "ended.test"

  /// The description of a wrong response or an error.
  private typealias Fault = String

  @Test(
    "every POST is answered and processed once when nginx ends its connection",
    arguments: [RequestOptions.Version.http2, .http1], [8, 64])
  func posts(over version: RequestOptions.Version, atOnce: Int) async throws {
    var settings = NginxSettings()
    settings.keepaliveRequests = 100
    // nginx answers a request for `/early` before it has read the request's body.
    settings.directives = #"location = /early { return 200 "$arg_id"; }"#
    let addresses = IPAddress.freshLoopback(1)
    let origin = try await NginxOrigin.start(for: [Self.host], on: addresses, settings: settings)
    defer { origin.stop() }
    let client = try await Self.client()
    let faults = await withTaskGroup(of: [Fault].self) { group in
      for worker in 0..<atOnce {
        group.addTask {
          var faults: [Fault] = []
          for id in stride(from: worker, to: Self.posts, by: atOnce) {
            if let fault = await Self.post(id, to: origin, over: version, by: client) { faults.append(fault) }
          }
          return faults
        }
      }
      return await group.reduce(into: []) { $0 += $1 }
    }
    let counts = Dictionary(faults.map { ($0, 1) }, uniquingKeysWith: +)
    #expect(faults.isEmpty, "\(counts)")
    let log = try await origin.waitForLog(Self.posts - faults.count)
    let processed = Set(log.map(\.target)).count
    #expect(processed == Self.posts)
    #expect(log.count == processed, "\(log.count - processed) doubled")
    #expect(log.allSatisfy { $0.version == (version == .http2 ? "HTTP/2.0" : "HTTP/1.1") })
    #expect(Set(log.map(\.connection)).count >= Self.posts / settings.keepaliveRequests)
    await client.shutdown()
  }

  /// A request may be on its way when nginx ends the connection. Over HTTP/2 nginx reports with GOAWAY
  /// whether it has processed such a request. Over HTTP/1.1 nothing tells whether it has. Such a POST fails,
  /// and the client does not send it again.
  @Test(
    "a POST that crosses the end of an idle connection is processed once at most",
    arguments: [RequestOptions.Version.http2, .http1])
  func idle(over version: RequestOptions.Version) async throws {
    var settings = NginxSettings()
    settings.directives = #"keepalive_timeout 3ms; location = /early { return 200 "$arg_id"; }"#
    let addresses = IPAddress.freshLoopback(1)
    let origin = try await NginxOrigin.start(for: [Self.host], on: addresses, settings: settings)
    defer { origin.stop() }
    let client = try await Self.client()
    let (workers, each) = (8, Self.posts / 16)
    let faults = await withTaskGroup(of: [Fault].self) { group in
      for worker in 0..<workers {
        group.addTask {
          var random = SplitMix64(seed: UInt64(worker))
          var faults: [Fault] = []
          for number in 0..<each {
            // nginx keeps an idle connection for 3 ms. The pause is 2.5 to 4 ms, so that some requests are on
            // their way when nginx ends the connection.
            try? await Task.sleep(for: .microseconds(2500 + Int64(random.below(1500))))
            let id = 8 * (number * workers + worker) + 2
            if let fault = await Self.post(id, to: origin, over: version, by: client) { faults.append(fault) }
          }
          return faults
        }
      }
      return await group.reduce(into: []) { $0 += $1 }
    }
    // Two kinds of error are expected. After a failed write libcurl reads nothing more from the connection.
    // So it misses a GOAWAY that says which requests were not processed, and the rest of a response that had
    // begun. Measured on a machine with two cores: at most 28 of 1,248 requests failed in this way when both
    // cores were busy, and otherwise some in 100,000.
    let unexplained = faults.filter { fault in
      !fault.contains("whether the request took effect is not known")
        && !(fault.contains("before the end of the body") && fault.contains("Broken pipe"))
    }
    #expect(unexplained.isEmpty, "\(unexplained)")
    if version == .http2 { #expect(faults.count <= workers * each / 20, "\(faults)") }
    let log = try await origin.waitForLog(workers * each - faults.count)
    #expect(Set(log.map(\.target)).count == log.count)
    await client.shutdown()
  }

  /// Sends a POST to a path that depends on the id, and checks the response.
  ///
  /// - `upload`: every eighth id, starting with 0. The body has 50,000 bytes or more, and nginx passes it on
  ///   to its backend, which answers with the length.
  /// - `echo`: every fourth id, starting with 1. The backend answers with the request.
  /// - `early`: the others. nginx answers with the id before it has read the body.
  ///
  /// - Returns: the fault; `nil` if the response is right.
  private static func post(
    _ id: Int, to origin: NginxOrigin, over version: RequestOptions.Version, by client: NetOptClient
  ) async -> Fault? {
    do throws(NetOptError) {
      let path = id % 8 == 0 ? "upload" : id % 4 == 1 ? "echo" : "early"
      var request = try NetOptRequest(.post, "https://\(host):\(origin.port)/\(path)?id=\(id)")
      let body = path == "upload" ? [UInt8](repeating: 0x61, count: 50_000 + id) : Array("body of \(id)".utf8)
      request.body = .bytes(body)
      request.options.routing = .pinned(origin.endpoints[0].address)
      request.options.version = version
      let response = try await client.execute(request)
      let text = String(decoding: try await response.body.collect(upTo: 10_000), as: UTF8.self)
      let isRight =
        switch path {
        case "upload": text == "\(body.count)\n"
        case "echo": text.hasPrefix("POST /echo?id=\(id) ") && text.hasSuffix("\r\n\r\nbody of \(id)")
        default: text == "\(id)"
        }
      return isRight ? nil : "\(id) has the answer \(response.status) \(text)"
    } catch {
      return "\(error)".replacing("\(origin.endpoints[0])", with: "nginx")
    }
  }

  private static func client() async throws -> NetOptClient {
    var configuration = ClientConfiguration()
    configuration.list = .none
    configuration.proxy = .none
    configuration.rankingHistory = .none
    configuration.tls.caFile = try await TestCertificates.authorityFile()
    return try NetOptClient(configuration)
  }
}
