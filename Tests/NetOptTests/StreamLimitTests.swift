import NetOpt
import NetOptCore
import NetOptTestSupport
import TestTools
import Testing

/// Tests servers that allow few concurrent streams on a connection (SETTINGS_MAX_CONCURRENT_STREAMS; RFC
/// 9113, section 5.1.2). A client learns the limit only after it has sent its first requests, and the server
/// refuses the streams above the limit. Every request must still be answered, and be processed once.
@Suite struct StreamLimitTests {
  private static let host = "limited.test"

  @Test(
    "every request is answered and processed once, however few streams a connection allows",
    arguments: [1, 3, 10], [NetOptRequest.Method.get, .post])
  func few(_ limit: Int, _ method: NetOptRequest.Method) async throws {
    let (faults, log) = try await requests(method, atOnce: 100, limit: limit, endpoints: 1)
    #expect(faults.isEmpty, "\(faults.count): \(faults.prefix(3))")
    #expect(log.count == 100)
    #expect(Set(log.map(\.target)).count == 100)
    #expect(log.allSatisfy { $0.version == "HTTP/2.0" })
  }

  @Test("every POST is answered and processed once at three endpoints that allow one stream")
  func several() async throws {
    let (faults, log) = try await requests(.post, atOnce: 100, limit: 1, endpoints: 3)
    #expect(faults.isEmpty, "\(faults.count): \(faults.prefix(3))")
    #expect(log.count == 100)
    #expect(Set(log.map(\.target)).count == 100)
  }

  /// Sends `count` requests at once over a new client, which does not know the limit of the servers yet.
  ///
  /// - Parameters:
  ///   - limit: the maximum number of concurrent streams on a connection.
  ///   - endpoints: the number of addresses of the server.
  /// - Returns: a description of each request that failed or got a wrong response, and the entries of the
  ///   server's access log, one for each request that the server processed.
  private func requests(
    _ method: NetOptRequest.Method, atOnce count: Int, limit: Int, endpoints: Int
  ) async throws -> (faults: [String], log: [AccessLogEntry]) {
    var settings = NginxSettings()
    settings.concurrentStreams = limit
    let addresses = IPAddress.freshLoopback(endpoints)
    let origin = try await NginxOrigin.start(for: [Self.host], on: addresses, settings: settings)
    defer { origin.stop() }
    var configuration = ClientConfiguration()
    let endpoints = addresses.enumerated().map { ListedEndpoint($1, weight: 1000 - $0) }
    configuration.list = .list(
      EndpointList(hosts: [Self.host: HostEntry(port: origin.port, endpoints: endpoints)]))
    configuration.proxy = .none
    configuration.rankingHistory = .none
    configuration.tls.caFile = try await TestCertificates.authorityFile()
    let client = try NetOptClient(configuration)
    let port = origin.port
    let faults = await withTaskGroup(of: String?.self) { group in
      for id in 0..<count {
        group.addTask {
          do throws(NetOptError) {
            var request = try NetOptRequest(method, "https://\(Self.host):\(port)/echo?id=\(id)")
            if method == .post { request.body = .bytes(Array("body of \(id)".utf8)) }
            let response = try await client.execute(request)
            let text = String(decoding: try await response.body.collect(upTo: 10_000), as: UTF8.self)
            let isRight =
              text.hasPrefix("\(method) /echo?id=\(id) ")
              && (method == .get || text.hasSuffix("\r\n\r\nbody of \(id)"))
            return isRight ? nil : "\(id) has the answer \(response.status) \(text)"
          } catch {
            return "\(error)"
          }
        }
      }
      return await group.reduce(into: [String]()) { if let fault = $1 { $0.append(fault) } }
    }
    let log = try await origin.waitForLog(count - faults.count)
    await client.shutdown()
    return (faults, log)
  }
}
