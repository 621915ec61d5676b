import FoundationEssentials
import NetOpt
import NetOptCore
import NetOptTestSupport
import TestTools
import Testing

/// A server that ends each connection after some requests, as nginx does after `keepalive_requests`. Every
/// POST gets its own response and is processed once (docs/adr/0026).
@Suite struct EndedConnectionsTests {
  /// How many POSTs each case sends. `ENDED_CONNECTIONS_POSTS=100000` makes a thorough run.
  private static let posts =
    Int(ProcessInfo.processInfo.environment["ENDED_CONNECTIONS_POSTS"] ?? "") ?? 2500
  private static let host = "ended.test"

  /// The fault of a POST; `nil` if the POST got its response.
  private typealias Fault = String

  @Test(
    "every POST is answered and processed once when nginx ends its connection",
    arguments: [RequestOptions.Version.http2, .http1], [8, 64])
  func posts(over version: RequestOptions.Version, atOnce: Int) async throws {
    var settings = NginxSettings()
    settings.keepaliveRequests = 100
    // nginx answers without waiting for the body.
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

  /// Over HTTP/2 nginx reports with GOAWAY which requests it has not processed. Over HTTP/1.1 nobody knows
  /// whether a request was processed that crosses the connection's end on the wire: the request fails, and
  /// the client does not send it again.
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
            // The pause is around the 3 ms for which nginx keeps an idle connection, so that some requests
            // cross its end.
            try? await Task.sleep(for: .microseconds(2500 + Int64(random.below(1500))))
            let id = 8 * (number * workers + worker) + 2
            if let fault = await Self.post(id, to: origin, over: version, by: client) { faults.append(fault) }
          }
          return faults
        }
      }
      return await group.reduce(into: []) { $0 += $1 }
    }
    // After a failed write libcurl reads nothing more from the connection: neither the GOAWAY that says which
    // requests were not processed, nor the rest of a response that had begun. With both cores busy at most 28
    // of 1,248 requests failed in this way, otherwise some in 100,000.
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

  /// Sends a POST. nginx answers most POSTs before it has read their bodies, and sends the bodies of some on.
  /// Some bodies are long.
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
